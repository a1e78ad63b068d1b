"""What a text lists is read from its form alone."""

import pytest

from tools.listed_parts import (
    find_items,
    find_listed_names,
    find_listed_things,
    split_questions,
)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "What does a licence cost? Who reads the logs?",
            ("What does a licence cost?", "Who reads the logs?"),
        ),
        ("- price of a licence\n- length of a trial", ("price of a licence", "length of a trial")),
        ("What does a licence cost?", ()),
        ("I use the gateway. Does it retry webhooks?", ()),
        ("What does a licence cost? Why?", ()),
    ],
)
def test_questions_are_listed_by_lines_or_question_marks(text: str, parts: tuple[str, ...]) -> None:
    assert split_questions(text) == parts


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What do Alfa, Beta and Gamma Corp cost?", ("Alfa", "Beta", "Gamma Corp")),
        ("Compare Python, Rust, and Go", ("Python", "Rust", "Go")),
        ("What do Alfa and Beta cost?", ()),
    ],
)
def test_names_are_listed_by_commas(question: str, names: tuple[str, ...]) -> None:
    assert find_listed_names(question) == names


def test_things_in_small_letters_share_the_head_of_the_last_one() -> None:
    question = "What are the retention, deletion and export rules?"

    assert find_listed_things(question) == ("retention rules", "deletion rules", "export rules")
    assert find_listed_things("How do I export rules, please?") == ()


def test_the_subject_of_a_list_question_is_its_other_words() -> None:
    listed = find_items("What do Alfa, Beta and Gamma charge for support?")

    assert listed is not None
    assert (listed.items, listed.asked) == (("Alfa", "Beta", "Gamma"), "charge support")


@pytest.mark.parametrize(
    "message",
    [
        'It says "names, addresses and numbers may be passed on to partners". Is that allowed?',
        "We sell apples, pears and plums to shops. How long is the notice period?",
    ],
)
def test_a_list_in_a_quotation_is_ignored(message: str) -> None:
    assert find_items(message) is None
    assert find_items("What do apples, pears and plums cost?") is not None
