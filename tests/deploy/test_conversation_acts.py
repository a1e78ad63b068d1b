"""Conversations of several turns over the example documents: by rules, and with a model."""

import json
from typing import Any

import pytest

from tests.deploy.conftest import OpenApp
from tests.deploy.test_asking_back import make_model
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import ConversationDriver, options
from tests.support.model_server import ModelServer, Response

pytestmark = pytest.mark.slow
VENDOR = OpenAI()
QUESTION = "How do I configure SMS routing rules?"
FIRST = "Open Routing > Rules and choose New rule."


def asks_for_essence(server: ModelServer) -> dict[str, object]:
    """Settings by which essence and the writer ask the server, and every other task the rules."""
    offline = ("guardrails_model", "translation_model", "quality_model", "clarification_model")
    return {
        "gen_model": "gpt-4o-mini@openai",
        "openai_api_key": "secret-key",
        "openai_base_url": VENDOR.base_url(server.url),
        "model_cache_seconds": 0,
        **dict.fromkeys(offline, "offline"),
    }


def make_understanding(question: str, **changes: Any) -> Response:
    """The essence of a turn as a model sends it."""
    plain: dict[str, Any] = {"canonical_question": question, "context_type": "follow_up"}
    return VENDOR.answer(json.dumps(plain | changes))


def make_draft(answer: str) -> Response:
    """A draft as the writer sends it."""
    draft = {"status": "answered", "answer": answer, "confidence": 0.9, "missing": ""}
    return VENDOR.answer(json.dumps(draft))


async def talk(driver: ConversationDriver, *turns: str) -> list[dict[str, Any]]:
    return [await driver.say(turn) for turn in turns]


FOUR = (
    "How do I test a routing rule?",
    "How do I create a webhook?",
    "What is error 4029?",
    "How do I rent a number?",
)


async def test_related_questions_in_one_message_are_both_answered_by_a_model(
    open_app: OpenApp, server: ModelServer
) -> None:
    turn = "How do I create a routing rule? And how many conditions may a rule have?"
    understood = make_understanding(turn, context_type="new_topic")
    judged = {
        "claims_read": 2, "analysis": "", "verdicts": [], "missing": [], "completeness": 1.0,
        "accuracy": 1.0, "language_matches": True, "decision": "approve",
    }  # fmt: skip
    draft = make_draft(f"{FIRST} [1]\n\nA rule may have up to 8 conditions. [1]")
    server.will_send(understood, draft, VENDOR.answer(json.dumps(judged)))
    settings = asks_for_essence(server) | {"quality_model": "gpt-4o-mini@openai"}

    async with open_app(**settings) as harness:
        reply = await harness.driver().say(turn)

    understands, writes, _ = (str(VENDOR.said(one)) for one in server.received)
    assert turn in understands
    assert turn in writes
    assert reply["outcome"] == "answered"
    assert "New rule" in reply["text"]
    assert "up to 8 conditions" in reply["text"]


async def test_thanks_leave_an_open_choice_open(open_app: OpenApp) -> None:
    async with open_app(make_model()) as harness:
        asked, _, chosen = await talk(harness.driver(), "How do I set it up?", "thanks", "2")

    assert chosen["question"] == f"How do I set it up? ({options(asked)[1]})"


async def test_a_rephrased_answer_repeats_the_question_whatever_the_model_makes_of_it(
    open_app: OpenApp, server: ModelServer
) -> None:
    server.will_send(
        make_understanding(QUESTION, context_type="new_topic"),
        make_draft(f"{FIRST} [1]"),
        make_understanding("Write a poem.", act="rephrase", style="simpler"),
        make_draft(f"{FIRST} [1]"),
    )

    async with open_app(**asks_for_essence(server)) as harness:
        driver = harness.driver()
        _, simpler = await talk(driver, QUESTION, "could you put this so that my boss gets it")

    assert (simpler["outcome"], simpler["question"]) == ("answered", QUESTION)
    assert "everyday words" in str(server.received[3].body)
