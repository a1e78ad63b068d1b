"""Has a manager in this process decide within the agent's own settlement.

The agent's writes and the next role then take effect in one atomic step, and the envelope skips the
manager's stream. The decision is the same as that of any manager. If it fails, the envelope goes to
the manager's stream after all, with attempts and dead letters as usual.
"""

import time
from collections.abc import Sequence
from typing import Protocol

import structlog

from broker.journal_events import JournalEvent
from broker.values import Delivery, Forward, FrameSend, JournalEntry, Settlement
from envelope.encoding import brief
from envelope.envelope import Envelope
from envelope.role import Role
from worker.errors import name_error
from worker.port import WorkerMeter

log = structlog.get_logger("worker")

MANAGER = Role.MANAGER.value


class Decides(Protocol):
    """The methods of a manager that are used here."""

    async def decide(
        self,
        delivery: Delivery,
        envelope: Envelope,
        remaining_seconds: float,
        journal: Sequence[JournalEvent] = (),
    ) -> Settlement:
        """Return the next settlement; `journal` contains the events before the decision."""
        ...


class InlineManager:
    """The manager in the process of the agents."""

    def __init__(self, manager: Decides, meter: WorkerMeter) -> None:
        self._manager = manager
        self._meter = meter

    async def decide(
        self, delivery: Delivery, handed: Envelope, journal: Sequence[JournalEvent], seconds: float
    ) -> Settlement:
        """Return the manager's settlement for the envelope `handed`, which took the agent
        `seconds`.
        """
        began = time.perf_counter()
        remaining = delivery.remaining_seconds - seconds
        try:
            decided = await self._manager.decide(delivery, handed, remaining, journal)
        except Exception as error:  # noqa: BLE001 - after any error its stream gives it another try
            reason = brief(f"{type(error).__name__}: {error}")
            log.warning("inline_decision_failed", role=MANAGER, error=name_error(error))
            self._meter.count_failure(MANAGER, "inline_decision")
            note = JournalEntry("inline_decision_failed", {"role": MANAGER, "reason": reason})
            return to_manager(handed, (*journal, note))
        self._meter.count_hop(MANAGER, "inline", time.perf_counter() - began)
        return decided


def to_manager(handed: Envelope, journal: Sequence[JournalEvent]) -> Forward:
    """Return the settlement that sends an envelope to the manager's stream."""
    return Forward(sends=(FrameSend(MANAGER, decoded=handed),), journal=tuple(journal))
