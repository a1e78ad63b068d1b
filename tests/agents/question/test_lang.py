import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agents.question.lang import LangAgent, Reads, Writes
from envelope.conversation import Preferences, Turn
from envelope.outcome import Wrote
from envelope.specialists import ReviewScope
from knowledge.language.detector import ScriptAndNgramDetector
from knowledge.language.langdetect import FencedLangdetect, SecondOpinion
from knowledge.language.scripts import CANDIDATES

DETECTOR = ScriptAndNgramDetector()
QUESTIONS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("short_questions.toml").read_text("utf-8")
)
ALSO: dict[str, list[str]] = QUESTIONS.pop("also")
GERMAN = (
    Turn(speaker="user", text="Wie lege ich einen neuen Benutzer an?"),
    Turn(speaker="assistant", text="Unter Benutzer, dort auf Anlegen. [1]"),
)


async def detect(reads: Reads, default_language: str = "en") -> Writes:
    outcome = await LangAgent(detector=DETECTOR, default_language=default_language).work(reads)
    assert isinstance(outcome, Wrote)
    return outcome.writes


async def test_an_explicit_choice_wins_over_what_the_text_is_in() -> None:
    chosen = Preferences(language="fr", explicit=True)

    detected = await detect(Reads(text="How do I add a new user?", preferences=chosen))

    assert detected == Writes(language="fr", texts_language="fr", confidence=1.0)


async def test_the_language_of_a_requested_review_wins_over_that_of_its_titles() -> None:
    titles = "Review a document against rules: Contract with Brandt – Data Protection Act"
    review = ReviewScope(documents=("a",), language="cs")

    detected = await detect(Reads(text=titles, review=review))

    assert detected == Writes(language="cs", texts_language="cs", confidence=1.0)


async def test_a_stored_language_that_nobody_chose_gives_way_to_a_clear_text() -> None:
    stored = Preferences(language="fr")

    detected = await detect(Reads(text="How do I add a new user?", preferences=stored))

    assert detected.language == "en"


@pytest.mark.parametrize("text", ["Status", "API", "in 2 Minuten", "Webhook", "ok"])
async def test_a_short_turn_leans_on_the_conversation(text: str) -> None:
    assert (await detect(Reads(text=text, history=GERMAN))).language == "de"


async def test_a_short_turn_leans_on_the_stored_preference() -> None:
    detected = await detect(Reads(text="Status", preferences=Preferences(language="pt")))

    assert detected.language == "pt"


async def test_a_user_who_changes_the_language_is_followed() -> None:
    detected = await detect(Reads(text="How do I delete a rate plan?", history=GERMAN))

    assert detected.language == "en"
    assert detected.confidence > 0.5


async def test_the_languages_noted_with_the_turns_count_and_not_their_texts() -> None:
    noted = (Turn(speaker="user", text="Status?", language="uk"),)

    assert (await detect(Reads(text="Про запас", history=noted))).language == "uk"


@pytest.mark.parametrize(
    ("text", "texts_language"),
    [
        ("如何設定伺服器的備份？", "zh-Hant"),
        ("請問特休假有幾天？", "zh-Hant"),
        ("如何设置服务器的备份？", "zh"),
        ("年假多少天？", "zh"),
    ],
)
async def test_chinese_is_compared_as_one_language_and_answered_in_the_script_of_the_user(
    text: str, texts_language: str
) -> None:
    detected = await detect(Reads(text=text))

    assert (detected.language, detected.texts_language) == ("zh", texts_language)


TRADITIONAL = Turn(speaker="user", text="如何設定伺服器的備份？", language="zh")


@pytest.mark.parametrize(
    ("reads", "default_language"),
    [
        (Reads(text="好的", history=(TRADITIONAL,)), "en"),
        (Reads(text="年假多少天？", preferences=Preferences(language="zh-Hant")), "en"),
        (Reads(text="年假多少天？"), "zh-TW"),
        (
            Reads(text="年假有几天？", preferences=Preferences(language="zh-Hant", explicit=True)),
            "en",
        ),
    ],
)
async def test_a_text_in_both_scripts_keeps_that_of_the_conversation_the_user_or_the_desk(
    reads: Reads, default_language: str
) -> None:
    detected = await detect(reads, default_language=default_language)

    assert (detected.language, detected.texts_language) == ("zh", "zh-Hant")


