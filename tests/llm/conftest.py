from collections.abc import AsyncIterator

import pytest

from llm.guard import forbid_real_requests
from llm.registry import Registry, Vendor
from llm.retrying import Retrying
from tests.llm.dialects import Dialect, Google, OpenAI
from tests.llm.things import PlainPrompts
from tests.llm.wire import Server, running_server

forbid_real_requests()
QUICK = Retrying(attempts=3, wait_initial_seconds=0.001, wait_max_seconds=0.002)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with running_server() as server:
        yield server


@pytest.fixture(params=[OpenAI(), Google()], ids=["openai", "google"])
def dialect(request: pytest.FixtureRequest) -> Dialect:
    dialect: Dialect = request.param
    return dialect


@pytest.fixture
async def registry(server: Server, dialect: Dialect) -> AsyncIterator[Registry]:
    vendor = Vendor(api_key="secret-key", base_url=dialect.base_url(server.url))
    registry = Registry(
        prompts=PlainPrompts(),
        openai=vendor,
        google=vendor,
        timeout_seconds=10,
        retrying=QUICK,
    )
    yield registry
    await registry.close()
