"""Facts that the user has said already, and questions for the others."""

import pytest
from pydantic import JsonValue

from swarm.information.extraction import gather, parse_value, read_answers
from swarm.information.fields import FieldType, RequiredInfoField

COUNTRY = RequiredInfoField(
    name="country",
    question="Which country?",
    type=FieldType.CHOICE,
    choices=("Norway", "Sweden"),
)
BUDGET = RequiredInfoField(
    name="budget", question="What is the budget?", type=FieldType.NUMBER, cues=("budget",)
)
START = RequiredInfoField(
    name="start", question="When does it begin?", type=FieldType.DATE, cues=("from", "begin")
)
FIELDS = {"w1": (COUNTRY, BUDGET), "w2": (COUNTRY, START)}


def test_what_was_said_is_not_asked() -> None:
    collected = gather(FIELDS, ["We are in Norway.", "The budget is 1200, from 2026-03-01 on."])

    assert collected.values == {"country": "Norway", "budget": 1200.0, "start": "2026-03-01"}
    assert collected.is_complete


def test_a_field_of_two_workers_is_asked_once() -> None:
    collected = gather(FIELDS, ["Please plan it."])

    assert [(one.id, one.workers) for one in collected.questions] == [
        ("country", ("w1", "w2")),
        ("budget", ("w1",)),
        ("start", ("w2",)),
    ]
    assert collected.questions[0].suggestions == ("Norway", "Sweden")


def test_partial_answers_are_kept_and_the_rest_is_asked_again() -> None:
    asked = gather(FIELDS, []).questions

    first = read_answers(asked, {"country": "norway", "budget": "a lot"})
    second = read_answers(first.questions, {"budget": 5, "start": "2026-01-31"}, first.values)

    assert first.values == {"country": "Norway"}
    assert [one.id for one in first.questions] == ["budget", "start"]
    assert second.is_complete
    assert second.values == {"country": "Norway", "budget": 5, "start": "2026-01-31"}


def test_a_text_with_a_line_for_each_question_answers_all_of_them() -> None:
    asked = gather(FIELDS, []).questions

    collected = read_answers(asked, "Sweden\n800\n2026-05-01")

    assert collected.values == {"country": "Sweden", "budget": 800.0, "start": "2026-05-01"}


def test_an_answer_that_is_a_new_question_answers_nothing() -> None:
    asked = gather(FIELDS, []).questions

    collected = read_answers(asked, "What does a parcel to Norway cost?", {"budget": 1})

    assert collected.is_other_question
    assert (collected.values, len(collected.questions)) == ({"budget": 1}, 3)


@pytest.mark.parametrize(
    ("type_", "value", "parsed"),
    [
        (FieldType.YES_NO, "Ja", True),
        (FieldType.YES_NO, "perhaps", None),
        (FieldType.NUMBER, True, None),
        (FieldType.NUMBER, "about 3,5 tons", 3.5),
        (FieldType.DATE, "2026-02-31", None),
        (FieldType.TEXT, "   ", None),
        (FieldType.TEXT, 5, None),
    ],
)
def test_a_value_of_another_form_is_no_value(
    type_: FieldType, value: JsonValue, parsed: JsonValue
) -> None:
    field = RequiredInfoField(name="x", question="?", type=type_)

    assert parse_value(field, value) == parsed
