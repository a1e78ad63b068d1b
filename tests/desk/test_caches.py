"""A question that was asked before is neither searched for nor paid again, whoever asks it."""

import json

import pytest

from tests.desk.conftest import OpenApp
from tests.desk.test_answers_on_the_wire import (
    VENDOR,
    asks_the_server,
    make_draft,
    make_judgement,
)
from tests.support.model_server import ModelServer

pytestmark = pytest.mark.slow

CLEAR = "How do I configure SMS routing rules?"
GERMAN = "Wie konfiguriere ich die Regeln für das Routing von SMS?"
ANSWER = "Öffnen Sie Routing > Rules und wählen Sie New rule."


@pytest.mark.parametrize(("seconds", "from_cache"), [(600, True), (0, False)])
async def test_the_journal_shows_whether_a_search_was_found_in_the_cache(
    open_app: OpenApp, seconds: int, from_cache: bool
) -> None:
    async with open_app(search_cache_seconds=seconds) as harness:
        first, second = harness.driver(), harness.driver()
        answered = await first.say(CLEAR)
        again = await second.say(CLEAR)
        [searched] = await first.read_writes(answered, "search")
        [repeated] = await second.read_writes(again, "search")

    assert searched["search_stats"]["from_cache"] is False
    assert repeated["search_stats"]["from_cache"] is from_cache
    assert again["text"] == answered["text"]


async def test_translation_answer_and_judgement_of_an_equal_question_are_paid_once(
    open_app: OpenApp, server: ModelServer
) -> None:
    translated = {"text_eng": CLEAR, "confidence": 0.9, "corrections": []}
    server.will_send(
        VENDOR.answer(json.dumps(translated)), make_draft(f"{ANSWER} [1]"), make_judgement()
    )
    settings = {**asks_the_server(server), "translation_model": "gpt-4o-mini@openai"}
    settings["model_cache_seconds"] = 600

    async with open_app(**settings) as harness:
        paid = await harness.driver().say(GERMAN)
        shared = await harness.driver().say(GERMAN)

    assert (paid["outcome"], shared["text"]) == ("answered", paid["text"])
    assert len(server.received) == 3
    assert (paid["model_usage"]["calls"], "cache_hits" in paid["model_usage"]) == (3, False)
    assert (shared["model_usage"]["calls"], shared["model_usage"]["cache_hits"]) == (0, 3)
    assert shared["model_usage"]["saved_usd"] == paid["model_usage"]["cost_usd"]
