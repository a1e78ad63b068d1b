"""Streamed answers of both vendors' real clients."""

import pytest

from llm.call_log import record_calls
from llm.errors import ModelUnavailable, RateLimited
from llm.port import ModelCall, StreamingModel, Usage
from llm.registry import Registry
from tests.llm.sample_task import COLOUR, SKY
from tests.llm.vendor_dialects import Dialect
from tests.support.model_server import ModelServer, Response

PIECES = ('{"name": ', '"blue"', "}")


class Streamed:
    """What came of a stream: its pieces, also when it broke, and the calls that were recorded."""

    def __init__(self, registry: Registry, dialect: Dialect) -> None:
        model = registry.model(f"{dialect.model}@{dialect.provider}")
        assert isinstance(model, StreamingModel)
        self.pieces: list[str] = []
        self.calls: list[ModelCall] = []
        self._model = model

    async def run(self) -> None:
        with record_calls() as self.calls:
            async for piece in self._model.stream(COLOUR, SKY):
                self.pieces.append(piece)


@pytest.fixture
def streamed(registry: Registry, dialect: Dialect) -> Streamed:
    return Streamed(registry, dialect)


async def test_a_stream_yields_the_pieces_and_records_what_it_took(
    server: ModelServer, dialect: Dialect, streamed: Streamed
) -> None:
    server.will_send(dialect.stream(*PIECES))

    await streamed.run()

    assert tuple(streamed.pieces) == PIECES
    assert [(call.usage, call.error) for call in streamed.calls] == [(Usage(100, 20, 40), None)]


async def test_a_stream_without_an_end_is_an_error_after_its_pieces(
    server: ModelServer, dialect: Dialect, streamed: Streamed
) -> None:
    server.will_send(dialect.stream(*PIECES[:2], finished=False))

    with pytest.raises(ModelUnavailable, match="cut"):
        await streamed.run()

    assert tuple(streamed.pieces) == PIECES[:2]
    assert streamed.calls[0].error is not None


async def test_a_stream_whose_connection_breaks_is_an_error_after_its_pieces(
    server: ModelServer, dialect: Dialect, streamed: Streamed
) -> None:
    whole = dialect.stream(*PIECES[:2], finished=False)
    server.will_send(Response(body=whole.body, content_type=whole.content_type, ends="cut"))

    with pytest.raises(ModelUnavailable):
        await streamed.run()

    assert tuple(streamed.pieces) == PIECES[:2]
    assert len(server.received) == 1


async def test_a_stream_that_is_refused_at_the_door_is_told_as_such(
    server: ModelServer, dialect: Dialect, streamed: Streamed
) -> None:
    server.will_send(dialect.failure(429, retry_after="7"))

    with pytest.raises(RateLimited) as caught:
        await streamed.run()

    assert caught.value.retry_after_seconds == 7


async def test_a_stream_may_be_left_before_its_end(
    server: ModelServer, dialect: Dialect, registry: Registry
) -> None:
    server.will_send(dialect.stream(*PIECES))
    model = registry.model(f"{dialect.model}@{dialect.provider}")
    assert isinstance(model, StreamingModel)

    with record_calls() as calls:
        stream = model.stream(COLOUR, SKY)
        first = await anext(stream)
        await stream.aclose()

    assert first == PIECES[0]
    assert [call.error for call in calls] == ["cancelled before the answer came"]
