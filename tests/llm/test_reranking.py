"""Rerankers over HTTP: the forms that servers have, and the ways in which they fail."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from envelope.run import OUTSIDE
from llm.errors import (
    MissingKey,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
    UnknownProvider,
    UnreadableOutput,
    WrongAddress,
)
from llm.port import ScoreModel, record_calls
from llm.registry import Registry
from llm.vendors.catalogue import VendorAccess
from llm.vendors.model_transport import LEAST_FAILURES
from llm.vendors.reranking import LARGEST_REPLY
from tests.support.model_server import ModelServer, Response

QUESTION = "How long is the vacation?"
TEXTS = ["Salaries.", "Thirty days of vacation.", "Sick leave."]
SCORES = [0.125, 0.75, 0.5]
SECONDS = 10.0
SCORED = [{"index": 1, "score": 0.75}, {"index": 2, "score": 0.5}, {"index": 0, "score": 0.125}]
RELEVANT = [{"index": item["index"], "relevance_score": item["score"]} for item in SCORED]
MISSING_TEXTS = Response(
    422, b"Failed to deserialize the JSON body into the target type: missing field `texts`"
)


def make_reply(body: object) -> Response:
    return Response(body=json.dumps(body).encode())


COHERE = make_reply({"id": "1", "results": RELEVANT, "meta": {"billed_units": {"search_units": 1}}})
JINA = make_reply({"model": "m", "results": RELEVANT, "usage": {"total_tokens": 40}})
VOYAGE = make_reply({"object": "list", "data": RELEVANT, "usage": {"total_tokens": 40}})
TEI = make_reply(SCORED)


@pytest.fixture
async def registry(server: ModelServer) -> AsyncIterator[Registry]:
    access = VendorAccess("secret-key", f"{server.url}/v1")
    names = ("cohere", "jina", "voyage", "ours", "openai")
    registry = Registry(access=dict.fromkeys(names, access))
    yield registry
    await registry.close()


@pytest.fixture
def reranker(registry: Registry) -> ScoreModel:
    return registry.reranker("m@ours", SECONDS)


@pytest.mark.parametrize(
    ("provider", "answer", "further"),
    [
        ("cohere", COHERE, {}),
        ("jina", JINA, {"return_documents": False}),
        ("voyage", VOYAGE, {}),
        ("ours", JINA, {}),
    ],
)
async def test_the_scores_are_in_the_order_of_the_texts_whatever_the_form_of_the_vendor(
    server: ModelServer,
    registry: Registry,
    provider: str,
    answer: Response,
    further: dict[str, object],
) -> None:
    server.will_send(answer)

    scores = await registry.reranker(f"m@{provider}", SECONDS).score(QUESTION, TEXTS, OUTSIDE)

    [request] = server.received
    assert list(scores) == SCORES
    assert (request.method, request.path) == ("POST", "/v1/rerank")
    assert request.headers["authorization"] == "Bearer secret-key"
    assert request.body == {"model": "m", "query": QUESTION, "documents": TEXTS, **further}


async def test_a_server_of_the_other_form_is_asked_in_it_from_then_on(
    server: ModelServer, reranker: ScoreModel
) -> None:
    server.will_send(MISSING_TEXTS, TEI, TEI)

    first = await reranker.score(QUESTION, TEXTS, OUTSIDE)
    second = await reranker.score(QUESTION, TEXTS, OUTSIDE)

    assert list(first) == list(second) == SCORES
    assert ["texts" in received.body for received in server.received] == [False, True, True]


@pytest.mark.parametrize(
    ("provider", "answer", "tokens"), [("cohere", COHERE, 0), ("jina", JINA, 40), ("ours", TEI, 0)]
)
async def test_a_call_is_recorded_with_the_tokens_that_are_known_and_no_invented_price(
    server: ModelServer, registry: Registry, provider: str, answer: Response, tokens: int
) -> None:
    server.will_send(answer)

    with record_calls() as calls:
        await registry.reranker(f"m@{provider}", SECONDS).score(QUESTION, TEXTS, OUTSIDE)

    [call] = calls
    assert (call.task, call.model, call.error) == ("rerank", f"m@{provider}", None)
    assert (call.usage.input_tokens, call.cost_usd) == (tokens, None)


def reply_with(*indexes: Any, score: object = 0.5) -> Response:
    return make_reply(
        {"results": [{"index": index, "relevance_score": score} for index in indexes]}
    )


@pytest.mark.parametrize(
    "answer",
    [
        reply_with(0, 1),
        reply_with(0, 1, 2, 3),
        reply_with(0, 1, 1),
        reply_with(0, 1, 2, 2),
        reply_with(0, 1, 3),
        reply_with(0, 1, -1),
        reply_with(0, 1, "x"),
        reply_with(0, 1, 2, score=None),
        reply_with(0, 1, 2, score=float("nan")),
        reply_with(0, 1, 2, score=float("inf")),
        make_reply({"results": None}),
        make_reply("scores"),
        Response(body=b"<html>"),
        Response(body=b""),
        Response(body=b"[" * 100_000),
        Response(body=b" " * (LARGEST_REPLY + 1)),
    ],
    ids=[
        "too few", "too many", "twice", "too many, one twice", "unknown index",
        "negative index", "no index", "no score",
        "no number", "infinite", "no list", "text", "a page", "nothing", "nested", "too long",
    ],
)  # fmt: skip
async def test_a_reply_that_does_not_score_every_text_once_is_an_error_and_costs_something(
    server: ModelServer, reranker: ScoreModel, answer: Response
) -> None:
    server.will_send(answer)

    with record_calls() as calls, pytest.raises(UnreadableOutput, match="'m"):
        await reranker.score(QUESTION, TEXTS, OUTSIDE)

    [call] = calls
    assert call.error is not None
    assert call.cost_usd is None
    assert "vacation" not in call.error


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Response(500), ModelUnavailable),
        (Response(429), RateLimited),
        (Response(401), MissingKey),
        (Response(ends="cut"), ModelUnavailable),
    ],
    ids=["failure", "rate", "key", "cut"],
)
async def test_a_server_that_keeps_failing_is_left_alone_for_a_while(
    server: ModelServer, reranker: ScoreModel, answer: Response, error: type[ModelError]
) -> None:
    server.will_send(*[answer] * LEAST_FAILURES)

    for _ in range(LEAST_FAILURES + 1):
        with pytest.raises(error):
            await reranker.score(QUESTION, TEXTS, OUTSIDE)

    # A refused key is refused the next time, too.
    assert len(server.received) == (1 if error is MissingKey else LEAST_FAILURES)


async def test_a_redirect_is_not_followed(server: ModelServer, reranker: ScoreModel) -> None:
    server.will_send(Response(302, headers={"location": f"{server.url}/elsewhere"}), TEI)

    with pytest.raises(WrongAddress, match="302"):
        await reranker.score(QUESTION, TEXTS, OUTSIDE)

    assert len(server.received) == 1


async def test_a_server_that_hangs_is_given_up_in_time_and_left_alone(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(*[Response(ends="never")] * LEAST_FAILURES)
    reranker = registry.reranker("m@ours", 0.05)

    for _ in range(LEAST_FAILURES + 1):
        with pytest.raises(ModelTimeout, match=r"within 0\.05 s"):
            await reranker.score(QUESTION, TEXTS, OUTSIDE)

    assert len(server.received) == LEAST_FAILURES


async def test_a_cancelled_search_does_not_count_against_the_vendor(
    server: ModelServer, reranker: ScoreModel
) -> None:
    server.will_send(Response(ends="never"), TEI)

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(reranker.score(QUESTION, TEXTS, OUTSIDE))
        await server.was_asked.wait()
        task.cancel()

    assert list(await reranker.score(QUESTION, TEXTS, OUTSIDE)) == SCORES


@pytest.mark.parametrize(
    "setting", ["offline", "m@openai", "m@cohere,m@jina", "m@nobody", "m", "@cohere"]
)
def test_a_setting_that_names_no_reranker_is_refused(registry: Registry, setting: str) -> None:
    with pytest.raises(UnknownProvider, match=r"cohere.*jina"):
        registry.reranker(setting, SECONDS)


def test_a_vendor_that_only_reranks_answers_no_question(registry: Registry) -> None:
    with pytest.raises(UnknownProvider, match="'m@cohere' is a reranker"):
        registry.model("m@cohere")
