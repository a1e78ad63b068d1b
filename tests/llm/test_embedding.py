"""Embeddings of both vendors' real clients."""

import json
from math import isclose
from typing import cast

import pytest

from envelope.run import OUTSIDE
from llm.errors import ModelUnavailable, UnknownModel, UnreadableOutput
from llm.port import record_calls
from llm.registry import Registry
from llm.vendors.embeddings import VendorEmbedder, choose_size
from tests.llm.vendor_dialects import Dialect, OpenAI
from tests.support.model_server import ModelServer, Response


@pytest.fixture
def embedder(registry: Registry, dialect: Dialect) -> VendorEmbedder:
    return registry.embedder(f"{dialect.embedding_model}@{dialect.provider}")


def vector(dialect: Dialect, *numbers: float) -> list[float]:
    return [*numbers, *[0.0] * (dialect.dimensions - len(numbers))]


async def test_texts_become_vectors_of_length_one_in_their_order(
    server: ModelServer, dialect: Dialect, embedder: VendorEmbedder
) -> None:
    server.will_send(dialect.vectors([vector(dialect, 3, 4), vector(dialect, 0, 0, 2)]))

    first, second = await embedder.embed(["one", "two"], OUTSIDE)

    assert first[:2] == [0.6, 0.8]
    assert second[2] == 1.0
    assert isclose(sum(number**2 for number in first), 1.0)
    assert embedder.dimensions == len(first) == dialect.dimensions


@pytest.mark.slow
async def test_many_texts_go_in_batches(
    server: ModelServer, dialect: Dialect, embedder: VendorEmbedder
) -> None:
    batch = 256 if isinstance(dialect, OpenAI) else 100
    server.will_send(
        dialect.vectors([vector(dialect, 1)] * batch), dialect.vectors([vector(dialect, 0, 1)])
    )

    vectors = await embedder.embed(["text"] * (batch + 1), OUTSIDE)

    assert len(vectors) == batch + 1
    assert vectors[-1][:2] == [0, 1]
    assert len(server.received) == 2


async def test_no_request_is_sent_without_texts(
    server: ModelServer, embedder: VendorEmbedder
) -> None:
    assert list(await embedder.embed([], OUTSIDE)) == []
    assert server.received == []


async def test_a_failure_is_retried_and_a_permanent_one_is_reported_with_its_type(
    server: ModelServer, dialect: Dialect, embedder: VendorEmbedder
) -> None:
    passes = dialect.failure(503), dialect.vectors([vector(dialect, 1)])
    server.will_send(*passes, *[dialect.failure(500)] * 3, dialect.failure(404))

    assert len(await embedder.embed(["one"], OUTSIDE)) == 1
    for expected in (ModelUnavailable, UnknownModel):
        with pytest.raises(expected):
            await embedder.embed(["one"], OUTSIDE)


@pytest.mark.parametrize("numbers", [[[1.0, 2.0]], []], ids=["too short", "none"])
async def test_vectors_that_do_not_fit_are_an_error(
    server: ModelServer, dialect: Dialect, embedder: VendorEmbedder, numbers: list[list[float]]
) -> None:
    server.will_send(dialect.vectors(numbers))

    with pytest.raises(UnreadableOutput, match=f"1 vectors with {dialect.dimensions} dim"):
        await embedder.embed(["one"], OUTSIDE)


@pytest.mark.parametrize(
    "indexes",
    [[2, 0, 1], [34, 32, 33], [0, 0, 0], [None] * 3],
    ids=["moved", "of all", "same", "no"],
)
async def test_vectors_belong_to_the_texts_that_their_indexes_name(
    server: ModelServer, registry: Registry, indexes: list[int | None]
) -> None:
    order = indexes if len(set(indexes)) == 3 else [0, 1, 2]
    rows = [
        {"index": index, "embedding": [1.0, float(cast("int", place) % 32)]}
        for index, place in zip(indexes, order, strict=True)
    ]
    server.will_send(Response(body=json.dumps({"data": rows}).encode()))

    vectors = await registry.embedder("small@openai", 2).embed(["a", "b", "c"], OUTSIDE)

    assert [round(second / first) for first, second in vectors] == [0, 1, 2]


