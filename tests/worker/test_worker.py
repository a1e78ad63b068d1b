"""Settlements that are refused, repeated or fail; leases that end; entries that nobody can read."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker.errors import BrokerUnavailableError
from broker.redis_broker import RedisBroker
from broker.values import ConsumerDemand, DeadLetter, Delivery, Settled, Settlement
from envelope.envelope import Envelope
from envelope.role import Role
from gateway.desk import Message
from manager.manager import ManagerAgent
from tests.support.waiting import wait_until
from tests.support.worker_harness import WorkerHarness
from worker.port import SilentMeter

MESSAGE = Message("How do I add a rule?", "c1", "m1")
SEARCH_STREAM = "rd:{0}:stream:search"
LONG_LEASE_SECONDS = 60.0
SHORT_LEASE_SECONDS = 0.5


class CountingMeter(SilentMeter):
    """Counts the hops by role and outcome, the leases lost, and the failures."""

    def __init__(self) -> None:
        self.hops: Counter[tuple[str, str]] = Counter()
        self.lost: Counter[str] = Counter()
        self.failures: Counter[tuple[str, str]] = Counter()

    def count_hop(self, role: str, outcome: str, seconds: float) -> None:
        self.hops[role, outcome] += 1

    def count_lost(self, role: str) -> None:
        self.lost[role] += 1

    def count_failure(self, role: str, reason: str) -> None:
        self.failures[role, reason] += 1


class FailingSettlements(RedisBroker):
    """A broker that raises the queued errors for settlements of the search agent."""

    errors: list[Exception]

    async def settle_and_take(
        self, settlements: Sequence[tuple[Delivery, Settlement]], wants: Sequence[ConsumerDemand]
    ) -> Settled:
        if self.errors and any(delivery.role == "search" for delivery, _ in settlements):
            raise self.errors.pop()
        return await super().settle_and_take(settlements, wants)


class FailingReads:
    """The consumer of a broker whose first reads fail."""

    def __init__(self, consumer: Any, *, failures: int) -> None:
        self.left = failures
        self._consumer = consumer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    async def take(self, *args: Any, **options: Any) -> Any:
        if self.left:
            self.left -= 1
            raise BrokerUnavailableError("connection refused")
        return await self._consumer.take(*args, **options)


class BrokenManager(ManagerAgent):
    """A manager that raises for every envelope."""

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        raise RuntimeError("the flow has no such row")


class HeldSearch:
    """A search agent that waits at a gate in its first run, and counts its runs."""

    def __init__(self, harness: WorkerHarness) -> None:
        self.begun, self.gate = asyncio.Event(), asyncio.Event()
        self.runs = self.cancelled = 0
        harness.script.next(Role.SEARCH, self, self)

    def __call__(self, _reads: object) -> Any:
        self.runs += 1
        return self._wait() if self.runs == 1 else {}

    async def _wait(self) -> dict[str, object]:
        self.begun.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return {}


async def replace_broker(
    harness: WorkerHarness, *, lease_seconds: float, make: Callable[[], RedisBroker] | None = None
) -> None:
    """Give the harness a broker with this lease."""
    await harness.broker.close()
    harness.lease_seconds = lease_seconds
    harness.broker = harness.make_broker() if make is None else make()


async def take_over(harness: WorkerHarness) -> None:
    """Let another consumer own every entry of the search agent."""
    pending = await harness.client.xpending_range(SEARCH_STREAM, "workers", "-", "+", 10)
    assert pending
    ids = [entry["message_id"] for entry in pending]
    await harness.client.xclaim(SEARCH_STREAM, "workers", "other-0", 0, ids)


async def read_kinds(harness: WorkerHarness) -> list[str]:
    question = harness.desk().question(MESSAGE)
    return [entry.kind for entry in await harness.broker.replies.read_journal(question)]


async def count_search_runs(harness: WorkerHarness) -> int:
    journal = await harness.broker.replies.read_journal(harness.desk().question(MESSAGE))
    return sum(entry.fields.get("role") == "search" for entry in journal)


async def list_letters(harness: WorkerHarness) -> list[DeadLetter]:
    return list(await harness.broker.admin.list_dead_letters())


async def test_a_settlement_of_an_entry_that_another_worker_owns_is_refused_and_counted(
    harness: WorkerHarness,
) -> None:
    await replace_broker(harness, lease_seconds=LONG_LEASE_SECONDS)
    search, meter = HeldSearch(harness), CountingMeter()

    async with harness.open(meter=meter) as desk:
        await desk.submit(MESSAGE)
        await search.begun.wait()
        await take_over(harness)
        before = await read_kinds(harness)
        search.gate.set()
        await wait_until(lambda: meter.hops["search", "lease_lost"])

        assert meter.lost == {"search": 1}
        assert await read_kinds(harness) == before
        assert search.cancelled == 0


async def test_a_run_whose_lease_another_worker_took_is_cancelled_and_the_question_is_answered(
    harness: WorkerHarness,
) -> None:
    await replace_broker(harness, lease_seconds=SHORT_LEASE_SECONDS)
    search, meter = HeldSearch(harness), CountingMeter()

    async with harness.open(meter=meter) as desk:
        await desk.submit(MESSAGE)
        await search.begun.wait()
        await take_over(harness)
        await wait_until(lambda: search.cancelled)
        reply = await desk.outcome(desk.question(MESSAGE))

    assert reply["outcome"] == "answered"
    assert meter.lost == {"search": 1}
    assert search.runs == 2
    assert await count_search_runs(harness) == 1


async def test_a_settlement_that_redis_did_not_answer_is_sent_again_and_the_agent_runs_once(
    harness: WorkerHarness,
) -> None:
    broker: Any = FailingSettlements(harness.client, lease_seconds=LONG_LEASE_SECONDS)
    broker.errors = [BrokerUnavailableError("connection refused") for _ in range(3)]
    harness.broker = broker

    with capture_logs() as logged:
        async with harness.open() as desk:
            reply = await desk.ask(MESSAGE)

    assert (reply["outcome"], broker.errors) == ("answered", [])
    assert len(harness.script.seen[Role.SEARCH]) == 1
    assert await count_search_runs(harness) == 1
    assert "settle" in {line.get("operation") for line in logged}


async def test_an_unexpected_error_of_a_settlement_ends_the_process_which_returns_its_entries(
    harness: WorkerHarness,
) -> None:
    broker: Any = FailingSettlements(harness.client, lease_seconds=LONG_LEASE_SECONDS)
    broker.errors = [ValueError("no such script")]
    harness.broker = broker

    with pytest.raises(ExceptionGroup) as raised:
        async with harness.open() as desk:
            await desk.ask(MESSAGE)
    assert raised.value.subgroup(ValueError) is not None

    async with harness.open() as desk:
        reply = await desk.outcome(desk.question(MESSAGE))
    assert reply["outcome"] == "answered"
    assert await count_search_runs(harness) == 1


async def test_workers_whose_reads_fail_go_on_when_redis_answers(harness: WorkerHarness) -> None:
    reads: Any = FailingReads(harness.broker.consumer, failures=20)
    harness.broker.consumer = reads

    async with harness.open() as desk:
        reply = await desk.ask(MESSAGE)
        await wait_until(lambda: reads.left == 0)
        again = await desk.ask(replace(MESSAGE, message_id="after-the-failures"))

    assert [reply["outcome"], again["outcome"]] == ["answered", "answered"]


async def test_an_undecodable_entry_becomes_a_dead_letter_and_its_question_fails(
    harness: WorkerHarness,
) -> None:
    desk, meter = harness.desk(), CountingMeter()
    await harness.broker.prepare(["manager"])
    await desk.submit(MESSAGE)
    [(entry_id, fields)] = await harness.client.xrange("rd:{0}:stream:manager")
    await harness.client.xdel("rd:{0}:stream:manager", entry_id)
    await harness.client.xadd("rd:{0}:stream:manager", {**fields, b"f": b"no frame"})

    async with harness.open(meter=meter):
        reply = await desk.outcome(desk.question(MESSAGE))

    assert (reply["outcome"], reply["text"]) == ("failed", "apology/en")
    assert reply["termination_reason"] == "dead_letter"
    assert [(letter.role, letter.reason) for letter in await list_letters(harness)] == [
        ("manager", "undecodable")
    ]
    assert meter.failures == {("manager", "undecodable"): 1}


async def test_an_envelope_of_a_newer_version_waits_for_a_newer_worker(
    harness: WorkerHarness,
) -> None:
    desk, meter = harness.desk(), CountingMeter()
    await harness.broker.prepare(["manager"])
    await desk.submit(MESSAGE)
    [(entry_id, fields)] = await harness.client.xrange("rd:{0}:stream:manager")
    newer = {**json.loads(fields[b"f"]), "schema_version": 99, "novelty": True}
    await harness.client.xdel("rd:{0}:stream:manager", entry_id)
    await harness.client.xadd("rd:{0}:stream:manager", {**fields, b"f": json.dumps(newer).encode()})

    async with harness.open(meter=meter):
        await wait_until(lambda: meter.failures.get(("manager", "newer_version"), 0) > 1)
        letters = await list_letters(harness)

    assert letters == []
    assert list(meter.failures) == [("manager", "newer_version")]


async def test_a_manager_that_fails_at_every_attempt_ends_the_question_with_a_dead_letter(
    harness: WorkerHarness,
) -> None:
    manager = harness.manager(BrokenManager)

    async with harness.open(manager=manager) as desk:
        reply = await desk.ask(MESSAGE)

    assert reply["outcome"] == "failed"
    assert [(letter.role, letter.reason) for letter in await list_letters(harness)] == [
        ("manager", "failed")
    ]
    assert (await read_kinds(harness)).count("retried") == 2
