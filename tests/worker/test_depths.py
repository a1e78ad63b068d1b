"""What `/metrics` says of Redis is true, cheap, and never keeps a scrape waiting."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry

from broker.errors import BrokerUnavailableError
from broker.ports import Admin
from broker.values import RoleStatus
from tests.support.waiting import wait_until, within, yield_to_tasks
from tests.support.worker_harness import WorkerHarness
from worker import metrics as depths
from worker.metrics import Depths

DOWN = {"refdesk_broker_up": 0.0, "refdesk_accepting": 0.0}


class ScriptedAdmin:
    """Answers `read_status` as the test sets it, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.was_asked = asyncio.Event()
        self.answering = asyncio.Event()
        self.answering.set()
        self.error: Exception | None = None
        self.write_fault = ""

    async def find_write_fault(self) -> str:
        return self.write_fault

    async def read_status(self, roles: Sequence[str]) -> Sequence[RoleStatus]:
        self.asked += 1
        self.was_asked.set()
        await self.answering.wait()
        if self.error is not None:
            raise self.error
        return [RoleStatus(role, 3, 1, 2.5, 4, 2) for role in roles]


@asynccontextmanager
async def register_depths(admin: Admin | ScriptedAdmin) -> AsyncIterator[CollectorRegistry]:
    """A registry that shows the depths of one role while inside."""
    registry = CollectorRegistry()
    collector = Depths(admin, ["lang"])  # type: ignore[arg-type] # it asks for the status alone
    registry.register(collector)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(collector.run())
        await yield_to_tasks()
        yield registry
        running.cancel()


async def scrape(registry: CollectorRegistry) -> dict[str, float]:
    """What one scrape shows, read in a thread as the server does."""

    def collect() -> dict[str, float]:
        return {
            sample.name: sample.value for family in registry.collect() for sample in family.samples
        }

    return await asyncio.to_thread(collect)


async def test_a_scrape_shows_the_state_in_redis() -> None:
    async with register_depths(ScriptedAdmin()) as registry:
        assert await scrape(registry) == {
            "refdesk_broker_up": 1.0,
            "refdesk_accepting": 1.0,
            "refdesk_depth": 3.0,
            "refdesk_in_flight": 1.0,
            "refdesk_oldest_seconds": 2.5,
            "refdesk_dead_letters": 4.0,
            "refdesk_consumers": 2.0,
        }


async def test_the_depths_that_metrics_show_are_those_of_redis(harness: WorkerHarness) -> None:
    await harness.broker.prepare(["lang"])
    await harness.client.xadd("rd:{0}:stream:lang", {"f": "frame"})

    async with register_depths(harness.broker.admin) as registry:
        assert (await scrape(registry))["refdesk_depth"] == 1


async def test_redis_is_not_read_without_a_scrape() -> None:
    broker = ScriptedAdmin()

    async with register_depths(broker):
        await yield_to_tasks()

    assert broker.asked == 0


async def test_concurrent_scrapes_share_one_read() -> None:
    broker = ScriptedAdmin()
    broker.answering.clear()

    async with register_depths(broker) as registry, asyncio.TaskGroup() as tasks:
        scrapes = [tasks.create_task(scrape(registry)) for _ in range(5)]
        await broker.was_asked.wait()
        broker.answering.set()
        for task in scrapes:
            assert (await task)["refdesk_depth"] == 3

    assert broker.asked == 1


async def test_gauges_that_redis_does_not_report_are_omitted_and_logged() -> None:
    broker = ScriptedAdmin()
    broker.error = BrokerUnavailableError("Redis does not answer")

    async with register_depths(broker) as registry:
        assert await scrape(registry) == DOWN


async def test_a_redis_that_refuses_writes_answers_and_accepts_nothing() -> None:
    broker = ScriptedAdmin()
    broker.write_fault = "READONLY You can't write against a read only replica."

    async with register_depths(broker) as registry:
        shown = await scrape(registry)

    assert (shown["refdesk_broker_up"], shown["refdesk_accepting"]) == (1.0, 0.0)


async def test_a_redis_that_hangs_does_not_hang_a_scrape_and_is_asked_again() -> None:
    broker = ScriptedAdmin()
    broker.answering.clear()

    async with within(5 * depths.PATIENCE_SECONDS), register_depths(broker) as registry:
        assert await scrape(registry) == DOWN

        broker.answering.set()

        async def has_answered() -> bool:
            return bool((await scrape(registry))["refdesk_broker_up"])

        assert await wait_until(has_answered)


async def test_a_process_that_has_ended_keeps_no_scrape_waiting() -> None:
    async with register_depths(ScriptedAdmin()) as registry:
        pass

    assert await scrape(registry) == DOWN
