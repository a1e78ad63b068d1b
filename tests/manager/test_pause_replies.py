from typing import Any

import pytest

from config.texts import load_texts
from envelope.conversation import ClarificationReason, InputField, Pause, PauseQuestion, PauseReply
from manager.pause_replies import (
    Answered,
    NotOpen,
    OtherTopic,
    ReadReply,
    ReplyLabels,
    Unanswered,
    compute_code,
    make_pause_reply,
    read_typed,
    read_words,
)

LABELS = ReplyLabels(
    frozenset({"approve", "zustimmen"}),
    frozenset({"deny", "ablehnen"}),
    frozenset({"cancel"}),
    frozenset({"yes", "go ahead"}),
    frozenset({"no"}),
)
CODE = compute_code("m1")


def make_pause(*fields: InputField, kind: Any = "information", **changes: Any) -> Pause:
    questions = [PauseQuestion(id=field.name, text=field.name, field=field) for field in fields]
    return Pause(
        pause_id="m1",
        original_question="q",
        original_text="q",
        reason=ClarificationReason.MISSING_DETAILS,
        asked="a",
        kind=kind,
        questions=tuple(questions),
        expires=100.0,
        **changes,
    )


APPROVAL = make_pause(kind="approval")
YEAR = InputField(name="year", type="choice", choices=("2024", "2025"))
WHEN = InputField(name="day", type="date")
MANY = InputField(name="count", type="number")
NOTE = InputField(name="note", required=False)


def read(pause: Pause | None, text: str, now: float = 1.0) -> ReadReply:
    return read_words(pause, text, LABELS, now)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("Approve", Answered(True)),
        (" zustimmen! ", Answered(True)),
        (f"Approve #{CODE}", Answered(True)),
        (f"Approve #{CODE}\nApprove #{CODE}", Answered(True)),
        ("Ablehnen", Answered(False)),
        ("cancel", Answered(False)),
        ("Yes.", Answered(True)),
        ("go ahead!", Answered(True)),
        ("no", Answered(False)),
        ("yes, and the other one too", OtherTopic()),
        ("No, what does it cost?", OtherTopic()),
        (f"yes #{compute_code('m0')}", OtherTopic()),
        (f"Approve #{compute_code('m0')}", NotOpen()),
        ("Approve the second one", OtherTopic()),
        ("Do you approve?", OtherTopic()),
        ("approve\ndeny", OtherTopic()),
        ("Issue #12345678", OtherTopic()),
        ("", OtherTopic()),
    ],
)
def test_an_approval_is_read_by_its_words_alone(text: str, meaning: ReadReply) -> None:
    assert read(APPROVAL, text) == meaning


def test_a_yes_of_another_user_counts_as_another_topic() -> None:
    assert read_words(APPROVAL, "yes", LABELS, 1.0, is_own=False) == OtherTopic()
    assert read_words(APPROVAL, "Approve", LABELS, 1.0, is_own=False) == Answered(True)


def test_no_word_means_yes_in_one_language_and_no_in_another() -> None:
    texts = load_texts()

    def list_words(key: str) -> set[str]:
        every = "; ".join(texts.text(key, language) for language in texts.languages)
        return set(every.casefold().split("; "))

    granting = list_words("approve_words") | list_words("approve")
    denying = list_words("deny_words") | list_words("deny") | list_words("exit_action")
    assert not granting & denying
    assert "" not in granting | denying


def test_a_button_without_an_open_pause_is_not_open_and_other_words_are_a_message() -> None:
    assert read(None, f"Deny #{CODE}") == NotOpen()
    assert read(None, "Deny") == OtherTopic()
    assert read(APPROVAL, f"Deny #{CODE}", now=100.0) == NotOpen()
    assert read(APPROVAL, "Deny", now=100.0) == OtherTopic()


