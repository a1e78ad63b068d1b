"""The queue of settlements: what shares a batch, and who receives which result."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from broker.errors import BrokerUnavailableError
from broker.settle_pipeline import LANES, SettlementPipeline
from broker.values import ConsumerDemand, Delivery, Forward, FrameSend, Settled, Settlement
from tests.support.broker_harness import question
from tests.support.local_consumer import RecordingConsumer
from tests.support.waiting import wait_until, yield_to_tasks

Batch = Sequence[tuple[Delivery, Settlement]]
ONWARD = Forward((FrameSend("search", b"next"),))


def delivery(entry_id: str = "1-0", role: str = "manager", consumer: str = "w1") -> Delivery:
    return Delivery(
        entry_id=entry_id,
        role=role,
        shard=3,
        consumer=consumer,
        count=1,
        question=question(),
        frame=b"frame",
        remaining_seconds=9.0,
    )


class GatedSettle:
    """Settles when its gate opens, and remembers which batches it received."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.demands: list[Sequence[ConsumerDemand]] = []
        self.gate = asyncio.Event()
        self.error: Exception | None = None
        self.taken: Sequence[Delivery] = ()
        self.away: dict[int, BrokerUnavailableError] = {}

    async def __call__(self, batch: Batch, demands: Sequence[ConsumerDemand]) -> Settled:
        self.batches.append([entry.entry_id for entry, _ in batch])
        self.demands.append(demands)
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return Settled([True] * len(batch), self.taken, self.away)


class Results:
    """Submits settlements, and keeps the result of each by its name."""

    def __init__(self, pipeline: SettlementPipeline) -> None:
        self.pipeline = pipeline
        self.by_name: dict[str, bool | Exception] = {}

    async def submit(self, name: str, settlement: Settlement = ONWARD) -> None:
        def answer(result: bool | Exception) -> None:
            self.by_name[name] = result

        await self.pipeline.submit(delivery(entry_id=name), settlement, answer)

    def number(self) -> int:
        return len(self.by_name)


@asynccontextmanager
async def running(pipeline: SettlementPipeline) -> AsyncIterator[asyncio.TaskGroup]:
    """Send batches while inside."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(pipeline.run())
        await yield_to_tasks()  # it has begun
        yield tasks
        pipeline.stop()


async def begun(settle: GatedSettle, number: int) -> None:
    async def look() -> bool:
        return len(settle.batches) >= number

    await wait_until(look)


async def test_a_settlement_alone_is_sent_in_the_task_that_submits_it() -> None:
    settle = GatedSettle()
    settle.gate.set()
    results = Results(SettlementPipeline(settle))

    async with running(results.pipeline):
        await results.submit("1")

        assert results.by_name == {"1": True}


async def test_settlements_that_wait_for_a_lane_share_the_next_batches() -> None:
    settle = GatedSettle()
    results = Results(SettlementPipeline(settle, batch=3))

    async with running(results.pipeline) as tasks:
        for lane in range(LANES):
            tasks.create_task(results.submit(f"lane {lane}"))
        await begun(settle, LANES)
        for name in "abcde":
            await results.submit(name)
        settle.gate.set()

    assert settle.batches[LANES:] == [["a", "b", "c"], ["d", "e"]]
    assert results.number() == LANES + 5


async def test_a_stopped_pipeline_still_sends_queued_settlements() -> None:
    settle = GatedSettle()
    results = Results(SettlementPipeline(settle))

    async with running(results.pipeline) as tasks:
        for lane in range(LANES):
            tasks.create_task(results.submit(f"lane {lane}"))
        await begun(settle, LANES)
        await results.submit("last")
        results.pipeline.stop()
        settle.gate.set()

    assert results.by_name["last"] is True


async def test_a_settlement_after_the_end_is_sent_alone() -> None:
    settle = GatedSettle()
    results = Results(SettlementPipeline(settle))
    async with running(results.pipeline):
        pass

    async with asyncio.TaskGroup() as tasks:
        for number in range(LANES + 2):
            tasks.create_task(results.submit(str(number)))
        await begun(settle, LANES + 2)
        settle.gate.set()

    assert results.number() == LANES + 2


async def test_every_settlement_of_a_batch_receives_the_error_of_its_trip() -> None:
    settle = GatedSettle()
    settle.error = BrokerUnavailableError("away")
    results = Results(SettlementPipeline(settle))

    async with running(results.pipeline) as tasks:
        for lane in range(LANES):
            tasks.create_task(results.submit(f"lane {lane}"))
        await begun(settle, LANES)
        for name in "ab":
            await results.submit(name)
        settle.gate.set()

    assert {results.by_name[name] for name in "ab"} == {settle.error}


async def test_a_lane_is_free_again_after_a_failed_trip() -> None:
    settle = GatedSettle()
    settle.gate.set()
    settle.error = BrokerUnavailableError("away")
    results = Results(SettlementPipeline(settle))

    async with running(results.pipeline):
        for number in range(LANES + 1):
            await results.submit(str(number))
        settle.error = None
        await results.submit("again")

        assert results.by_name["again"] is True


async def test_a_submission_that_is_cancelled_frees_its_lane() -> None:
    settle = GatedSettle()
    results = Results(SettlementPipeline(settle))

    async with running(results.pipeline) as tasks:
        sent = [tasks.create_task(results.submit(f"lane {lane}")) for lane in range(LANES)]
        await begun(settle, LANES)
        await results.submit("waits")
        sent[0].cancel()
        await begun(settle, LANES + 1)
        settle.gate.set()

    assert settle.batches[-1] == ["waits"]
    assert results.by_name["waits"] is True


async def test_a_settlement_of_a_shard_that_is_away_receives_its_error() -> None:
    settle = GatedSettle()
    settle.gate.set()
    settle.away = {0: BrokerUnavailableError("shard 3 is away")}
    results = Results(SettlementPipeline(settle))

    async with running(results.pipeline):
        await results.submit("1")

    assert results.by_name == {"1": settle.away[0]}


@pytest.mark.parametrize(("free", "slots"), [(5, 1), (0, None)])
async def test_a_frame_is_taken_for_a_consumer_that_has_room(free: int, slots: int | None) -> None:
    settle = GatedSettle()
    settle.gate.set()
    consumer = RecordingConsumer(role="search", consumer="w2", free_slots=free)
    pipeline = SettlementPipeline(settle, consumers=lambda: [consumer])
    wanted = [] if slots is None else [ConsumerDemand("search", "w2", slots)]
    settle.taken = [delivery(role="search", consumer="w2")] if wanted else []
    results = Results(pipeline)

    async with running(pipeline):
        await results.submit("1")

    assert settle.demands == [wanted]
    assert consumer.held == settle.taken


async def test_a_consumer_knows_while_a_call_may_deliver_entries_to_it() -> None:
    settle = GatedSettle()
    consumer = RecordingConsumer(role="search", consumer="w2", free_slots=1)
    pipeline = SettlementPipeline(settle, consumers=lambda: [consumer])

    async with running(pipeline), asyncio.TaskGroup() as tasks:
        tasks.create_task(Results(pipeline).submit("1"))
        await yield_to_tasks(3)
        during = consumer.awaited
        settle.gate.set()

    assert (during, consumer.awaited) == (1, 0)