async def test_vectors_of_which_two_claim_one_text_are_unreadable(
    server: ModelServer, registry: Registry
) -> None:
    rows = [{"index": index, "embedding": [1.0, 2.0]} for index in (0, 0, 2)]
    server.will_send(Response(body=json.dumps({"data": rows}).encode()))

    with pytest.raises(UnreadableOutput, match="indexes"):
        await registry.embedder("small@openai", 2).embed(["a", "b", "c"], OUTSIDE)


async def test_embedding_is_recorded_with_the_usage_that_is_known(
    server: ModelServer, dialect: Dialect, embedder: VendorEmbedder
) -> None:
    server.will_send(dialect.vectors([vector(dialect, 1)]))

    with record_calls() as calls:
        await embedder.embed(["one"], OUTSIDE)

    tokens = 12 if isinstance(dialect, OpenAI) else 0
    assert [(call.task, call.usage.input_tokens, call.cost_usd) for call in calls] == [
        ("embed", tokens, None)
    ]


async def test_a_request_states_whether_it_embeds_questions_or_documents(
    server: ModelServer, dialect: Dialect, embedder: VendorEmbedder
) -> None:
    server.will_send(*[dialect.vectors([vector(dialect, 1)])] * 2)

    await embedder.embed(["one"], OUTSIDE, are_questions=True)
    await embedder.embed(["one"], OUTSIDE)

    asked, stored = (request.body for request in server.received)
    if isinstance(dialect, OpenAI):
        assert asked == stored
        assert embedder.forms == ""
    else:
        tasks = [body["requests"][0]["taskType"] for body in (asked, stored)]
        assert tasks == ["RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT"]
        assert embedder.forms == "RETRIEVAL_QUERY and RETRIEVAL_DOCUMENT"


async def test_fewer_numbers_are_asked_for_and_checked(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    short = registry.embedder(f"{dialect.embedding_model}@{dialect.provider}", 3)
    server.will_send(dialect.vectors([[3.0, 4.0, 0.0]]), dialect.vectors([vector(dialect, 1)]))

    assert list(await short.embed(["one"], OUTSIDE)) == [[0.6, 0.8, 0.0]]
    body = server.received[0].body
    asked = (
        body["dimensions"]
        if isinstance(dialect, OpenAI)
        else body["requests"][0]["outputDimensionality"]
    )
    assert asked == short.dimensions == 3
    with pytest.raises(UnreadableOutput, match="1 vectors with 3 dimensions"):
        await short.embed(["one"], OUTSIDE)


async def test_the_usual_length_is_not_asked_for(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    name = f"{dialect.embedding_model}@{dialect.provider}"
    server.will_send(dialect.vectors([vector(dialect, 1)]))

    await registry.embedder(name, dialect.dimensions).embed(["one"], OUTSIDE)

    assert "dimension" not in str(server.received[0].body).lower()


def test_the_length_of_the_vectors_is_known_for_each_listed_model() -> None:
    assert choose_size("Qwen/Qwen3-Embedding-8B", None).dimensions == 4096


@pytest.mark.parametrize(
    ("model", "dimensions", "expected"),
    [
        ("text-embedding-ada-002@openai", 512, "EMBEDDING_DIMENSIONS=1536 for"),
        ("text-embedding-3-small@openai", 4000, "EMBEDDING_DIMENSIONS=1536, or fewer"),
        ("own-model@openai", None, "set EMBEDDING_DIMENSIONS to the length"),
    ],
)
async def test_an_impossible_length_is_refused_before_anything_is_asked(
    server: ModelServer, registry: Registry, model: str, dimensions: int | None, expected: str
) -> None:
    with pytest.raises(UnknownModel, match=expected):
        registry.embedder(model, dimensions)
    assert server.received == []


async def test_a_model_that_is_not_in_the_table_needs_its_length_and_is_not_asked_for_it(
    server: ModelServer, registry: Registry
) -> None:
    server.will_send(OpenAI().vectors([[0.0, 2.0]]))

    assert list(await registry.embedder("own-model@openai", 2).embed(["one"], OUTSIDE)) == [
        [0.0, 1.0]
    ]
    assert "dimensions" not in server.received[0].body
