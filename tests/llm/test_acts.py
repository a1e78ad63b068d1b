"""Turns that ask nothing new of the documents are recognised in twelve languages."""

import tomllib
from pathlib import Path

import pytest

from envelope.conversation import AnswerStyle, ConversationAct, Turn
from llm.offline.dialogue import acts
from llm.offline.dialogue.acts import read_act, read_certain_act, strip_courtesies
from llm.offline.words import normalise
from llm.tasks.essence import Inputs

Act = ConversationAct
LISTS = tomllib.loads(Path(acts.__file__).with_suffix(".toml").read_text(encoding="utf-8"))
LANGUAGES = frozenset(["ar", "de", "en", "es", "fr", "hi", "it", "ja", "pt", "ru", "uk", "zh"])
QUESTION = "How do I create a webhook?"
ANSWERED = (
    Turn(speaker="user", text=QUESTION),
    Turn(speaker="assistant", text="Choose New webhook. [1]", outcome="answered"),
)


def make_refusal(reason: str) -> tuple[Turn, ...]:
    return (
        Turn(speaker="user", text="Will it rain?"),
        Turn(speaker="assistant", text="Sorry.", outcome="refused", reason=reason),
    )


def inputs(text: str, *history: Turn) -> Inputs:
    return Inputs(text=text, language="en", history=history)


@pytest.mark.parametrize("name", [name for name in LISTS if name != "around"])
def test_every_act_has_phrases_in_every_language_as_texts_are_normalised(name: str) -> None:
    assert set(LISTS[name]) == LANGUAGES
    phrases = [phrase for found in LISTS[name].values() for phrase in found]
    assert [phrase for phrase in phrases if normalise(phrase) != phrase] == []


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("Hello!", Act.GREETING),
        ("Thanks a lot!", Act.THANKS),
        ("Спасибо", Act.THANKS),
        ("ありがとうございます。", Act.THANKS),
        ("Auf Wiedersehen", Act.FAREWELL),
        ("ok", Act.ACKNOWLEDGEMENT),
        ("What can you do?", Act.CAPABILITIES),
        ("¿Qué puedes hacer?", Act.CAPABILITIES),
    ],
)
def test_a_courtesy_needs_no_model(text: str, act: Act) -> None:
    found = read_certain_act(inputs(text, *ANSWERED))

    assert found is not None
    assert found.act is act


@pytest.mark.parametrize(
    "text",
    [
        "Thanks, how do I delete it?",
        "Hello world example",
        "What can you do with webhooks?",
        "why?",
    ],
)
def test_a_question_with_a_courtesy_stays_a_question(text: str) -> None:
    assert read_certain_act(inputs(text, *ANSWERED)) is None


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("shorter please", "shorter"),
        ("Can you say that more briefly?", "shorter"),
        ("Can you explain that in simple words?", "simpler"),
        ("Geht das einfacher?", ""),
        ("bitte einfacher", "simpler"),
        ("I don't understand", "simpler"),
        ("а короче?", "shorter"),
        ("más detalles", "longer"),
        ("Where does it say that?", "quoted"),
        ("简单一点", "simpler"),
    ],
)
def test_a_request_for_another_form_repeats_the_last_question(
    text: str, style: AnswerStyle
) -> None:
    found = read_act(inputs(text, *ANSWERED))

    recognised = (None, "") if found is None else (found.act, found.style)
    assert recognised == ((Act.REPHRASE, style) if style else (None, ""))
    assert found is None or found.canonical_question == QUESTION


@pytest.mark.parametrize(
    ("text", "language"),
    [("in German please", "de"), ("auf Englisch bitte", "en"), ("на английском", "en")],
)
def test_an_answer_in_another_language_is_asked_for_by_its_name(text: str, language: str) -> None:
    found = read_act(inputs(text, *ANSWERED))

    assert found is not None
    assert (found.act, found.answer_language) == (Act.REPHRASE, language)


@pytest.mark.parametrize(
    "text", ["How do I keep messages short?", "Is there a German manual?", "simple rule example"]
)
def test_a_question_that_names_a_form_or_a_language_is_no_request_for_it(text: str) -> None:
    assert read_act(inputs(text, *ANSWERED)) is None


