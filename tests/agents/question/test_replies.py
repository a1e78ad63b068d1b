import pytest

from agents.question.replies import (
    ACTS,
    EXIT,
    ORDINALS,
    SKIP,
    is_lone_number,
    normalise,
    plain_reply,
    read_act,
)
from config.texts import load_texts
from envelope.conversation import ClarificationReason, ConversationAct, Pause
from envelope.texts import primary_of

TEXTS = load_texts()
OPTIONS = ("Rate plans > Monthly limit", "Routing rules > Throughput", "User accounts > Sub-users")
Act = ConversationAct


def make_pause(*options: str) -> Pause:
    return Pause(
        pause_id="p",
        original_question="How do I set the limit?",
        original_text="How do I set the limit?",
        reason=ClarificationReason.AMBIGUOUS_QUERY,
        asked="Which one do you mean?",
        options=options,
    )


@pytest.mark.parametrize(
    ("reply", "chosen"),
    [
        ("Routing rules > Throughput", 1),
        ("routing rules throughput", 1),
        ("2", 1),
        ("2.", 1),
        ("option 3", 2),
        ("the second one", 1),
        ("the last one please", 2),
        ("die zweite", 1),
        ("второй вариант", 1),
        ("最初", 0),
        ("दूसरा वाला", 1),
    ],
)
def test_an_option_is_chosen_by_its_words_or_its_number(reply: str, chosen: int) -> None:
    result = plain_reply(reply, make_pause(*OPTIONS))

    assert result is not None
    assert (result.kind, result.option) == ("option", chosen)


@pytest.mark.parametrize(
    "reply",
    [
        "4",
        "0",
        "the monthly one",
        "Routing rules > Throughput, but only for Germany",
        "both of them",
        "I don't know",
        "How do I cancel a number?",
        "Stop words in routing conditions",
    ],
)
def test_an_ambiguous_reply_is_left_to_the_model(reply: str) -> None:
    assert plain_reply(reply, make_pause(*OPTIONS)) is None
    assert plain_reply("Answer anyway", make_pause()) is None


@pytest.mark.parametrize(
    "reply",
    ["exit", "Cancel.", "never mind!", "abbrechen", "Olvídalo", "отмена", "算了", "إلغاء"],
)
def test_a_stop_word_of_any_of_the_languages_ends_the_question(reply: str) -> None:
    result = plain_reply(reply, make_pause(*OPTIONS))

    assert result is not None
    assert result.kind == "exit"


@pytest.mark.parametrize("language", TEXTS.languages)
def test_the_buttons_of_every_language_are_recognised(language: str) -> None:
    skip, leave = (TEXTS.text(key, language) for key in ("skip", "exit_action"))

    kinds = [plain_reply(item, make_pause(*OPTIONS)) for item in (skip, leave)]

    assert [kind.kind for kind in kinds if kind is not None] == ["skip", "exit"]


def test_an_option_that_reads_like_a_stop_word_is_the_option() -> None:
    reply = plain_reply("Stop", make_pause("Start", "Stop"))

    assert reply is not None
    assert (reply.kind, reply.option) == ("option", 1)


@pytest.mark.parametrize(
    ("text", "language", "act", "spoken"),
    [
        ("Thank you!", "en", Act.THANKS, "en"),
        ("danke", "en", Act.THANKS, "de"),
        ("Hello", "en", Act.GREETING, "en"),
        ("Привет!", "ru", Act.GREETING, "ru"),
        ("再见", "zh", Act.FAREWELL, "zh"),
        ("ok", "en", Act.ACKNOWLEDGEMENT, "en"),
        ("help", "en", Act.CAPABILITIES, "en"),
        ("děkuji", "cs", Act.THANKS, "cs"),
    ],
)
def test_fixed_words_of_thanks_and_the_like_are_known(
    text: str, language: str, act: Act, spoken: str
) -> None:
    assert read_act(text, language) == (act, spoken)


@pytest.mark.parametrize(
    "text", ["Thanks, and how do I delete a rule?", "Hello world program", "help with webhooks"]
)
def test_a_question_with_a_courtesy_stays_a_question(text: str) -> None:
    assert read_act(text, "en") is None


@pytest.mark.parametrize("act", list(ACTS))
def test_every_act_has_words_in_every_language(act: Act) -> None:
    assert set(ACTS[act]) == {primary_of(language) for language in TEXTS.languages}


def test_every_phrase_is_listed_in_the_form_texts_are_compared_in() -> None:
    acts = [words for by_language in ACTS.values() for words in by_language.values()]
    listed = [phrase for phrases in (EXIT, SKIP, *ORDINALS, *acts) for phrase in phrases]

    assert {phrase for phrase in listed if normalise(phrase) != phrase} == set()


def test_a_single_digit_is_a_number_and_a_code_is_a_question() -> None:
    assert is_lone_number(" 2. ")
    assert not is_lone_number("4029")
