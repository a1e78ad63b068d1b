"""The broker's ports: each client depends only on the one that it uses.

| Port | Its clients |
|---|---|
| `Producer` | the gateway, the commands that submit |
| `Consumer`, `Settler` | the worker |
| `ReplyReader` | the gateway, the worker before it repeats a start, the commands that follow |
| `Admin` | the commands that operate, the worker's gauges |
| `Eraser` | the erasure of conversations |

Maintenance has no port: only `broker.maintenance` runs it. Every operation is one atomic step and
one round trip. An entry belongs to the consumer and the delivery count that it was taken with; a
settlement by anybody else changes nothing and returns False.
"""

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol

from broker.values import (
    Accepted,
    Busy,
    ConsumerDemand,
    DeadLetter,
    Delivery,
    Duplicate,
    Erased,
    Fields,
    JournalEntry,
    LeaseLost,
    RoleStatus,
    Settled,
    Settlement,
    Submission,
)
from envelope.memory_read import MemoryRead
from envelope.question import Question


class LocalConsumer(Protocol):
    """A worker of this process, to which the broker delivers entries directly."""

    role: str
    consumer: str

    @property
    def free_slots(self) -> int:
        """How many more entries it can work on."""
        ...

    def deliver(self, delivery: Delivery) -> None:
        """Work on an entry that was taken for it."""
        ...

    def prefetch_memory(self, question: Question) -> MemoryRead | None:
        """Return what is to be read in the trip that starts a question, where that can be."""
        ...

    def schedule_recovery(self) -> None:
        """Look for entries that it may own without knowing, because an answer got lost."""
        ...


class Producer(Protocol):
    """Submits messages and cancels them."""

    shards: int

    async def submit(self, submission: Submission) -> Accepted | Duplicate | Busy:
        """Submit a message; a local consumer with a free slot receives it in the same trip."""
        ...

    async def cancel(
        self, question: Question, *, forget: bool = False, reason: str | None = None
    ) -> bool:
        """End a message as superseded, or forget it; False when it has its outcome already.

        A `reason` is the reply's `termination_reason`.
        """
        ...

    def local_consumers(self, consumers: Sequence[LocalConsumer]) -> AbstractContextManager[None]:
        """While inside, deliver new submissions to those of these that have a free slot."""
        ...


class Consumer(Protocol):
    """Takes entries, keeps their leases and returns them."""

    async def take(
        self, role: str, consumer: str, *, slots: int, block_seconds: float
    ) -> Sequence[Delivery]:
        """Take up to `slots` entries over all shards; empty after `block_seconds`."""
        ...

    async def renew(self, held: Sequence[Delivery]) -> Sequence[LeaseLost]:
        """Keep the leases of entries that wait or run here; return those that were lost."""
        ...

    async def give_back(self, held: Sequence[Delivery]) -> None:
        """Return unstarted entries at once, without spending an attempt."""
        ...

    async def recover(self, role: str, consumer: str, known: Collection[tuple[int, str]]) -> bool:
        """Return at once what was delivered to a consumer and never arrived.

        `known` are shard and entry id of what did. False: ask again, some of it may still arrive.
        """
        ...

    async def leave(self, role: str, consumer: str) -> None:
        """Remove a consumer, and return what it still holds."""
        ...


class Settler(Protocol):
    """Settles entries."""

    async def settle(self, settlements: Sequence[tuple[Delivery, Settlement]]) -> Sequence[bool]:
        """Settle what finished together, each atomically; False where the entry was lost."""
        ...

    async def settle_and_take(
        self, settlements: Sequence[tuple[Delivery, Settlement]], wants: Sequence[ConsumerDemand]
    ) -> Settled:
        """Settle, and take in the same round trip what those shards have for free slots."""
        ...


class ReplySubscription(Protocol):
    """The reply to a question that is to be submitted."""

    async def await_reply(self, *, block_seconds: float) -> Fields | None:
        """Return the final reply, waiting up to `block_seconds`; call it once."""
        ...


class ReplyReader(Protocol):
    """Reads the journals and the final replies of questions, and waits for them."""

    async def read_reply(self, question: Question) -> Fields | None:
        """Return the final reply of a question, once there is one."""
        ...

    async def await_reply(self, question: Question, *, block_seconds: float = 0.0) -> Fields | None:
        """Return the final reply, waiting up to `block_seconds`; one read serves all waiters."""
        ...

    def subscribe(self, question: Question) -> AbstractAsyncContextManager[ReplySubscription]:
        """Subscribe before a question is submitted: its reply then needs no read."""
        ...

    async def read_journal(
        self, question: Question, *, after: str = "0", block_seconds: float = 0.0
    ) -> Sequence[JournalEntry]:
        """Return what happened after the entry `after`, waiting up to `block_seconds`."""
        ...


class Admin(Protocol):
    """Shows what the queues hold, and acts on dead letters."""

    async def find_questions(self, message_id: str) -> Sequence[Question]:
        """Return the questions that carry this `message_id`, newest first."""
        ...

    async def read_status(self, roles: Sequence[str]) -> Sequence[RoleStatus]:
        """Return depth and age of each role."""
        ...

    async def list_dead_letters(self, *, limit: int = 100) -> Sequence[DeadLetter]:
        """Return the newest dead letters of all shards."""
        ...

    async def read_dead_letter(self, letter_id: str) -> DeadLetter | None:
        """Return one dead letter."""
        ...

    async def drop_dead_letter(self, letter_id: str) -> bool:
        """Delete one dead letter; False when there was none."""
        ...


class Eraser(Protocol):
    """Erases conversations, whether or not a worker runs."""

    async def forget(self, question: Question, memory: Sequence[str] = ()) -> Erased:
        """End what is open of the question's conversation, and delete every word of it.

        `memory` are keys of the conversation's slot that go with it. Forgetting twice, or at once
        from two sides, is no error.
        """
        ...

    async def rewrite_file(self) -> bool:
        """Have the server rewrite its file if anything was erased; whether that goes on."""
        ...


class Broker(Settler, Protocol):
    """All ports of one Redis, for the code that assembles their clients."""

    @property
    def producer(self) -> Producer: ...

    @property
    def consumer(self) -> Consumer: ...

    @property
    def replies(self) -> ReplyReader: ...

    @property
    def admin(self) -> Admin: ...

    @property
    def eraser(self) -> Eraser: ...

    async def prepare(self, roles: Sequence[str]) -> None:
        """Check the server and make the streams and groups of these roles."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
