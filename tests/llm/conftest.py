from collections.abc import AsyncIterator

import pytest

from llm.real_request_guard import forbid_real_requests
from llm.registry import Registry, Vendor
from llm.vendors.transport_retries import Retrying
from tests.llm.sample_task import PlainPrompts
from tests.llm.vendor_dialects import Dialect, Google, OpenAI
from tests.support.model_server import ModelServer, running_server

forbid_real_requests()
QUICK = Retrying(attempts=3, wait_initial_seconds=0.001, wait_max_seconds=0.002)


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with running_server() as server:
        yield server


@pytest.fixture(params=[OpenAI(), Google()], ids=["openai", "google"])
def dialect(request: pytest.FixtureRequest) -> Dialect:
    dialect: Dialect = request.param
    return dialect


@pytest.fixture
async def registry(server: ModelServer, dialect: Dialect) -> AsyncIterator[Registry]:
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
