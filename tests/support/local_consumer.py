"""A worker to hand entries to, and what is submitted in its process."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from broker.values import Delivery, Submission
from envelope.memory_access import MemoryRead
from envelope.question import Question
from tests.support.broker_harness import LAST_RESORT, carrying


@dataclass
class RecordingConsumer:
    """A worker that holds what it is handed; `reads` is what it wants to know with it."""

    role: str = "manager"
    consumer: str = "w1"
    free_slots: int = 1
    reads: MemoryRead | None = None
    held: list[Delivery] = field(default_factory=list)
    doubts: int = 0
    awaited: int = 0

    def deliver(self, delivery: Delivery) -> None:
        self.free_slots -= 1
        self.held.append(delivery)

    def prefetch_memory(self, _question: Question) -> MemoryRead | None:
        return self.reads

    @contextmanager
    def awaiting(self) -> Iterator[None]:
        self.awaited += 1
        try:
            yield
        finally:
            self.awaited -= 1

    def schedule_recovery(self) -> None:
        self.doubts += 1


def submission(asked: Question | None = None, **changes: Any) -> Submission:
    carried = carrying(asked)
    fields: dict[str, Any] = {
        "question": carried.question,
        "frame": carried.encode(),
        "role": "manager",
        "deadline_seconds": 60.0,
        "last_resort": LAST_RESORT,
        "decoded": carried,
        **changes,
    }
    return Submission(**fields)
