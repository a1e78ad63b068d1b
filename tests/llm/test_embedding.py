"""Embeddings of both vendors' real clients."""

from math import isclose

import pytest

from llm.call_log import record_calls
from llm.errors import ModelUnavailable, UnknownModel, UnreadableOutput
from llm.port import VectorModel
from llm.registry import Registry
from tests.llm.vendor_dialects import Dialect, OpenAI
from tests.support.model_server import ModelServer


@pytest.fixture
def embedder(registry: Registry, dialect: Dialect) -> VectorModel:
    return registry.embedder(f"{dialect.embedding_model}@{dialect.provider}")


def vector(dialect: Dialect, *numbers: float) -> list[float]:
    return [*numbers, *[0.0] * (dialect.dimensions - len(numbers))]


async def test_texts_become_vectors_of_length_one_in_their_order(
    server: ModelServer, dialect: Dialect, embedder: VectorModel
) -> None:
    server.will_send(dialect.vectors([vector(dialect, 3, 4), vector(dialect, 0, 0, 2)]))

    first, second = await embedder.embed(["one", "two"])

    assert first[:2] == [0.6, 0.8]
    assert second[2] == 1.0
    assert isclose(sum(number**2 for number in first), 1.0)
    assert embedder.dimensions == len(first) == dialect.dimensions


@pytest.mark.slow
async def test_many_texts_go_in_batches(
    server: ModelServer, dialect: Dialect, embedder: VectorModel
) -> None:
    batch = 256 if isinstance(dialect, OpenAI) else 100
    server.will_send(
        dialect.vectors([vector(dialect, 1)] * batch), dialect.vectors([vector(dialect, 0, 1)])
    )

    vectors = await embedder.embed(["text"] * (batch + 1))

    assert len(vectors) == batch + 1
    assert vectors[-1][:2] == [0, 1]
    assert len(server.received) == 2


async def test_no_text_asks_nobody(server: ModelServer, embedder: VectorModel) -> None:
    assert list(await embedder.embed([])) == []
    assert server.received == []


async def test_a_failure_that_passes_is_asked_again(
    server: ModelServer, dialect: Dialect, embedder: VectorModel
) -> None:
    server.will_send(dialect.failure(503), dialect.vectors([vector(dialect, 1)]))

    assert len(await embedder.embed(["one"])) == 1


async def test_failures_that_stay_are_reported_as_what_they_are(
    server: ModelServer, dialect: Dialect, embedder: VectorModel
) -> None:
    server.will_send(*[dialect.failure(500)] * 3, dialect.failure(404))

    with pytest.raises(ModelUnavailable):
        await embedder.embed(["one"])
    with pytest.raises(UnknownModel):
        await embedder.embed(["one"])


@pytest.mark.parametrize("numbers", [[[1.0, 2.0]], []], ids=["too short", "none"])
async def test_vectors_that_do_not_fit_are_an_error(
    server: ModelServer, dialect: Dialect, embedder: VectorModel, numbers: list[list[float]]
) -> None:
    server.will_send(dialect.vectors(numbers))

    with pytest.raises(UnreadableOutput, match=f"1 vectors of {dialect.dimensions} numbers"):
        await embedder.embed(["one"])


async def test_embedding_is_recorded_with_the_usage_that_is_known(
    server: ModelServer, dialect: Dialect, embedder: VectorModel
) -> None:
    server.will_send(dialect.vectors([vector(dialect, 1)]))

    with record_calls() as calls:
        await embedder.embed(["one"])

    tokens = 12 if isinstance(dialect, OpenAI) else 0
    assert [(call.task, call.usage.input_tokens, call.cost_usd) for call in calls] == [
        ("embed", tokens, None)
    ]
