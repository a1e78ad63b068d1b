"""The whole desk with a model behind a real connection: what becomes of what the model says."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.deploy.conftest import OpenApp
from tests.llm.vendor_dialects import OpenAI
from tests.support.model_server import ModelServer, Response, running_server

pytestmark = pytest.mark.slow
QUESTION = "How do I configure SMS routing rules?"
VENDOR = OpenAI()
FIRST = "Open Routing > Rules and choose New rule."


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with running_server() as server:
        yield server


def asks_the_server(server: ModelServer, *, judge: str = "gpt-4o-mini@openai") -> dict[str, object]:
    """Settings by which the writer and the judge are behind the server, and nobody else is."""
    offline = ("guardrails_model", "translation_model", "essence_model", "clarification_model")
    return {
        "gen_model": "gpt-4o-mini@openai",
        "quality_model": judge,
        "openai_api_key": "secret-key",
        "openai_base_url": VENDOR.base_url(server.url),
        "model_cache_seconds": 0,
        **dict.fromkeys(offline, "offline"),
    }


def make_draft(answer: str, *, missing: str = "", status: str = "answered") -> Response:
    """A draft as the writer sends it."""
    draft = {"status": status, "answer": answer, "confidence": 0.9, "missing": missing}
    return VENDOR.answer(json.dumps(draft))


def make_judgement(
    *supported: bool, completeness: float = 1.0, decision: str = "approve"
) -> Response:
    """A judgement as the judge sends it."""
    verdicts = [
        {"number": number, "reason": "as it says", "support": float(one), "supported": one}
        for number, one in enumerate(supported, start=1)
    ]
    said: dict[str, Any] = {
        "analysis": "",
        "verdicts": verdicts,
        "missing": [],
        "completeness": completeness,
        "language_matches": True,
        "decision": decision,
    }
    return VENDOR.answer(json.dumps(said))


async def test_a_paragraph_a_yes_and_an_introduction_need_one_mark_and_one_call(
    open_app: OpenApp, server: ModelServer
) -> None:
    answer = f"Yes. {FIRST} Set conditions, routes and a priority. [1]"
    server.will_send(make_draft(answer), make_judgement(True, True))

    async with open_app(**asks_the_server(server)) as harness:
        reply = await harness.driver().say(QUESTION)

    assert (reply["outcome"], reply["text"]) == ("answered", answer)
    assert len(server.received) == 2


async def test_a_false_sentence_is_taken_out_and_what_is_missing_is_reported(
    open_app: OpenApp, server: ModelServer
) -> None:
    answer = f"{FIRST} [1] Then pay 40 euros. [1]"
    server.will_send(make_draft(answer, missing="the price of a rule"), make_judgement(True, False))

    async with open_app(**asks_the_server(server)) as harness:
        reply = await harness.driver().say(QUESTION)

    assert reply["outcome"] == "answered"
    assert reply["text"] == f"{FIRST} [1]\n\nThe documents do not say: the price of a rule"
    assert len(server.received) == 2


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

    assert (reply["outcome"], reply["text"]) == ("answered", f"{FIRST} [1]")
    assert quality["validation_result"]["judge"].startswith("offline")
    judged_by = [entry.fields for entry in journal if entry.fields.get("task") == "judge"]
    assert [call["model"] for call in judged_by][-1] == "offline"
    assert any("error" in call for call in judged_by)


async def test_an_answer_is_written_again_once_and_never_twice(
    open_app: OpenApp, server: ModelServer
) -> None:
    rounds = (
        make_draft(f"{FIRST} [1] It is free. [1] It is old. [1]"),
        make_judgement(True, False, False),
    )
    server.will_send(*rounds, *rounds, *rounds)

    async with open_app(**asks_the_server(server)) as harness:
        reply = await harness.driver().say(QUESTION)

    assert (reply["outcome"], reply["text"]) == ("answered", f"{FIRST} [1]")
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
    server.will_send(make_draft(f"{FIRST} [1]"), make_judgement(True))
    wishes = {"domain_tone": "cheerful, first names", "domain_formatting": "no tables"}

    async with open_app(**asks_the_server(server), **wishes) as harness:
        await harness.driver().say(QUESTION)

    asked = json.dumps(server.received[0].body)
    assert "cheerful, first names" in asked
    assert "no tables" in asked
