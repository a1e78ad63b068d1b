"""Holds what one shard should hold, as plain values; times are milliseconds of Redis' clock."""

from dataclasses import dataclass, field

from broker.values import WATCH, Fields, ScatterBranches
from envelope.question import Question

Waits = tuple[str, str, bytes]
"""Path, role and frame of a branch that waits for its turn."""


@dataclass(slots=True)
class JoinState:
    """The results of one scatter, and who goes on with them."""

    role: str
    frame: bytes
    need: int
    due: int
    paths: list[str]
    waiting: list[Waits]
    good: int = 0
    results: dict[str, Fields] = field(default_factory=dict)
    watch: str = ""
    is_ended: bool = False

    @property
    def left(self) -> int:
        """How many branches have no result."""
        return len(self.paths) - len(self.results)

    @property
    def is_met(self) -> bool:
        return self.is_ended or not self.left or self.good >= self.need


@dataclass(slots=True)
class BranchState:
    """The open branches of one message by path, with their joins."""

    open: dict[str, str] = field(default_factory=dict)
    joins: dict[str, JoinState] = field(default_factory=dict)

    def is_alive(self, path: str) -> bool:
        """Return whether a branch and all that it belongs to are open; the trunk always is."""
        parts = path.split("/") if path else []
        return all("/".join(parts[:length]) in self.open for length in range(1, len(parts) + 1))

    def due_of(self, path: str, deadline: int) -> int:
        """Return until when a branch counts; `deadline` is that of the message."""
        return self.joins[self.open[path]].due if path else deadline

    def scatter(self, scatter: ScatterBranches, now: int, deadline: int) -> list[Waits]:
        """Keep a new join; return the branches that begin now."""
        all_of_it = [(each.path, each.role, each.whole()) for each in scatter.branches]
        self.joins[scatter.join] = JoinState(
            scatter.gather.role,
            scatter.gather.whole(),
            scatter.need,
            min(now + int(scatter.seconds * 1000), deadline),
            [each.path for each in scatter.branches],
            all_of_it[scatter.at_once :],
        )
        self.open.update((path, scatter.join) for path, _, _ in all_of_it)
        if scatter.watch is not None:
            self.joins[scatter.join].watch = scatter.watch.path
            self.open[scatter.watch.path] = scatter.join
        return all_of_it[: scatter.at_once]

    def give(self, path: str, result: Fields, *, is_good: bool) -> tuple[str, Waits | None]:
        """Keep the result of an open branch; return its join, and the branch that begins now."""
        if is_watch(path) and not is_good:
            return self.open[path], None
        name = self.open.pop(path)
        join = self.joins[name]
        join.results[path] = result
        join.is_ended = is_watch(path)
        join.good += is_good
        return name, join.waiting.pop(0) if join.waiting and not join.is_met else None

    def take(self, name: str) -> JoinState:
        """Return a join, and forget it and its branches."""
        join = self.joins.pop(name)
        for path in (*join.paths, join.watch):
            if self.open.get(path) == name:
                del self.open[path]
        return join


def is_watch(path: str) -> bool:
    """Return whether this branch looks at new messages."""
    return path.rpartition("/")[2] == WATCH


def above(join: str) -> str:
    """Return the path of the branch that scattered a join."""
    return join.rpartition("#")[0]


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
