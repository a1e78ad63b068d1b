"""The interfaces that a worker uses: handlers and metrics."""

from typing import Protocol, runtime_checkable

from broker.values import Delivery, Settlement
from envelope.envelope import Envelope
from envelope.memory_access import MemoryRead
from envelope.question import Question
from envelope.role import Role


class Handler(Protocol):
    """Processes the deliveries of one role."""

    role: Role

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        """Return the settlement; an exception counts as a failed attempt."""
        ...


@runtime_checkable
class PrefetchesMemory(Protocol):
    """A handler that can prefetch memory in the round trip that starts a question."""

    def prefetch_memory(self, question: Question) -> MemoryRead | None:
        """Return the read, or None if nothing needs to be read."""
        ...


class WorkerMeter(Protocol):
    """The metrics of a worker, for `/metrics`."""

    def count_hop(self, role: str, outcome: str, seconds: float) -> None: ...

    def count_lost(self, role: str) -> None: ...

    def count_redelivery(self, role: str) -> None: ...

    def count_failure(self, role: str, reason: str) -> None: ...

    def count_fallback(self, role: str, reason: str) -> None: ...


class SilentMeter:
    """A meter that counts nothing."""

    def count_hop(self, role: str, outcome: str, seconds: float) -> None:
        """Count nothing."""

    def count_lost(self, role: str) -> None:
        """Count nothing."""

    def count_redelivery(self, role: str) -> None:
        """Count nothing."""

    def count_failure(self, role: str, reason: str) -> None:
        """Count nothing."""

    def count_fallback(self, role: str, reason: str) -> None:
        """Count nothing."""
