from collections.abc import AsyncIterator
from typing import Any

import pytest
from fakeredis import FakeServer

from broker.embedded_redis import Endpoint
from broker.redis_broker import RedisBroker
from tests.support.broker_harness import ROLES, SHORT_LEASE, BrokerHarness


@pytest.fixture
async def harness() -> AsyncIterator[BrokerHarness]:
    client = Endpoint(url="", durable=False, played=FakeServer()).client()

    def make(**options: Any) -> RedisBroker:
        return RedisBroker(client, **{"lease_seconds": SHORT_LEASE, **options})

    broker = make()
    await broker.prepare(ROLES)
    yield BrokerHarness(broker, client, make)
    await client.aclose()
