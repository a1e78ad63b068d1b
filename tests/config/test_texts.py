from pathlib import Path

import pytest

from agents.question.replies import EXIT, SKIP, normalise
from config.errors import TextsError
from config.texts import load_texts

TEXTS = load_texts()
LANGUAGES = (
    "en", "de", "es", "fr", "it", "pt", "ru", "uk", "zh", "zh-Hant", "ja", "ar", "hi", "cs", "ko",
    "tr", "nl", "pl",
)  # fmt: skip


def folder_of(tmp_path: Path, **texts: str) -> Path:
    for language, text in texts.items():
        (tmp_path / f"{language}.toml").write_text(text, encoding="utf-8")
    return tmp_path


def test_there_are_texts_in_every_language() -> None:
    assert set(TEXTS.languages) == set(LANGUAGES)


def test_a_language_without_texts_is_answered_in_english() -> None:
    assert TEXTS.text("exit", "sv") == TEXTS.text("exit", "en")


@pytest.mark.parametrize("key", ["exit", "apology", "ask_choice", "ask_details", "help_help"])
def test_no_language_is_left_in_english(key: str) -> None:
    assert [
        language for language in LANGUAGES if TEXTS.text(key, language) == TEXTS.text(key, "en")
    ] == ["en"]


@pytest.mark.parametrize(
    "key",
    [
        "exit", "apology", "deadline", "steps_reached", "superseded", "clarify_again",
        "refused_out_of_scope", "refused_insufficient_context",
    ],
)  # fmt: skip
def test_a_question_can_be_ended_without_any_value(key: str) -> None:
    assert [language for language in LANGUAGES if "{" in TEXTS.text(key, language)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_pressed_skip_or_cancel_is_understood_as_such(language: str) -> None:
    assert normalise(TEXTS.text("skip", language)) in SKIP
    assert normalise(TEXTS.text("exit_action", language)) in EXIT


def test_values_are_filled_in_and_never_read_as_names() -> None:
    filled = TEXTS.text("decline_domain", "de", topic="{question} {0}")

    assert "{question} {0}" in filled


def test_a_default_value_serves_every_text() -> None:
    assert "Acme" in load_texts(topic="Acme").text("ask_scope", "fr")


@pytest.mark.parametrize(
    ("german", "problem"),
    [
        ('one = "eins"', "'two'"),
        ('one = "eins"\ntwo = "{name}"\nthree = "3"', "'three'"),
        (
            'one = "eins"\ntwo = "zwei"',
            r"must contain the placeholders \['name'\]; it contains \[\]",
        ),
        ("one = ", "de.toml cannot be read"),
    ],
)
def test_a_language_that_differs_from_english_ends_the_start(
    tmp_path: Path, german: str, problem: str
) -> None:
    folder = folder_of(tmp_path, en='one = "one"\ntwo = "{name}"', de=german)

    with pytest.raises(TextsError, match=problem):
        load_texts(folder)


def test_an_unknown_key_and_a_missing_value_are_named() -> None:
    with pytest.raises(TextsError, match="'nothing_like_it'"):
        TEXTS.text("nothing_like_it", "en")
    with pytest.raises(TextsError, match="'ask_scope' requires a value for 'topic'"):
        TEXTS.text("ask_scope", "en")
