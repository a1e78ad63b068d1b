"""Holds what one shard should hold, as plain values; times are milliseconds of Redis' clock."""

from dataclasses import dataclass, field

from broker.values import Fields
from envelope.question import Question
from tests.simulation.branch_model import BranchState

MANAGER = "manager"
SEARCH = "search"
ROLES = (MANAGER, SEARCH)
STARTS = 3


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of the broker under test."""

    lease_ms: int = 15_000
    on_the_way_ms: int = 100
    quota: int = 8
    longest_queue: int = 3
    attempts: int = 3
    retry_after_seconds: float = 2.0
    tombstone_ms: int = 60_000


@dataclass(slots=True)
class Entry:
    """One entry of a role's stream; `owner` is empty until it is delivered.

    `deaths`: who died holding it, and when each was last seen. `part`: its content is
    based on a frame that the question keeps until it ends. `path`: its branch. `due`: until when
    it counts, 0 for the deadline of its message. `gathered`: the results of a join.
    """

    name: str
    frame: bytes
    failures: int = 0
    merged: tuple[bytes, ...] = ()
    deaths: tuple[tuple[str, int], ...] = ()
    id: str = ""
    owner: str = ""
    since: int = 0
    part: bool = False
    path: str = ""
    due: int = 0
    gathered: dict[str, Fields] | None = None

    @property
    def delivered(self) -> bool:
        return bool(self.owner)


@dataclass(slots=True)
class Message:
    """What is known of one accepted message.

    `watch`: until when it is shown the messages that wait behind it, and with which frame.
    """

    question: Question
    at_us: int
    deadline: int
    result_list: str
    resort: Fields
    journal: list[str]
    outcome: str = ""
    reply: Fields | None = None
    forgotten: bool = False
    keeps_a_frame: bool = False
    branches: BranchState = field(default_factory=BranchState)
    watch: tuple[int, bytes] | None = None

    @property
    def is_open(self) -> bool:
        return not self.outcome


@dataclass(slots=True)
class Waiting:
    """A message that has not started: behind another, or for its time (`at`, 0 for none)."""

    role: str
    frame: bytes
    at: int
    merged: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class KeptPause:
    """What a pause keeps: whose it is, the message that claimed it, and when it expires."""

    pause: str
    by: str
    until: int


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter."""

    number: int
    name: str
    frame: bytes
    role: str
    reason: str


def conversation_of(name: str) -> str:
    return name.rsplit("/", 1)[0]


def make_superseded(question: Question) -> Fields:
    """The reply of a message that another replaced."""
    return {
        "outcome": "superseded",
        "text": "",
        "conversation_id": question.conversation_id,
        "message_id": question.message_id,
    }