@pytest.mark.parametrize("text", ["shorter", "why?"])
def test_without_an_answer_there_is_nothing_to_repeat_or_to_explain(text: str) -> None:
    found = read_act(inputs(text))

    assert found is not None
    assert found.act is Act.NO_ANSWER_YET


def test_why_after_a_refusal_is_answered_by_its_reason_and_after_an_answer_by_documents() -> None:
    found = read_certain_act(inputs("Why?", *make_refusal("out_of_scope")))

    assert found is not None
    assert found.act is Act.WHY
    assert read_certain_act(inputs("Why?", *ANSWERED)) is None


@pytest.mark.parametrize("text", ["2", "the second one", "die zweite", "no, I meant the last one"])
def test_a_number_without_options_is_no_question(text: str) -> None:
    found = read_certain_act(inputs(text, *ANSWERED))

    assert found is not None
    assert found.act is Act.STRAY_CHOICE


@pytest.mark.parametrize("text", ["4029", "2024", "step 2 of it"])
def test_a_number_that_can_mean_something_is_a_question(text: str) -> None:
    assert read_certain_act(inputs(text, *ANSWERED)) is None


def test_a_number_after_a_numbered_answer_may_mean_its_step() -> None:
    steps = Turn(speaker="assistant", text="1. Open it. [1]\n2. Save it. [1]", outcome="answered")

    assert read_certain_act(inputs("2", ANSWERED[0], steps)) is None


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("no, I meant an API key", "How do I create an API key?"),
        ("No, I meant: who may create one?", "who may create one?"),
        ("I meant webhooks", "How do I create webhooks?"),
    ],
)
def test_a_correction_puts_what_was_meant_in_the_last_question(text: str, question: str) -> None:
    found = read_act(inputs(text, *ANSWERED))

    assert found is not None
    assert (found.act, found.canonical_question) == (Act.CORRECTION, question)


@pytest.mark.parametrize(
    ("before", "text", "question"),
    [
        (
            "Who can do that? (How do I create a webhook?)",
            "no, I meant an API key",
            "Who can do that? (How do I create an API key?)",
        ),
        ("How do I set up a webhook?", "I meant routing", "How do I set up routing?"),
        ("How do I configure SMS routing rules?", "no, I meant it", "How do I configure it?"),
    ],
)
def test_a_corrected_question_has_its_object_once_and_no_nested_subject(
    before: str, text: str, question: str
) -> None:
    user = Turn(speaker="user", text="-", meant=before)

    found = read_act(inputs(text, user, ANSWERED[1]))

    assert found is not None
    assert found.canonical_question == question


def test_a_correction_leaves_nothing_of_what_was_not_meant() -> None:
    history = (Turn(speaker="user", text="How do I test websockets?"), ANSWERED[1])

    found = read_act(inputs("no, I meant background tasks", *history))

    assert found is not None
    assert found.canonical_question == "How do I test background tasks?"


def test_a_rephrased_follow_up_leans_on_the_turns_that_it_leaned_on() -> None:
    follow = Turn(speaker="user", text="Who can do that?", meant=f"Who can do that? ({QUESTION})")

    found = read_act(inputs("more details", *ANSWERED, follow, ANSWERED[1]))

    assert found is not None
    assert (found.act, found.related_turns) == (Act.REPHRASE, (2,))


def test_leaving_without_an_open_question_is_acknowledged() -> None:
    found = read_certain_act(inputs("cancel", *ANSWERED))

    assert found is not None
    assert found.act is Act.ACKNOWLEDGEMENT


def test_a_courtesy_or_a_refused_question_is_nothing_that_later_turns_are_about() -> None:
    history = (*ANSWERED, *make_refusal("out_of_scope"), Turn(speaker="user", text="Thanks!"))

    found = read_act(inputs("no, I meant an API key", *history))

    assert found is not None
    assert found.canonical_question == "How do I create an API key?"


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Hi, how do I add a user?", "how do I add a user?"),
        ("Thanks! And who can do that?", "And who can do that?"),
        ("ok, good. How many?", "How many?"),
        ("Hello world", "Hello world"),
        ("Thanks", "Thanks"),
    ],
)
def test_a_courtesy_before_a_question_is_left_out(text: str, rest: str) -> None:
    assert strip_courtesies(text) == rest
