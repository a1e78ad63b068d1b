"""Exports the state of the roles' queues in Redis, read on a scrape and at most once a second.

| metric                 | labels | meaning                                         |
|------------------------|--------|-------------------------------------------------|
| refdesk_depth          | role   | entries that wait or run, over all processes    |
| refdesk_in_flight      | role   | of these, taken by a worker                     |
| refdesk_oldest_seconds | role   | age of the oldest of them                       |
| refdesk_dead_letters   | role   | dead letters that are still kept                |
| refdesk_consumers      | role   | workers of the role, over all processes         |
| refdesk_broker_up      |        | 0: Redis did not answer, the others are missing |

Every process reports the same figures of a role: charts take the largest, never the sum.
"""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import structlog
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from broker.errors import BrokerError
from broker.ports import Admin
from broker.values import RoleStatus

FRESH_SECONDS = 1.0
"""How long a read is reused, so that many scrapes cost Redis one read."""
PATIENCE_SECONDS = 1.0
"""How long a scrape waits for Redis; Prometheus itself gives up after ten seconds by default."""

SHOWN = {
    "depth": ("refdesk_depth", "Entries that wait or run."),
    "in_flight": ("refdesk_in_flight", "Entries taken by a worker."),
    "oldest_seconds": ("refdesk_oldest_seconds", "Age of the oldest entry."),
    "dead": ("refdesk_dead_letters", "Frames that were given up."),
    "consumers": ("refdesk_consumers", "Workers of the role."),
}

log = structlog.get_logger("worker")
Status = Sequence[RoleStatus]


class Depths(Collector):
    """Collects in the thread of a scrape; `run` reads in the event loop of the broker."""

    def __init__(self, admin: Admin, roles: Sequence[str]) -> None:
        self._admin = admin
        self._roles = roles
        self._lock = threading.Lock()
        self._asked = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awaited: Future[Status | None] | None = None
        self._read: tuple[float, Status] | None = None
        self._known = True

    async def run(self) -> None:
        """Read whenever a scrape requests it, until cancelled."""
        self._loop = asyncio.get_running_loop()
        try:
            while True:
                await self._asked.wait()
                self._asked.clear()
                self._publish(await self._status())
        finally:
            self._loop = None
            self._publish(None)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the gauges; those of the roles only when Redis has just answered."""
        status = self._ask()
        yield GaugeMetricFamily(
            "refdesk_broker_up", "Whether Redis answered the last scrape.", value=status is not None
        )
        for name, (metric, meaning) in SHOWN.items() if status is not None else ():
            family = GaugeMetricFamily(metric, meaning, labels=["role"])
            for role in status if status is not None else ():
                family.add_metric([role.role], getattr(role, name))
            yield family

    def describe(self) -> list[GaugeMetricFamily]:
        """Return the gauges without reading: the registry calls this on registration."""
        names = [*SHOWN.values(), ("refdesk_broker_up", "")]
        return [GaugeMetricFamily(metric, meaning) for metric, meaning in names]

    def _ask(self) -> Status | None:
        with self._lock:
            if self._read is not None and time.monotonic() - self._read[0] < FRESH_SECONDS:
                return self._read[1]
            loop = self._loop
            if loop is None:
                return None
            if self._awaited is None:
                self._awaited = Future()
                loop.call_soon_threadsafe(self._asked.set)
            awaited = self._awaited
        try:
            return awaited.result(PATIENCE_SECONDS)
        except TimeoutError:
            return None  # the loop is busy, or Redis is slow

    async def _status(self) -> Status | None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                status = await self._admin.read_status(self._roles)
        except (BrokerError, TimeoutError) as error:
            if self._known:
                log.warning(
                    "queue_depths_unavailable", error=str(error) or "Redis did not answer in time"
                )
            self._known = False
            return None
        self._known = True
        return status

    def _publish(self, status: Status | None) -> None:
        with self._lock:
            if status is not None:
                self._read = (time.monotonic(), status)
            awaited, self._awaited = self._awaited, None
        if awaited is not None:
            awaited.set_result(status)
