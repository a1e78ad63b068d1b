"""The values that the broker accepts and returns.

An *entry* is one delivery of a frame on a role's stream. A consumer and its delivery count together
identify the holder of an entry. Durations are in seconds and measured by the clock of Redis.

These values are never modified. The ones created in every hop are not frozen, but only because
freezing costs 6 % of a question's processor time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from broker.errors import BrokerUnavailableError
from broker.journal_events import JournalEvent
from broker.keys import QuestionKeys
from envelope.encoding import to_json
from envelope.envelope import Envelope
from envelope.memory_access import MemoryFound, MemoryWrite
from envelope.outcome import Outcome
from envelope.question import Question

Fields = dict[str, JsonValue]
BusyReason = Literal["shard_full", "overload", "tenant_share", "conversation_full"]


@dataclass(frozen=True, slots=True)
class Death:
    """A worker that died while it held an entry; `at` is the time of its last activity in Unix
    seconds.
    """

    worker: str
    at: float


class FrameHolder:
    """Provides a frame, or the envelope that the frame decodes to."""

    __slots__ = ()
    frame: bytes
    decoded: Envelope | None

    def whole(self) -> bytes:
        """Return the frame."""
        return self.frame or (b"" if self.decoded is None else self.decoded.encode())


@dataclass(frozen=True, slots=True)
class BaseFrame:
    """A frame that Redis stores for a question. Later frames contain only the changes to it."""

    name: str
    decoded: Envelope
    size: int


@dataclass(slots=True)
class FrameSend(FrameHolder):
    """A frame for a role. A consumer in this process needs only `decoded`."""

    role: str
    frame: bytes = b""
    decoded: Envelope | None = None
    kept: BaseFrame | None = None


@dataclass(slots=True)
class Forward:
    """Acknowledge the entry and forward frames; `last_resort` replaces the stored reply for a
    missed deadline.

    `dead_letter_changes` contains the fields of the reply that differ if the question is buried.
    """

    sends: Sequence[FrameSend]
    journal: Sequence[JournalEvent] = ()
    last_resort: Fields | None = None
    dead_letter_changes: Fields = field(default_factory=dict)


WATCH = "watch"
"""The last part of the path of a branch that receives waiting messages."""


@dataclass(slots=True)
class BranchSend(FrameSend):
    """The first frame of a branch; `path` identifies the branch, such as `w2/t1`."""

    path: str = ""


@dataclass(slots=True)
class ScatterBranches:
    """Acknowledge the entry and start branches; `gather` receives their results.

    `join` is unique within the question. It consists of the path of the branch that scatters, `#`,
    and a number. `gather` is sent after `need` successes, when all branches have returned, or after
    `seconds`. At most `at_once` branches run at the same time.

    `watch` is sent once for each message that waits behind the question or arrives in the meantime,
    with the frame of that message in `Delivery.merged`. Its path ends with `WATCH`. If it succeeds,
    the join ends immediately with the results so far. The join does not wait for it.
    """

    join: str
    gather: FrameSend
    branches: Sequence[BranchSend]
    need: int
    at_once: int
    seconds: float
    journal: Sequence[JournalEvent] = ()
    watch: BranchSend | None = None


@dataclass(slots=True)
class ReturnResult:
    """Acknowledge the entry and end a branch with its result.

    `roles` contains the roles to which the join may now send: the role that receives the results,
    and the roles of queued branches.
    """

    result: Fields
    is_good: bool
    roles: Sequence[str]
    journal: Sequence[JournalEvent] = ()


@dataclass(frozen=True, slots=True)
class Finish:
    """Acknowledge the entry and end the question with `reply`."""

    outcome: Outcome
    reply: Fields
    journal: Sequence[JournalEvent] = ()
    remember: Sequence[MemoryWrite] = ()
    forget: Literal["", "history", "all"] = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """Acknowledge the entry, and deliver `frame` again after `seconds` or, without `seconds`, after
    a backoff with full jitter.
    """

    frame: bytes
    reason: str
    seconds: float | None = None
    journal: Sequence[JournalEvent] = ()


@dataclass(frozen=True, slots=True)
class Bury:
    """Acknowledge the entry and move it to the dead letters.

    `poison_notice` is a frame to the manager, which then ends the question. Without a notice, the
    script ends the question with the fallback reply in its record. `deaths` contains the worker
    deaths that caused this.
    """

    reason: str
    error: str
    poison_notice: FrameSend | None = None
    journal: Sequence[JournalEvent] = ()
    deaths: tuple[Death, ...] = ()


Settlement = Forward | ScatterBranches | ReturnResult | Finish | Retry | Bury
LONG_FRAME = 1500
"""In bytes; shorter frames are always sent whole."""


@dataclass(slots=True)
class JournalEntry:
    """One event of a question; Redis sets `at` (Unix seconds) and `id`."""

    kind: str
    fields: Fields
    id: str = ""
    at: float = 0.0

    def encode(self) -> bytes:
        """Return the fields as JSON; raises `ValueError` for a value that JSON cannot represent."""
        return to_json(self.fields)


@dataclass(frozen=True, slots=True)
class EndedMessage:
    """A message that ended, whose answer was rated, or whose conversation was forgotten."""

    entry_id: str
    shard: int
    question: Question
    event: str = "ended"
    """`ended`, `rated` or `forgotten`."""

    @property
    def at(self) -> float:
        """The time of the event, in Unix seconds of Redis."""
        return int(self.entry_id.partition("-")[0]) / 1000


@dataclass(frozen=True, slots=True)
class Submission:
    """A message to accept. `result_list` names a push channel; it is empty for pull channels.

    `last_resort`: the reply at the deadline if there is no better one; `dead_letter_changes`: the
    fields of this reply that differ if the question is buried. `retry_of`: the message that this
    one repeats. `keep_seconds`: how long reply and journal are kept; None for the default.
    `decoded`: the envelope in `frame`, for a worker of this process that takes it in the same round
    trip.
    """

    question: Question
    frame: bytes
    role: str
    deadline_seconds: float
    last_resort: Fields
    result_list: str = ""
    not_before_seconds: float = 0.0
    accepted: Fields = field(default_factory=dict)
    retry_of: str = ""
    keep_seconds: float | None = None
    dead_letter_changes: Fields = field(default_factory=dict)
    decoded: Envelope | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The message was accepted; `waiting` messages of its conversation will be processed before
    it.
    """

    waiting: int = 0
    merged_into: str | None = None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The `message_id` was accepted before; `reply` is the final reply, or None while the question
    is open.
    """

    reply: Fields | None = None


@dataclass(frozen=True, slots=True)
class Busy:
    """The message was rejected; the sender may retry after `retry_after_seconds`.

    - `shard_full`: the quota of open questions is used up
    - `overload`: the workers cannot finish more questions in time
    - `tenant_share`: the shard is near its limit, and the tenant has used its share
    - `conversation_full`: too many messages of the conversation are waiting
    """

    retry_after_seconds: float
    reason: BusyReason


@dataclass(slots=True)
class Delivery(FrameHolder):
    """An entry that a consumer took, with everything that its settlement needs.

    `count`: deliveries including this one. `failures`: earlier retries of this hop. `merged`:
    frames of messages that joined this one before it started, oldest first. `starts`: starts
    including this one and those whose workers died (`deaths`). `decoded`: the object that `frame`
    decodes to; `frame` may be empty then. `prefetched`: memory that was read in the same round
    trip. `keys`: a cache of the question's keys. `branch`: the path of its branch, set when the
    frame is decoded. `gathered`: the results of a join as JSON, by path of the branch.
    """

    entry_id: str
    role: str
    shard: int
    consumer: str
    count: int
    question: Question
    frame: bytes
    remaining_seconds: float
    failures: int = 0
    result_list: str = ""
    merged: tuple[bytes, ...] = ()
    starts: int = 1
    deaths: tuple[Death, ...] = ()
    decoded: Envelope | None = None
    base_frame: BaseFrame | None = None
    prefetched: MemoryFound | None = None
    keys: QuestionKeys | None = field(default=None, compare=False, repr=False)
    branch: str = ""
    gathered: bytes = b""


@dataclass(frozen=True, slots=True)
class ConsumerDemand:
    """A consumer with `slots` free slots for entries of a role."""

    role: str
    consumer: str
    slots: int


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of `settle_and_take`.

    `kept`: for each settlement, whether its lease was still held. `taken`: the entries that were
    taken. `away`: the error of each settlement, by index, whose shard did not respond. Such a
    settlement may or may not have been applied, so settle it again. If no shard responds, the error
    is raised instead.
    """

    kept: Sequence[bool]
    taken: Sequence[Delivery] = ()
    away: Mapping[int, BrokerUnavailableError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """An entry whose lease this consumer has lost."""

    role: str
    shard: int
    entry_id: str
    count: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A buried entry, with its whole frame and the reason.

    Times are in Unix seconds: `accepted_at` of the question (0 if unknown), `queued_at` of the hop,
    `at` of the burial. `deaths` lists the workers that died while holding it.
    """

    id: str
    role: str
    shard: int
    question: Question | None
    reason: str
    error: str
    attempts: int
    worker: str
    at: float
    frame: bytes
    accepted_at: float = 0.0
    queued_at: float = 0.0
    deaths: tuple[Death, ...] = ()


@dataclass(frozen=True, slots=True)
class RoleStatus:
    """The backlog of a role in all shards."""

    role: str
    depth: int
    in_flight: int
    oldest_seconds: float
    dead: int
    consumers: int


@dataclass(frozen=True, slots=True)
class Erased:
    """Counts the data of one conversation that was erased.

    `messages`: messages that still had text, of which `ended` were open. `entries`: entries in
    streams or waiting for a retry. `memories`: memory keys. `records`: rows in the records
    database.
    """

    messages: int = 0
    ended: int = 0
    entries: int = 0
    dead_letters: int = 0
    memories: int = 0
    records: int = 0

    @property
    def found(self) -> bool:
        """Whether anything was erased."""
        stored = self.messages or self.entries or self.dead_letters or self.memories
        return bool(stored or self.records)

    def __add__(self, other: "Erased") -> "Erased":
        return Erased(
            messages=self.messages + other.messages,
            ended=self.ended + other.ended,
            entries=self.entries + other.entries,
            dead_letters=self.dead_letters + other.dead_letters,
            memories=self.memories + other.memories,
            records=self.records + other.records,
        )
