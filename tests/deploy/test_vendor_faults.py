"""A desk whose vendor fails: what people get, and what it costs."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import pytest

from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import AppHarness
from tests.support.model_server import ModelServer, Response, running_server

VENDOR = OpenAI()
QUESTION = "How do I create a routing rule?"
MODEL = "gpt-4o-mini@openai"


class OpenApp(Protocol):
    def __call__(self, **changes: object) -> AbstractAsyncContextManager[AppHarness]: ...


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with running_server() as server:
        yield server


def settings_for(server: ModelServer, **changes: object) -> dict[str, object]:
    return {
        "gen_model": MODEL,
        "openai_api_key": "sk-of-this-test",
        "openai_base_url": f"{server.url}/v1",
        "model_patience_seconds": 0.2,
        **changes,
    }


@pytest.mark.parametrize("status", [429, 500])
async def test_a_vendor_that_always_fails_costs_a_question_two_requests_and_the_rules_answer(
    server: ModelServer, open_app: OpenApp, status: int
) -> None:
    server.will_send(*[VENDOR.failure(status)] * 40)

    async with open_app(**settings_for(server)) as app:
        reply = await app.driver().say(QUESTION)

    assert (reply["outcome"], reply["model"]) == ("answered", "offline")
    assert len(server.received) == 2


async def test_without_a_last_resort_a_failing_vendor_is_reported_at_once_and_not_asked_again(
    server: ModelServer, open_app: OpenApp
) -> None:
    server.will_send(*[VENDOR.failure(500)] * 40)

    async with open_app(**settings_for(server, model_last_resort="")) as app:
        talk = app.driver()
        reply = await talk.say(QUESTION)
        journal = await talk.journal(reply)

    assert reply["outcome"] == "failed"
    assert len(server.received) == 2
    errors = [str(entry.fields.get("error")) for entry in journal if entry.kind == "model_call"]
    assert errors
    assert all("status 500" in error for error in errors)


async def test_without_a_last_resort_no_agent_runs_again_for_the_error_of_a_model(
    server: ModelServer, open_app: OpenApp
) -> None:
    server.will_send(*[VENDOR.failure(500)] * 40)

    async with open_app(**settings_for(server, model_last_resort="")) as app:
        driver = app.driver()
        reply = await driver.say("Wie lege ich eine Weiterleitungsregel an?")
        journal = await driver.journal(reply)
        [translation] = await driver.read_writes(reply, "translation")

    runs = [(e.fields["role"], e.fields["status"]) for e in journal if e.kind == "agent_run"]
    assert runs[:4] == [
        (role, "completed") for role in ("lang", "translation", "essence", "guardrails")
    ]
    assert len(runs) == len({role for role, _ in runs})
    assert "status 500" in translation["model_error"]


async def test_a_key_that_is_refused_later_is_named_in_the_journal_and_costs_one_request(
    server: ModelServer, open_app: OpenApp
) -> None:
    server.will_send(*[VENDOR.failure(401)] * 40)

    async with open_app(**settings_for(server)) as app:
        talk = app.driver()
        reply = await talk.say(QUESTION)
        journal = await talk.journal(reply)

    assert (reply["outcome"], reply["model"]) == ("answered", "offline")
    assert len(server.received) == 1
    fields = " ".join(str(entry.fields) for entry in journal if entry.kind == "model_call")
    assert "MissingKey" in fields
    assert "OPENAI_API_KEY" in fields
    assert "sk-of-this-test" not in fields


async def test_a_vendor_that_hangs_costs_its_own_call_and_not_the_question(
    server: ModelServer, open_app: OpenApp
) -> None:
    server.will_send(*[Response(ends="never")] * 10)

    async with open_app(**settings_for(server, model_timeout_seconds=0.5)) as app:
        reply = await app.driver().say(QUESTION)

    assert (reply["outcome"], reply["model"]) == ("answered", "offline")
    assert len(server.received) == 1


async def test_a_reply_reports_the_usage_of_its_models(
    server: ModelServer, open_app: OpenApp
) -> None:
    # The translation is answered by the vendor; everything after it by the rules.
    translated = VENDOR.answer('{"text_eng": "How do I create a routing rule?", "confidence": 1.0}')
    server.will_send(translated, translated)
    names = ("gen_model", "translation_model")
    models = dict(zip(names, ("offline", MODEL), strict=True))

    async with open_app(**settings_for(server, **models)) as app:
        reply = await app.driver().say(QUESTION)
        again = await app.driver().say(QUESTION)

    assert len(server.received) == 1
    usage, hit = reply["model_usage"], again["model_usage"]
    assert (usage["calls"], usage["input_tokens"], usage["output_tokens"]) == (1, 100, 20)
    assert usage["cost_usd"] is None
    assert (hit["calls"], hit["input_tokens"], hit["cache_hits"]) == (0, 0, 1)
