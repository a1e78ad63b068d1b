"""Lets the manager that works in this process decide at once, inside the agent's own settlement.

What an agent wrote and where the envelope goes next then become true in one atomic step, and the
envelope saves the way over the manager's stream. The manager decides as ever; when it cannot, the
envelope takes that way after all, where it has its attempts and its dead letters.
"""

import time
from collections.abc import Sequence
from typing import Protocol

import structlog

from broker.journal_events import JournalEvent
from broker.values import Delivery, Finish, Forward, FrameSend, JournalEntry, Settlement
from envelope.encoding import brief
from envelope.envelope import Envelope
from envelope.role import Role
from worker.errors import name_error
from worker.port import WorkerMeter

log = structlog.get_logger("worker")

MANAGER = Role.MANAGER.value


class Decides(Protocol):
    """The manager, as far as it is needed here."""

    async def decide(
        self,
        delivery: Delivery,
        envelope: Envelope,
        remaining_seconds: float,
        journal: Sequence[JournalEvent] = (),
    ) -> Forward | Finish:
        """Return what is to be done; `journal` is what is told before the decision."""
        ...


class InlineManager:
    """The manager beside the agents of one process."""

    def __init__(self, manager: Decides, meter: WorkerMeter) -> None:
        self._manager = manager
        self._meter = meter

    async def decide(
        self, delivery: Delivery, handed: Envelope, journal: Sequence[JournalEvent], seconds: float
    ) -> Settlement:
        """Return the manager's settlement of `handed`, which an agent made in `seconds`."""
        began = time.perf_counter()
        remaining = delivery.remaining_seconds - seconds
        try:
            decided = await self._manager.decide(delivery, handed, remaining, journal)
        except Exception as error:  # noqa: BLE001 - whatever it raises, its stream gives it another try
            reason = brief(f"{type(error).__name__}: {error}")
            log.warning("inline_decision_failed", role=MANAGER, error=name_error(error))
            self._meter.count_failure(MANAGER, "inline_decision")
            note = JournalEntry("inline_decision_failed", {"role": MANAGER, "reason": reason})
            return to_manager(handed, (*journal, note))
        self._meter.count_hop(MANAGER, "inline", time.perf_counter() - began)
        return decided


def to_manager(handed: Envelope, journal: Sequence[JournalEvent]) -> Forward:
    """Return how an envelope is handed back over the manager's stream."""
    return Forward(sends=(FrameSend(MANAGER, decoded=handed),), journal=tuple(journal))
