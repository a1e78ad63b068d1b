"""Visits every state that a small scenario can reach, and counts the ways through it.

Two states are the same when nothing that may follow can distinguish them: ids are renamed in their
order, times are relative to now, and what is only remembered (journals, dead letters) is left out.
Every move out of every state is made once, for real, on both sides.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from broker.values import Delivery
from tests.simulation.branch_moves import word_of
from tests.simulation.expected_state import Entry, Message
from tests.simulation.scenario import Play

FAR = "far"
PAUSE_MS = 30_000
"""How long a pause of a scenario lasts."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """How much time the moves that are left can let pass at most; `lease_ms` is that of the rules.

    Two things make the states of pauses many without making them different: times that no move that
    is left can reach, and the time at which a message was accepted. The number of ways through a
    graph is the same without them, which `test_graph.py` checks. Managers are not exchanged for
    each other: a sweep takes from the first of them first, so that two are not quite alike.

    `is_pausing`: the moments at which messages were accepted count for replies to pauses alone.
    """

    ms: int
    lease_ms: int
    is_pausing: bool

    def measure_due(self, ms: int) -> int | str:
        """Return the time until something is due, or that it cannot be reached."""
        return FAR if ms > self.ms else ms

    def measure_age(self, ms: int) -> int:
        """Return for how long an entry is held, as far as its lease can still run out."""
        age = min(ms, self.lease_ms)
        return 0 if age + self.ms < self.lease_ms else age


ENDLESS = Horizon(10**12, 15_000, is_pausing=False)
"""The horizon by which nothing is left out."""


def find_horizon(play: Play) -> Horizon:
    """Return how far the moves that are left reach; scenarios without pauses are not reduced."""
    lease, left = play.scenario.rules.lease_ms, play.left
    if not play.scenario.pausing or left.get("until_due") or play.scenario.forgets:
        return replace(ENDLESS, lease_ms=lease)
    ms = left.get("lapse", 0) * lease + left.get("doze", 0) * (lease // 2)
    if left.get("until_over"):
        ms += PAUSE_MS
    return Horizon(ms, lease, is_pausing=True)


State = tuple[Any, ...]


@dataclass(slots=True)
class Visited:
    """`following`: for each state, the states that its moves lead to."""

    following: list[list[int]] = field(default_factory=list)

    @property
    def states(self) -> int:
        return len(self.following)

    @property
    def moves(self) -> int:
        """How many moves were really made."""
        return sum(map(len, self.following))

    @property
    def interleavings(self) -> int:
        """Count the ways from the first state to an end; exact, and none of them is walked."""
        return self._ways([1 if not ends else 0 for ends in self.following])

    @property
    def longest(self) -> int:
        """How many moves the longest way has."""
        lengths = [0] * self.states
        for state in reversed(self._in_order()):
            lengths[state] = max((lengths[each] + 1 for each in self.following[state]), default=0)
        return lengths[0]

    def _ways(self, ways: list[int]) -> int:
        for state in reversed(self._in_order()):
            ways[state] += sum(ways[each] for each in self.following[state])
        return ways[0]

    def _in_order(self) -> list[int]:
        """Return the states so that every move leads forward; a circle is an error."""
        arriving = [0] * self.states
        for ends in self.following:
            for end in ends:
                arriving[end] += 1
        ordered = [0]
        for state in ordered:
            for end in self.following[state]:
                arriving[end] -= 1
                if not arriving[end]:
                    ordered.append(end)
        assert len(ordered) == self.states, "expected every move to lead on, found a circle"
        return ordered


def visit(play: Play) -> Visited:
    """Make every move of every state once; each end is drained."""
    visited = Visited([[]])
    known = {state_of(play): 0}
    open_states = [(0, play.saved())]
    while open_states:
        number, saved = open_states.pop()
        play.put_back(saved)
        moves = play.moves()
        if not moves:
            play.drain()
        for move in moves:
            play.put_back(saved)
            play.make(move)
            state = state_of(play)
            if state not in known:
                known[state] = len(visited.following)
                visited.following.append([])
                open_states.append((known[state], play.saved()))
            visited.following[number].append(known[state])
    return visited


def state_of(play: Play) -> State:
    """Return what decides on everything that may follow."""
    horizon, names = find_horizon(play), _Renaming(play)
    model, now = play.trial.model, play.trial.model.now
    return (
        tuple(
            (role, tuple(_entry(entry, now, horizon, names) for entry in entries))
            for role, entries in model.streams.items()
        ),
        tuple(
            (name, each.outcome,
             each.is_open and (horizon.measure_due(each.deadline - now), str(each.resort)),
             each.forgotten, 0 if horizon.is_pausing else each.at_us - now * 1000,
             _branches(each, now))
            for name, each in model.messages.items()
        ),
        tuple((key, tuple(order)) for key, order in sorted(model.order.items())),
        tuple(
            (name, waiting.at and waiting.at - now, tuple(waiting.merged))
            for name, waiting in sorted(model.waiting.items())
        ),
        tuple(sorted((names.token(token), due - now) for token, due in model.delayed.items())),
        tuple(
            (key, us - now * 1000, until - now)
            for key, (us, until) in sorted(model.tombstones.items())
        ),
        tuple(
            (actor, tuple(map(names.describe_held, held))) for actor, held in play.hands.items()
        ),
        tuple(
            (key, tuple(map(names.seen, half.seen))) for key, half in sorted(play.half.items())
        ),
        _describe_sweeper(play, horizon),
        play.asked, play.cancelled, tuple(play.left.items()), play.own_state(horizon),
    )  # fmt: skip


class _Renaming:
    """Numbers the ids that still matter, in their order."""

    def __init__(self, play: Play) -> None:
        model = play.trial.model
        ids = {entry.id for entries in model.streams.values() for entry in entries if entry.id}
        ids |= {each.entry_id for held in play.hands.values() for each in held}
        tokens = (*model.delayed, *(t for half in play.half.values() for t in _tokens(half.seen)))
        ids |= {token.split(" ")[1] for token in tokens if token.startswith("r ")}
        ordered = sorted(ids, key=lambda each: tuple(map(int, each.split("-"))))
        self._numbers = {each: number for number, each in enumerate(ordered)}

    def id(self, entry_id: str) -> int:
        return self._numbers.get(entry_id, -1)

    def describe_held(self, delivery: Delivery) -> tuple[Any, ...]:
        """Return what an actor holds, whose entry others may have taken meanwhile."""
        number = self.id(delivery.entry_id)
        return number, delivery.question.message_id, delivery.role, word_of(delivery)

    def token(self, token: str) -> str:
        kind, named, *rest = token.split(" ")
        return token if kind in {"s", "j"} else f"{kind} {self.id(named)} {' '.join(rest)}"

    def seen(self, what: Any) -> Any:
        """Rename what the first half of an operation saw."""
        if isinstance(what, list):
            return tuple(self.token(each) if " " in each else each for each in what)
        return self.id(what.entry_id)


def _branches(message: Message, now: int) -> tuple[Any, ...]:
    joins = message.branches.joins.items()
    return (
        tuple(sorted(message.branches.open)),
        tuple(
            (name, join.due - now, join.good, tuple(sorted(join.results)), len(join.waiting))
            for name, join in sorted(joins)
        ),
    )


def _describe_sweeper(play: Play, horizon: Horizon) -> State:
    model = play.trial.model
    if not model.sweeper or (horizon.is_pausing and len(play.scenario.processes) == 1):
        return ()
    return (model.sweeper, max(0, model.on_duty_until - model.now))


def _tokens(seen: tuple[Any, ...]) -> list[str]:
    return [each for what in seen if isinstance(what, list) for each in what if " " in each]


def _entry(entry: Entry, now: int, horizon: Horizon, names: _Renaming) -> tuple[Any, ...]:
    age = horizon.measure_age(now - entry.since) if entry.delivered else -1
    return (
        entry.name, entry.frame, entry.failures, entry.merged, entry.owner, age,
        len(entry.deaths), names.id(entry.id), entry.part, str(entry.gathered),
        entry.due and entry.due - now,
    )  # fmt: skip
