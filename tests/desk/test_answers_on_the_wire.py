"""The whole desk with a model behind a real connection: what becomes of what the model says."""

import json
from typing import Any

import pytest

from tests.desk.conftest import OpenApp
from tests.llm.vendor_dialects import OpenAI
from tests.support.model_server import ModelServer, Response

pytestmark = pytest.mark.slow
QUESTION = "How do I configure SMS routing rules?"
VENDOR = OpenAI()
FIRST = "Open Routing > Rules and choose New rule."


def asks_the_server(server: ModelServer, *, judge: str = "gpt-4o-mini@openai") -> dict[str, object]:
    """Settings by which the writer and the judge are behind the server, and nobody else is."""
    offline = ("guardrails_model", "translation_model", "essence_model", "clarification_model")
    return {
        "gen_model": "gpt-4o-mini@openai",
        "quality_model": judge,
        "openai_api_key": "secret-key",
        "openai_base_url": VENDOR.base_url(server.url),
        "model_cache_seconds": 0,
        # The window is known, so that nobody asks the server for it.
        "model_limits": {"gpt-4o-mini@openai": {"context_window": 128_000}},
        **dict.fromkeys(offline, "offline"),
    }


def make_draft(answer: str, *, missing: str = "", status: str = "answered") -> Response:
    """A draft as the writer sends it."""
    draft = {"status": status, "answer": answer, "confidence": 0.9, "missing": missing}
    return VENDOR.answer(json.dumps(draft))


def make_judgement(
    *rejected: str, completeness: float = 1.0, decision: str = "approve"
) -> Response:
    """A judgement as the judge sends it: these words have no source, everything else has."""
    approved = [
        {"passage": number, "quote": "", "reason": "as it says", "supported": True}
        for number in range(1, 9)
    ]
    doubted = [
        {"passage": 0, "quote": item, "reason": "no source", "supported": False}
        for item in rejected
    ]
    said: dict[str, Any] = {
        "claims_read": 2,
        "analysis": "",
        "verdicts": [*doubted, *approved],
        "missing": [],
        "completeness": completeness,
        "accuracy": 1.0,
        "language_matches": True,
        "decision": decision,
    }
    return VENDOR.answer(json.dumps(said))


async def test_a_paragraph_a_yes_and_an_introduction_need_one_mark_and_one_call(
    open_app: OpenApp, server: ModelServer
) -> None:
    answer = f"Yes. {FIRST} Set conditions, routes and a priority. [1]"
    server.will_send(make_draft(answer), make_judgement())

    async with open_app(**asks_the_server(server)) as harness:
        reply = await harness.driver().say(QUESTION)

    assert (reply["outcome"], reply["text"]) == ("answered", answer)
    assert len(server.received) == 2


async def test_a_false_block_is_taken_out_after_a_second_attempt_and_what_is_missing_is_said(
    open_app: OpenApp, server: ModelServer
) -> None:
    draft = make_draft(f"{FIRST} [1]\n\nThen pay 4711 euros. [1]", missing="the price of a rule")
    server.will_send(draft, make_judgement(), draft, make_judgement())

    async with open_app(**asks_the_server(server)) as harness:
        reply = await harness.driver().say(QUESTION)

    assert reply["outcome"] == "answered"
    assert reply["text"] == (
        f"{FIRST} [1]\n\nSomething was left out here, because the sources do not say it.\n\n"
        "In the passages I found there is nothing about: the price of a rule"
    )
    assert "Then pay 4711 euros." in json.dumps(server.received[2].body)
    assert len(server.received) == 4


async def test_a_judge_that_fails_costs_no_second_answer(
    open_app: OpenApp, server: ModelServer
) -> None:
    server.will_send(
        make_draft(f"{FIRST} [1]"), VENDOR.answer("no verdict"), VENDOR.answer("no verdict")
    )

    async with open_app(**asks_the_server(server)) as harness:
        driver = harness.driver()
        reply = await driver.say(QUESTION)
        [quality] = await driver.read_writes(reply, "quality")
        journal = await driver.journal(reply)

    assert reply["outcome"] == "answered"
    assert reply["text"].startswith(f"{FIRST} [1]\n\nThis answer was checked by rules only")
    assert reply.get("quality_score") is None
    assert quality["validation_result"]["judge"].startswith("none: ")
    judged_by = [entry.fields for entry in journal if entry.fields.get("task") == "judge"]
    assert any("error" in call for call in judged_by)


async def test_an_answer_is_written_again_once_and_never_twice(
    open_app: OpenApp, server: ModelServer
) -> None:
    rounds = (
        make_draft(f"{FIRST} [1]\n\nIt is free. [1]\n\nIt is old. [1]"),
        make_judgement("It is free.", "It is old."),
    )
    server.will_send(*rounds, *rounds, *rounds)

    async with open_app(**asks_the_server(server)) as harness:
        reply = await harness.driver().say(QUESTION)

    assert reply["outcome"] == "answered"
    assert reply["text"].startswith(f"{FIRST} [1]\n\nSomething was left out")
    assert len(server.received) == 4


async def test_a_writer_that_names_no_source_is_our_fault_and_has_an_id(
    open_app: OpenApp, server: ModelServer
) -> None:
    server.will_send(*[make_draft("Elephants remember everything.")] * 3)

    async with open_app(**asks_the_server(server)) as harness:
        reply = await harness.driver().say(QUESTION)

    assert reply["outcome"] == "failed"
    assert reply["message_id"] in reply["text"]
    assert "documents" not in reply["text"]


async def test_the_writer_is_given_the_tone_and_the_form_that_the_settings_name(
    open_app: OpenApp, server: ModelServer
) -> None:
    server.will_send(make_draft(f"{FIRST} [1]"), make_judgement())
    wishes = {"domain_tone": "cheerful, first names", "domain_formatting": "no tables"}

    async with open_app(**asks_the_server(server), **wishes) as harness:
        await harness.driver().say(QUESTION)

    asked = json.dumps(server.received[0].body)
    assert "cheerful, first names" in asked
    assert "no tables" in asked
