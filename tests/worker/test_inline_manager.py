"""The inline manager: it decides inside the settlements of agents."""

from collections.abc import Sequence
from typing import Any

import pytest

from broker.journal_events import JournalEvent
from broker.values import Delivery, Settlement
from envelope.envelope import Envelope
from envelope.role import Role
from gateway.desk import Message
from manager.manager import Manager
from tests.support.flow_path import main_path
from tests.support.worker_harness import WorkerHarness
from worker.port import SilentMeter
from worker.process import WorkerProcess

MESSAGE = Message("How do I add a rule?", "c1", "m1")
STAGES = main_path()
HOPS = len(STAGES) - 1


class CountingMeter(SilentMeter):
    """Remembers what was counted."""

    def __init__(self) -> None:
        self.counted: list[tuple[str, str]] = []

    def count_hop(self, role: str, outcome: str, seconds: float) -> None:
        self.counted.append((role, outcome))

    def count_failure(self, role: str, error: str) -> None:
        self.counted.append((role, error))


class ForgetfulManager(Manager):
    """A manager that cannot decide after the search, the first time it is asked."""

    asked = 0

    async def decide(
        self,
        delivery: Delivery,
        envelope: Envelope,
        remaining_seconds: float,
        journal: Sequence[JournalEvent] = (),
    ) -> Settlement:
        if envelope.payload.get("stage") == "search":
            self.asked += 1
            if self.asked == 1:
                raise RuntimeError("lost the table")
        return await super().decide(delivery, envelope, remaining_seconds, journal)


async def journal_of(harness: WorkerHarness, process: WorkerProcess) -> list[Any]:
    async with process.running():
        desk = harness.desk()
        reply = await desk.ask(MESSAGE)
        assert reply["outcome"] == "answered"
        return list(await harness.broker.replies.read_journal(desk.question(MESSAGE)))


@pytest.mark.parametrize("on_the_spot", [True, False])
async def test_the_same_is_journaled_whether_the_manager_decides_here_or_over_its_stream(
    harness: WorkerHarness, on_the_spot: bool
) -> None:
    meter = CountingMeter()
    journal = await journal_of(harness, harness.process(on_the_spot=on_the_spot, meter=meter))

    recorded = [(e.kind, e.fields.get("stage") or e.fields.get("role")) for e in journal[1:-1]]
    wrote = [("agent_run", stage) for stage in STAGES[1:]]
    routed = [("routed", stage) for stage in STAGES]
    pairs = zip(wrote, routed[1:], strict=True)
    assert recorded == [routed[0], *(each for pair in pairs for each in pair)]
    decided = meter.counted.count((Role.MANAGER.value, "inline"))
    entries = meter.counted.count((Role.MANAGER.value, "forward"))
    assert (decided, entries) == ((HOPS, 1) if on_the_spot else (0, HOPS))


async def test_a_manager_that_fails_on_the_spot_is_asked_again_over_its_stream(
    harness: WorkerHarness,
) -> None:
    meter = CountingMeter()
    manager = harness.manager(ForgetfulManager)
    journal = await journal_of(harness, harness.process(meter=meter, manager=manager))

    [note] = [entry for entry in journal if entry.kind == "inline_decision_failed"]
    assert note.fields == {"role": "manager", "reason": "RuntimeError: lost the table"}
    assert meter.counted.count((Role.MANAGER.value, "inline")) == HOPS - 1
    assert meter.counted.count((Role.MANAGER.value, "inline_decision")) == 1
    wrote = [entry.fields["role"] for entry in journal if entry.kind == "agent_run"]
    assert wrote == STAGES[1:]
