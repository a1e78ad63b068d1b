"""The values that the broker takes and returns.

An *entry* is one delivery of a frame on a role's stream. A consumer and its delivery count together
identify the holder of an entry. Times are remaining seconds, counted by the clock of Redis.

No code changes these values. Those that every hop makes are not frozen all the same: to freeze them
cost 6 % of a question's processor time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from broker.encodable import BaseFrame, Encodable, FrameHolder
from broker.errors import BrokerUnavailableError
from broker.journal_events import JournalEvent
from broker.keys import QuestionKeys
from envelope.encoding import to_json
from envelope.memory_read import MemoryFound
from envelope.memory_write import MemoryWrite
from envelope.outcome import Outcome
from envelope.question import Question

Fields = dict[str, JsonValue]


@dataclass(slots=True)
class JournalEntry:
    """One thing that happened to a question; `at` (Unix seconds) and `id` are set by Redis."""

    kind: str
    fields: Fields
    id: str = ""
    at: float = 0.0

    def encode(self) -> bytes:
        """Return the fields as JSON; raises `ValueError` for what JSON cannot say."""
        return to_json(self.fields)


@dataclass(frozen=True, slots=True)
class Submission:
    """A message at the door. `result_list` names a push channel, or is empty for pull doors.

    `retry_of`: the message that this one runs again. `keep_seconds`: how long reply and journal
    stay, else as all. `decoded` reaches a worker of this process that takes it in the same trip.
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
    decoded: Encodable | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The message is in; `waiting` counts the messages of its conversation before it."""

    waiting: int = 0
    merged_into: str | None = None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """This `message_id` was accepted before; `reply` is its final reply once there is one."""

    reply: Fields | None = None


BusyReason = Literal["shard_full", "overload", "tenant_share", "conversation_full"]


@dataclass(frozen=True, slots=True)
class Busy:
    """Refused at the door: try again after `retry_after_seconds`, reckoned from what ends here.

    `shard_full`: the quota is used up; `overload`: the workers have all they can do in time;
    `tenant_share`: so it is, and others need the rest; `conversation_full`: too many of it wait.
    """

    retry_after_seconds: float
    reason: BusyReason


@dataclass(frozen=True, slots=True)
class Death:
    """A worker that died holding an entry, and when it was last heard of (Unix seconds)."""

    worker: str
    at: float


@dataclass(slots=True)
class Delivery(FrameHolder):
    """An entry that was taken, and what is needed to settle it.

    `count` is its delivery (1 first), `failures` the retries of this hop before it; `merged` are
    the frames of messages that joined this one before it started, oldest first. `deaths` tells of
    workers that died holding it: `starts` counts this start and theirs. What `decoded` tells needs
    no `frame`. `along` was read in the same trip. `keys` are those of its question, once looked up.
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
    decoded: Encodable | None = None
    base_frame: BaseFrame | None = None
    prefetched: MemoryFound | None = None
    keys: QuestionKeys | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class FrameSend(FrameHolder):
    """A frame for a role, or what it decodes to, which reaches who takes it in the same trip."""

    role: str
    frame: bytes = b""
    decoded: Encodable | None = None
    kept: BaseFrame | None = None


@dataclass(slots=True)
class Forward:
    """Acknowledge, and send on: `last_resort` replaces the reply given at the deadline."""

    sends: Sequence[FrameSend]
    journal: Sequence[JournalEvent] = ()
    last_resort: Fields | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """Acknowledge, and end the question with `reply`, once."""

    outcome: Outcome
    reply: Fields
    journal: Sequence[JournalEvent] = ()
    remember: Sequence[MemoryWrite] = ()
    forget: Literal["", "history", "all"] = ""


@dataclass(frozen=True, slots=True)
class Retry:
    """Acknowledge, and deliver `frame` later: after `seconds`, or after full-jitter backoff."""

    frame: bytes
    reason: str
    seconds: float | None = None
    journal: Sequence[JournalEvent] = ()


@dataclass(frozen=True, slots=True)
class Bury:
    """Acknowledge, and move to the dead letters.

    `tell` is the frame for the manager, so that the user still gets an outcome; without one the
    script ends the question with the last resort of its record. `deaths` are
    those it is buried for.
    """

    reason: str
    error: str
    poison_notice: FrameSend | None = None
    journal: Sequence[JournalEvent] = ()
    deaths: tuple[Death, ...] = ()


Settlement = Forward | Finish | Retry | Bury


@dataclass(frozen=True, slots=True)
class ConsumerDemand:
    """Somebody with room for more entries of a role."""

    role: str
    consumer: str
    slots: int


@dataclass(frozen=True, slots=True)
class Settled:
    """For each settlement whether the entry was still held; and what was taken in the same trip.

    `away` tells by place which ones nobody can tell of, since their shard did not answer: settle
    those again. When no shard answers it is raised instead.
    """

    kept: Sequence[bool]
    taken: Sequence[Delivery] = ()
    away: Mapping[int, BrokerUnavailableError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """An entry that this consumer no longer holds."""

    role: str
    shard: int
    entry_id: str
    count: int


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A frame that was given up, whole, with the reason.

    Its times, in Unix seconds: `accepted_at` of the question (0 when nobody knows it), `queued_at`
    of the hop, `at` when it was given up; and each of the workers that died holding it.
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
    """How much waits at a role, over all shards."""

    role: str
    depth: int
    in_flight: int
    oldest_seconds: float
    dead: int
    consumers: int


@dataclass(frozen=True, slots=True)
class Erased:
    """Counts what was erased of one conversation.

    `messages` had words still; `ended` of them were open; `entries` travelled or waited for a
    retry; `memories` are keys of its memory.
    """

    messages: int = 0
    ended: int = 0
    entries: int = 0
    dead_letters: int = 0
    memories: int = 0

    @property
    def found(self) -> bool:
        """Whether there was anything."""
        return bool(self.messages or self.entries or self.dead_letters or self.memories)

    def __add__(self, other: "Erased") -> "Erased":
        return Erased(
            messages=self.messages + other.messages,
            ended=self.ended + other.ended,
            entries=self.entries + other.entries,
            dead_letters=self.dead_letters + other.dead_letters,
            memories=self.memories + other.memories,
        )
