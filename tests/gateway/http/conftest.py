from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import openai
import pytest
from fakeredis import FakeAsyncRedis, FakeServer

from broker.transport.connect import connect
from tests.support.empty_redis import PLAYED_REDIS
from tests.support.http_server import DOCUMENT, FakeDocuments, HttpServerFixture, open_http_server
from tests.support.worker_harness import WorkerHarness

SHELF = FakeDocuments(("acme", "docs", "rules#1", DOCUMENT))


@asynccontextmanager
async def provide_played_harness() -> AsyncIterator[WorkerHarness]:
    server = FakeServer()
    made = WorkerHarness(lambda: FakeAsyncRedis(server=server, protocol=2), played=True)
    yield made
    await made.close()


@pytest.fixture
async def harness() -> AsyncIterator[WorkerHarness]:
    """A desk on an empty Redis, played in the process."""
    async with provide_played_harness() as made:
        yield made


@pytest.fixture(params=PLAYED_REDIS)
async def any_harness(request: pytest.FixtureRequest) -> AsyncIterator[WorkerHarness]:
    """A desk on an empty Redis, played and a real one: for what several processes share."""
    if request.param == "played":
        async with provide_played_harness() as made:
            yield made
        return
    url = request.getfixturevalue("redis_url")
    made = WorkerHarness(lambda: connect(url), played=False)
    await made.client.flushall()
    yield made
    await made.close()


@pytest.fixture
async def http_server(harness: WorkerHarness) -> AsyncIterator[HttpServerFixture]:
    """An open server before a desk that works."""
    async with harness.open(), open_http_server(harness, documents=SHELF) as opened:
        yield opened


@pytest.fixture
async def desk(http_server: HttpServerFixture) -> AsyncIterator[openai.AsyncOpenAI]:
    """The official client of OpenAI."""
    token = await http_server.key()
    async with openai.AsyncOpenAI(
        base_url=f"{http_server.url}/v1", api_key=token, max_retries=0
    ) as client:
        yield client
