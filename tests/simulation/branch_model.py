"""Holds what one message should keep of its branches and joins; times are milliseconds."""

from dataclasses import dataclass, field

from broker.values import WATCH, Fields, ScatterBranches

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
