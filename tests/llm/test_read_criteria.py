"""Which documents a question asks for."""

import pytest

from llm.offline.criteria.read_criteria import Criterion, read_set_question


def test_criteria_after_a_colon_are_read_as_they_are() -> None:
    asked = read_set_question(
        "Which contracts in portfolio P1 answer yes: Is there an audit right?"
    )

    assert asked is not None
    assert asked.criteria == (Criterion("Is there an audit right?"),)
    assert "portfolio P1" in asked.head


def test_numbered_criteria_have_the_answers_that_the_question_wants() -> None:
    asked = read_set_question(
        "Which contracts answer yes to the first and no to the second: (1) A licence? (2) A cap?"
    )

    assert asked is not None
    assert asked.criteria == (Criterion("A licence?"), Criterion("A cap?", is_wanted=False))


def test_a_plain_sentence_is_split_and_its_negations_are_read() -> None:
    asked = read_set_question("Which of our contracts have an audit right but lack a cap?")

    assert asked is not None
    assert [one.is_wanted for one in asked.criteria] == [True, False]


def test_the_collection_is_no_part_of_a_criterion() -> None:
    asked = read_set_question("Which contracts in portfolio P1 are governed by the law of Texas?")

    assert asked is not None
    assert asked.criteria == (Criterion("are governed by the law of Texas"),)


def test_a_question_for_a_number_is_counted() -> None:
    asked = read_set_question("How many of the 20 contracts answer yes: Is there a cap?")

    assert asked is not None
    assert asked.is_counted


@pytest.mark.parametrize("text", ["What is a contract?", "How do I sign contracts?", ""])
def test_another_question_asks_for_no_documents(text: str) -> None:
    assert read_set_question(text) is None
