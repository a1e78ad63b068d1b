"""A desk whose vendor fails: what people get, and what it costs."""

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

import pytest

from deploy.assembly.model_choice import USUAL_CONTEXT, find_context_tokens
from deploy.assembly.models import note_windows
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import AppHarness, settings_of
from tests.support.model_server import ModelServer, Received, Response, running_server

VENDOR = OpenAI()


QUESTION = "How do I create a routing rule?"


MODEL = "gpt-4o-mini@openai"


class OpenApp(Protocol):
    def __call__(self, **changes: object) -> AbstractAsyncContextManager[AppHarness]: ...


def settings_for(server: ModelServer, **changes: object) -> dict[str, object]:
    return {
        "gen_model": MODEL,
        "openai_api_key": "sk-of-this-test",
        "openai_base_url": f"{server.url}/v1",
        "model_patience_seconds": 0.2,
        **changes,
    }


@pytest.mark.parametrize("status", [429, 500])
async def test_a_vendor_that_always_fails_leaves_the_passages_of_the_search_with_the_reason(
    server: ModelServer, open_app: OpenApp, status: int
) -> None:
    server.will_send(*[VENDOR.failure(status)] * 40)

    async with open_app(**settings_for(server)) as app:
        talk = app.driver()
        reply = await talk.say(QUESTION)
        journal = await talk.journal(reply)

    assert (reply["outcome"], reply["answered_by"]) == ("answered", "search")
    assert reply["fallback_reason"] == ("too_busy" if status == 429 else "unavailable")
    # Two calls, the understanding and the answer, each repeated once.
    assert len(server.received) == 4
    errors = [str(entry.fields.get("error")) for entry in journal if entry.kind == "model_call"]
    assert errors
    assert all(str(status) in error for error in errors)
    runs = [entry.fields["role"] for entry in journal if entry.kind == "agent_run"]
    assert len(runs) == len(set(runs))  # no agent runs again for the error of a model


NO_CHOICE = Response(body=b'{"object": "chat.completion", "result": "blue"}')
PAGE = Response(body=b"<html><title>Sign in</title></html>", content_type="text/html")
TOO_LONG = Response(400, b'{"error": {"message": "maximum context length is 8 tokens"}}')


@pytest.mark.parametrize(
    ("response", "reason", "requests", "notice"),
    [
        (NO_CHOICE, "unreadable", 4, "could not be read"),
        (PAGE, "misconfigured", 2, "not set up correctly"),
        # The understanding, the answer, and the answer from fewer sources.
        (TOO_LONG, "too_long", 3, "longer than the model can read"),
    ],
    ids=["no choice", "page", "too long"],
)
async def test_a_server_that_is_not_understood_leaves_the_passages_with_the_true_reason(
    server: ModelServer,
    open_app: OpenApp,
    response: Response,
    reason: str,
    requests: int,
    notice: str,
) -> None:
    server.will_send(*[response] * 40)

    async with open_app(**settings_for(server)) as app:
        reply = await app.driver().say(QUESTION)

    assert (reply["outcome"], reply["fallback_reason"]) == ("answered", reason)
    assert notice in reply["text"]
    assert len(server.received) == requests


async def test_a_key_that_is_refused_later_is_named_in_the_journal_and_costs_one_request(
    server: ModelServer, open_app: OpenApp
) -> None:
    server.will_send(*[VENDOR.failure(401)] * 40)

    async with open_app(**settings_for(server)) as app:
        talk = app.driver()
        reply = await talk.say(QUESTION)
        journal = await talk.journal(reply)

    assert (reply["outcome"], reply["fallback_reason"]) == ("answered", "bad_key")
    assert len(server.received) == 1
    fields = " ".join(str(entry.fields) for entry in journal if entry.kind == "model_call")
    assert "MissingKey" in fields
    assert "OPENAI_API_KEY" in fields
    assert "sk-of-this-test" not in fields


async def test_a_vendor_that_hangs_is_asked_twice_at_most_and_costs_not_the_question(
    server: ModelServer, open_app: OpenApp
) -> None:
    server.will_send(*[Response(ends="never")] * 10)

    async with open_app(**settings_for(server, model_timeout_seconds=0.5)) as app:
        talk = app.driver()
        reply = await talk.say(QUESTION)
        journal = await talk.journal(reply)

    assert (reply["outcome"], reply["fallback_reason"]) == ("answered", "too_slow")
    errors = [str(entry.fields["error"]) for entry in journal if entry.kind == "model_call"]
    assert [error.partition(":")[0] for error in errors] == ["ModelTimeout"] * 2
    # On a slow machine a call may run out of time before its request is sent.
    assert len(server.received) <= 2


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


class ShortSighted(ModelServer):
    """Has a window of 8,192 tokens, as it says where llama.cpp's server says it."""

    def choose_response(self, received: Received) -> Response:
        assert received.path == "/props"
        return Response(body=json.dumps({"default_generation_settings": {"n_ctx": 8192}}).encode())


async def test_a_small_window_makes_the_context_of_an_answer_small(tmp_path: Path) -> None:
    short_sighted = ShortSighted("")
    short_sighted.lists_models = False
    async with running_server(short_sighted) as server:
        settings = settings_of(
            tmp_path,
            gen_model="qwen3@llamacpp",
            compatible_servers={"llamacpp": {"base_url": f"{server.url}/v1"}},
        )
        sized = await note_windows(settings)

    assert find_context_tokens(settings) == USUAL_CONTEXT
    assert find_context_tokens(sized) == 8192 // 3


async def test_a_window_that_the_owner_states_is_not_looked_up(tmp_path: Path) -> None:
    limits = {"qwen3@llamacpp": {"context_window": 32_000}}
    settings = settings_of(
        tmp_path,
        gen_model="qwen3@llamacpp",
        compatible_servers={"llamacpp": {"base_url": "http://127.0.0.1:9/v1"}},
        model_limits=limits,
    )

    assert find_context_tokens(await note_windows(settings)) == USUAL_CONTEXT
