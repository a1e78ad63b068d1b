from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.empty_redis import EMPTY_REDIS, open_empty_redis


@pytest.fixture(params=EMPTY_REDIS)
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    async with open_empty_redis(request) as client:
        yield client
