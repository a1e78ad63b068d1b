from collections.abc import AsyncIterator

import pytest

from llm.registry import Registry
from llm.vendors.catalogue import VendorAccess
from llm.vendors.model_transport import RetryRules
from llm.vendors.wire import forbid_real_requests
from tests.llm.sample_task import PlainPrompts
from tests.llm.vendor_dialects import Dialect, Google, OpenAI
from tests.support.model_server import ModelServer, running_server

forbid_real_requests()
QUICK = RetryRules(attempts=3, wait_initial_seconds=0.001, wait_max_seconds=0.002)


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
    vendor = VendorAccess(api_key="secret-key", base_url=dialect.base_url(server.url))
    registry = Registry(
        prompts=PlainPrompts(),
        access={"openai": vendor, "google": vendor},
        timeout_seconds=10,
        retries=QUICK,
    )
    yield registry
    await registry.close()
