"""Without a model: where two versions of a regulation differ, both are quoted under their names."""

import pytest

from llm.offline.quoting.versions import find_earlier, find_passed_over
from llm.offline.respond import answer
from llm.tasks.respond import Inputs, PromptSource


def make_section(number: int, version: str, heading: str, text: str) -> PromptSource:
    return PromptSource(
        number=number,
        chunk_id=f"remote-{version}#{number}",
        place=f"Remote work {version} > {heading} (version {version})",
        language="en",
        version=version,
        text=text,
    )


NEW = (
    make_section(
        1, "2025", "2. Days", "Employees may work remotely three days a week. Tell your manager."
    ),
    make_section(2, "2025", "6. Insurance", "Accidents at home are covered by the insurance."),
    make_section(3, "2025", "3. Abroad", "Employees may work abroad for up to 20 days a year."),
)
OLD = (
    make_section(
        4, "2023", "2. Days", "Employees may work remotely one day a week. Mondays are excluded."
    ),
    make_section(5, "2023", "5. Insurance", "Accidents at home are covered by the insurance."),
    make_section(6, "2023", "4. Allowance", "Employees get an allowance of 25 euros a month."),
)
OTHER = PromptSource(number=7, chunk_id="it#1", place="IT", text="Laptops are replaced each year.")


def ask(question: str, *sources: PromptSource) -> str:
    return answer(Inputs(question=question, language="en", sources=sources)).answer


def test_an_answer_says_what_an_earlier_version_says_otherwise() -> None:
    said = ask("How many days a week may employees work remotely?", *NEW, *OLD)

    assert said == (
        "Remote work 2025 > 2. Days (version 2025): Employees may work remotely three days a week. "
        "[1] Tell your manager. [1]\n\n"
        "Remote work 2023 > 2. Days (version 2023): Employees may work remotely one day a week. [4]"
    )


def test_what_all_versions_say_alike_is_said_once() -> None:
    said = ask("Are accidents at home covered by the insurance?", *NEW, *OLD)

    assert said == "Accidents at home are covered by the insurance. [2]"


def test_what_only_the_newest_version_says_is_not_compared() -> None:
    assert "2023" not in ask("How many days may employees work abroad?", *NEW, *OLD)


def test_an_earlier_version_alone_does_not_answer_for_the_newest() -> None:
    assert "[4]" not in ask("Which weekdays are excluded?", *NEW, *OLD)
    assert "Mondays" in ask("Which weekdays are excluded?", *OLD)


@pytest.mark.parametrize(
    ("question", "earlier"),
    [
        ("How many days?", {3, 4}),
        ("How many days was it in 2023?", set()),
        ("How did 2023 and 2025 differ?", set()),
    ],
)
def test_sources_are_earlier_versions_unless_the_question_names_them(
    question: str, earlier: set[int]
) -> None:
    assert find_earlier((*NEW, *OLD[:2], OTHER), question) == earlier


CLOUD = make_section(1, "cloud", "Limits", "Files may have at most 5 GB. Uploads last 30 days.")
SERVER = make_section(2, "server", "Limits", "Files may have at most 100 GB. Uploads last a year.")


def test_versions_that_are_not_newer_than_each_other_are_both_quoted() -> None:
    said = ask("How large may files be?", CLOUD, SERVER)

    assert "at most 5 GB. [1]" in said
    assert "Limits (version server): Files may have at most 100 GB. [2]" in said


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How large may files be on the server?", "100 GB. [2]"),
        ("How large may files be in the cloud?", "5 GB. [1]"),
    ],
)
def test_a_question_that_names_one_of_such_versions_is_answered_by_it(
    question: str, expected: str
) -> None:
    said = ask(question, CLOUD, SERVER)

    assert expected in said
    assert ("[1]" in said) != ("[2]" in said)


@pytest.mark.parametrize(
    ("asked", "said", "other"),
    [
        ("in version 2023", "one day a week", "2025"),
        ("in version 2025", "three days a week", "2023"),
        ("under the 2023 edition", "one day a week", "2025"),
        ("in 2023", "one day a week", "2025"),
    ],
)
def test_a_question_about_one_version_is_answered_from_that_version_alone(
    asked: str, said: str, other: str
) -> None:
    text = ask(f"How many days a week may employees work remotely {asked}?", *NEW, *OLD)

    assert said in text
    assert other not in text


def test_a_version_that_no_source_has_is_not_answered_from_another_one() -> None:
    assert ask("How many days a week may employees work remotely in version 2019?", *NEW) == ""


def test_a_question_that_compares_passes_no_version_over() -> None:
    for question in ("What changed in version 2025?", "The days in version 2023 and version 2025"):
        assert find_passed_over((*NEW, *OLD), question) == frozenset()
