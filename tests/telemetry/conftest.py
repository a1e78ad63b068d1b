from collections.abc import AsyncIterator

import pytest

from tests.support.broker_harness import BrokerHarness, play_broker


@pytest.fixture
async def harness() -> AsyncIterator[BrokerHarness]:
    async with play_broker() as made:
        yield made
