"""The broker's ports. Each client depends only on the ports that it uses.

| Port | Its clients |
|---|---|
| `Producer` | the gateway, the commands that submit |
| `Consumer`, `Settler` | the worker |
| `DraftWriter` | the worker, while an agent writes an answer |
| `ReplyReader` | the gateway, commands that wait for replies, the worker before a repeated start |
| `Admin` | the commands for operators, the worker's gauges |
| `Eraser` | the erasure of conversations |
| `EndedReader` | the recorder of ended messages, and the webhooks |

There is no port for maintenance, which only `broker.maintenance` runs. Every operation is one
atomic step and one round trip, and raises `BrokerUnavailableError` if Redis does not respond. An
entry belongs to the consumer and the delivery count with which it was taken; a settlement by any
other holder changes nothing and returns False.
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
    EndedMessage,
    Erased,
    Fields,
    JournalEntry,
    LeaseLost,
    RoleStatus,
    Settled,
    Settlement,
    Submission,
)
from envelope.memory_access import MemoryRead
from envelope.question import Question


class LocalConsumer(Protocol):
    """A worker of this process, to which the broker delivers entries directly."""

    role: str
    consumer: str

    @property
    def free_slots(self) -> int:
        """How many more entries it can process."""
        ...

    def deliver(self, delivery: Delivery) -> None:
        """Process an entry that was taken for this consumer."""
        ...

    def prefetch_memory(self, question: Question) -> MemoryRead | None:
        """Return the memory keys to read in the round trip that starts a question, or None."""
        ...

    def awaiting(self) -> AbstractContextManager[None]:
        """Mark a call whose response may deliver entries; recovery waits until it has ended."""
        ...

    def schedule_recovery(self) -> None:
        """Schedule a search for entries that were assigned to this consumer but never reached
        it.
        """
        ...


class Producer(Protocol):
    """Submits messages and cancels them."""

    shards: int

    async def submit(self, submission: Submission) -> Accepted | Duplicate | Busy:
        """Submit a message; a local consumer with a free slot receives it in the same round
        trip.
        """
        ...

    async def cancel(
        self,
        question: Question,
        *,
        forget: bool = False,
        reason: str | None = None,
        adds: Fields | None = None,
    ) -> bool:
        """Mark a message as superseded, or forget it; return False if it already has an outcome.

        `reason` becomes the reply's `termination_reason`; `adds` contains further fields of the
        reply.
        """
        ...

    def local_consumers(self, consumers: Sequence[LocalConsumer]) -> AbstractContextManager[None]:
        """Within the context, deliver new submissions to consumers that have free slots."""
        ...


class Consumer(Protocol):
    """Takes entries, keeps their leases and returns them."""

    async def take(
        self, role: str, consumer: str, *, slots: int, block_seconds: float
    ) -> Sequence[Delivery]:
        """Take up to `slots` entries from all shards; return an empty list if none arrive within
        `block_seconds`.
        """
        ...

    async def renew(self, held: Sequence[Delivery]) -> Sequence[LeaseLost]:
        """Renew the leases of these entries; return those that were lost."""
        ...

    async def give_back(self, held: Sequence[Delivery]) -> None:
        """Return unstarted entries to their streams without counting an attempt."""
        ...

    async def recover(self, role: str, consumer: str, known: Collection[tuple[int, str]]) -> bool:
        """Return entries to their streams that were assigned to a consumer but never arrived.

        `known` contains the shard and entry ID of each entry that did arrive. Returns False if some
        entries may still arrive; in that case, call this method again later.
        """
        ...

    async def leave(self, role: str, consumer: str) -> None:
        """Remove a consumer, and return its entries to their streams."""
        ...


class Settler(Protocol):
    """Acknowledges entries that have been processed, and forwards their results."""

    async def settle(self, settlements: Sequence[tuple[Delivery, Settlement]]) -> Sequence[bool]:
        """Settle entries, each atomically; return for each whether its lease was still held."""
        ...

    async def settle_and_take(
        self, settlements: Sequence[tuple[Delivery, Settlement]], wants: Sequence[ConsumerDemand]
    ) -> Settled:
        """Settle entries; in the same round trip, take entries of their shards for free slots."""
        ...


class DraftWriter(Protocol):
    """Publishes drafts of an answer to the followers of its question."""

    async def write_draft(self, delivery: Delivery, draft: Fields, *, replaces: str = "") -> str:
        """Write a draft that replaces the one with the id `replaces`; return its id.

        Returns an empty id if the delivery is no longer held or the question has ended.
        """
        ...


class ReplySubscription(Protocol):
    """Waits for the reply to a question that is submitted later."""

    async def await_reply(self, *, block_seconds: float) -> Fields | None:
        """Return the final reply, or None after `block_seconds`; may be called only once."""
        ...


class ReplyReader(Protocol):
    """Reads the journals and the final replies of questions, and waits for them."""

    async def read_reply(self, question: Question) -> Fields | None:
        """Return the final reply of a question, or None while it is open."""
        ...

    async def await_reply(self, question: Question, *, block_seconds: float = 0.0) -> Fields | None:
        """Return the final reply, or None after `block_seconds`; all waiters share one read."""
        ...

    def subscribe(self, question: Question) -> AbstractAsyncContextManager[ReplySubscription]:
        """Subscribe before submitting a question, so that no extra read is needed for its reply."""
        ...

    async def read_journal(
        self, question: Question, *, after: str = "0", block_seconds: float = 0.0
    ) -> Sequence[JournalEntry]:
        """Return the events after the entry `after`; wait up to `block_seconds` for the first."""
        ...

    async def read_journals(self, questions: Sequence[Question]) -> list[Sequence[JournalEntry]]:
        """Return the events of several questions, in one round trip."""
        ...


class Admin(Protocol):
    """Reports the state of the queues, and manages dead letters."""

    async def find_questions(self, message_id: str) -> Sequence[Question]:
        """Return the questions with this `message_id`, newest first."""
        ...

    async def read_status(self, roles: Sequence[str]) -> Sequence[RoleStatus]:
        """Return the depth, age and consumers of each role."""
        ...

    async def find_write_fault(self) -> str:
        """Return why Redis currently rejects writes, such as full memory or a read-only replica.

        Returns an empty string if every shard accepts writes. Nothing is changed.
        """
        ...

    async def list_dead_letters(self, *, limit: int = 100) -> Sequence[DeadLetter]:
        """Return the newest dead letters across all shards, newest first."""
        ...

    async def read_dead_letter(self, letter_id: str) -> DeadLetter | None:
        """Return a dead letter, or None if it does not exist."""
        ...

    async def drop_dead_letter(self, letter_id: str) -> bool:
        """Delete a dead letter; return False if it does not exist."""
        ...


class Eraser(Protocol):
    """Erases conversations; does not need a worker."""

    async def forget(self, question: Question, memory: Sequence[str] = ()) -> Erased:
        """End the open messages of the question's conversation, and delete all its text.

        `memory` lists further keys of the conversation to delete. Repeated and concurrent calls are
        safe.
        """
        ...

    async def rewrite_file(self) -> bool:
        """Start a rewrite of the server's append-only file if anything was erased; return whether
        one is running.
        """
        ...


class EndedReader(Protocol):
    """Delivers ended messages to a recorder until it acknowledges them."""

    async def take(self, *, count: int, block_seconds: float) -> Sequence[EndedMessage]:
        """Return up to `count` messages from each shard, or an empty list after `block_seconds`.

        Messages that were taken a lease ago and not acknowledged are returned again.
        """
        ...

    async def acknowledge(self, messages: Sequence[EndedMessage]) -> None:
        """Acknowledge messages after recording them."""
        ...

    async def list_forgotten(self, messages: Sequence[EndedMessage]) -> Sequence[EndedMessage]:
        """Return the given messages whose journal was erased or has expired."""
        ...

    async def announce(self, question: Question, event: str) -> None:
        """Publish the message again, because its answer was `rated` or its conversation
        `forgotten`.
        """
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
    def drafts(self) -> DraftWriter: ...

    @property
    def admin(self) -> Admin: ...

    @property
    def eraser(self) -> Eraser: ...

    @property
    def ended(self) -> EndedReader: ...

    @property
    def observed(self) -> EndedReader:
        """An independent reader of the same messages, for metrics."""
        ...

    @property
    def announced(self) -> EndedReader:
        """An independent reader of the same messages, for webhooks."""
        ...

    async def prepare(self, roles: Sequence[str]) -> None:
        """Check the server, and create the streams and groups of these roles."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