def test_several_questions_are_numbered_and_name_the_choices_that_have_no_buttons() -> None:
    several = make_pause_reply(make_pause(YEAR, MANY), load_texts(), "en")
    single = make_pause_reply(make_pause(YEAR), load_texts(), "en")

    assert str(several["text"]).splitlines()[1:] == ["1. year (2024, 2025)", f"2. {MANY.name}"]
    assert str(single["text"]).splitlines()[1:] == ["year"]


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        (YEAR, "2025", "2025"),
        (YEAR, "1", "2024"),
        (MANY, "4,5", 4.5),
        (MANY, "-3", -3),
        (WHEN, "2026-02-28", "2026-02-28"),
        (InputField(name="city"), "New York", "New York"),
        (InputField(name="aspect"), "how it works", "how it works"),
        (InputField(name="aspect"), "comparison of costs", "comparison of costs"),
    ],
)
def test_words_for_the_only_open_field_are_its_value(
    field: InputField, text: str, value: str | float
) -> None:
    reply = read(make_pause(field), text)

    assert reply == Answered(True, {field.name: value})
    assert repr(reply.values[field.name]) == repr(value)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (YEAR, "2026"),
        (YEAR, "3"),
        (MANY, "many"),
        (MANY, "nan"),
        (MANY, "1e999"),
        (WHEN, "2026-02-30"),
        (WHEN, "tomorrow"),
        (InputField(name="city"), "What is a webhook?"),
        (InputField(name="city"), "x" * 2001),
    ],
)
def test_text_without_a_valid_value_counts_as_another_topic(field: InputField, text: str) -> None:
    assert read(make_pause(field), text) == OtherTopic()


def test_several_fields_are_read_from_named_lines_and_the_rest_is_open() -> None:
    pause = make_pause(YEAR, MANY, NOTE)

    assert read(pause, "Year: 2024\ncount: 7") == Answered(True, {"year": "2024", "count": 7.0})
    assert read(pause, "year: 2024") == Unanswered({"year": "2024"})
    assert read(pause, "2024") == OtherTopic()


@pytest.mark.parametrize(
    ("given", "meaning"),
    [
        ({"fields": {"year": 2025, "count": 2}}, Answered(True, {"year": "2025", "count": 2.0})),
        ({"fields": {"year": "2025"}}, Unanswered({"year": "2025"})),
        ({"fields": {"unknown": "2025"}}, Unanswered({})),
        (
            {"fields": {"year": "2025", "count": None}},
            Answered(True, {"year": "2025", "count": None}),
        ),
        ({"fields": {"count": None}}, Unanswered({"count": None})),
        ({"approve": True}, Unanswered({})),
        ({"approve": False}, Answered(False)),
    ],
)
def test_typed_values_are_checked_by_their_field(
    given: dict[str, object], meaning: ReadReply
) -> None:
    reply = PauseReply.model_validate({"pause_id": "m1", **given})

    assert read_typed(make_pause(YEAR, MANY, NOTE), reply, 1.0) == meaning


def test_a_typed_approval_needs_the_open_pause() -> None:
    approve = PauseReply(pause_id="m1", approve=True)

    assert read_typed(APPROVAL, approve, 1.0) == Answered(True)
    assert read_typed(APPROVAL, PauseReply(pause_id="m1"), 1.0) == Unanswered({})
    assert read_typed(APPROVAL, approve, 100.0) == NotOpen()
    assert read_typed(None, approve, 1.0) == NotOpen()
    assert read_typed(APPROVAL, PauseReply(pause_id="m0", approve=True), 1.0) == NotOpen()


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("1,200", OtherTopic()),
        ("1.200", OtherTopic()),
        ("12,5", Answered(True, {"count": 12.5})),
        ("0.125", Answered(True, {"count": 0.125})),
        ("1200", Answered(True, {"count": 1200.0})),
    ],
)
def test_a_number_that_languages_read_differently_is_asked_for_again(
    text: str, meaning: ReadReply
) -> None:
    assert read(make_pause(MANY), text) == meaning