@pytest.mark.parametrize("text", ["", "🙂", "/var/log/messages", "https://example.org/x", "\ud83d"])
async def test_a_text_without_words_is_in_the_language_of_the_conversation(text: str) -> None:
    assert (await detect(Reads(text=text, history=GERMAN))).language == "de"
    assert (await detect(Reads(text=text, preferences=Preferences(language="es")))).language == "es"


@pytest.mark.parametrize("text", ["", "🙂", "/var/log/messages", "https://example.org/x"])
async def test_a_text_without_words_and_context_is_in_the_default_language(text: str) -> None:
    detected = await detect(Reads(text=text), default_language="uk")

    assert detected.language == "uk"
    assert detected.confidence < 0.2


async def detect_at_desk(text: str, documents: dict[str, float], **others: object) -> str:
    async def read(_groups: tuple[str, ...]) -> dict[str, float]:
        return documents

    agent = LangAgent(detector=DETECTOR, read_languages=read)
    outcome = await agent.work(Reads.model_validate({"text": text, **others}))
    assert isinstance(outcome, Wrote)
    return outcome.writes.language


@pytest.mark.parametrize(
    ("text", "documents", "language"),
    [
        ("SEPA", {"en": 40.0, "fr": 1.0}, "en"),
        ("validation", {"en": 40.0, "fr": 1.0}, "en"),
        ("pytest async client example", {"en": 40.0, "fr": 1.0}, "en"),
        ("path param vs query param", {"en": 40.0, "fr": 1.0}, "en"),
        ("SEPA", {"de": 3.0}, "de"),
    ],
)
async def test_a_short_query_is_in_the_language_of_the_documents(
    text: str, documents: dict[str, float], language: str
) -> None:
    assert await detect_at_desk(text, documents) == language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Wie lösche ich es?", "de"),
        ("contraseña olvidada", "es"),
        ("mot de passe oublié", "fr"),
        ("¿Cómo empiezo?", "es"),
        ("як почати", "uk"),
    ],
)
async def test_a_short_question_in_another_language_keeps_it(text: str, language: str) -> None:
    assert await detect_at_desk(text, {"en": 40.0}) == language


async def test_a_long_question_does_not_ask_for_the_languages_of_the_documents() -> None:
    async def read(_groups: tuple[str, ...]) -> dict[str, float]:
        raise AssertionError("a long question needs no documents")

    agent = LangAgent(detector=DETECTOR, read_languages=read)

    outcome = await agent.work(Reads(text="Wie lege ich einen neuen Benutzer an?"))

    assert isinstance(outcome, Wrote)
    assert outcome.writes.language == "de"


async def test_the_conversation_decides_before_the_documents() -> None:
    assert await detect_at_desk("SEPA", {"en": 40.0}, history=GERMAN) == "de"


async def read_english_documents(_groups: tuple[str, ...]) -> Mapping[str, float]:
    return {"en": 20}


async def detect_over_english_documents(texts: list[str]) -> list[str]:
    agent = LangAgent(
        detector=SecondOpinion(DETECTOR, FencedLangdetect(candidates=CANDIDATES)),
        read_languages=read_english_documents,
    )
    outcomes = [await agent.work(Reads(text=text)) for text in texts]
    return [outcome.writes.language for outcome in outcomes if isinstance(outcome, Wrote)]


async def test_words_of_several_languages_are_in_the_language_of_the_documents() -> None:
    detected = await detect_over_english_documents(QUESTIONS["ambiguous"])

    assert detected.count("en") >= 0.95 * len(detected)


async def test_a_short_question_that_is_clearly_in_another_language_is_answered_in_it() -> None:
    labelled = [
        (language, text)
        for language, texts in QUESTIONS.items()
        if language != "ambiguous"
        for text in texts
    ]

    detected = await detect_over_english_documents([text for _, text in labelled])

    right = sum(
        one in (language, *ALSO.get(text, ()))
        for one, (language, text) in zip(detected, labelled, strict=True)
    )
    assert right >= 0.94 * len(labelled)
