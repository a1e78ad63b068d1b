"""taskiq on the broker of taskiq-redis-streams: the same tasks, recovered by heartbeats."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from taskiq import AsyncBroker
from taskiq_redis_streams import RedisStreamsBroker

from benchmarks.speed.systems.port import Ask, Setting, Watch
from benchmarks.speed.systems.taskiq_system import AT_ONCE, open_system

INTERVALS_IN_A_LEASE = 6
"""As in its defaults: a minute of life, a heartbeat and a look at the others each 10 seconds."""


def harness(setting: Setting, watch: Watch) -> AbstractAsyncContextManager[Ask]:
    """Open the system."""
    return open_system(_broker, setting, watch)


def _broker(setting: Setting, url: str) -> AsyncBroker:
    options: dict[str, Any] = {}
    if setting.lease_seconds:
        lease_ms = int(setting.lease_seconds * 1000)
        options["consumer_heartbeat_ttl"] = lease_ms
        options["consumer_heartbeat_interval"] = lease_ms // INTERVALS_IN_A_LEASE
        options["reclaim_interval"] = lease_ms // INTERVALS_IN_A_LEASE
    return RedisStreamsBroker(url, max_pending=AT_ONCE, **options)
