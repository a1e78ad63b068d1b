from collections.abc import AsyncIterator

import pytest

from tests.gateway.http.conftest import provide_played_harness
from tests.support.worker_harness import WorkerHarness


@pytest.fixture
async def harness() -> AsyncIterator[WorkerHarness]:
    """A desk on an empty Redis, played in the process."""
    async with provide_played_harness() as made:
        yield made
