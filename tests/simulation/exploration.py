"""Makes any number of different interleavings for real, each from the first move to its end.

An interleaving is one order of moves, and no two of one scenario are the same: they part at a move
that differs. What two of them share at the beginning is made once and put back.
"""

import random
from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.pause_moves import make_play
from tests.simulation.scenario import Move, Play
from tests.simulation.scenarios import drawn
from tests.simulation.simulated_redis import Edit, SimulatedClock, simulate

PER_SCENARIO = 200
PARTING = 0.4
"""How often a way parts early."""
TOGETHER = 50
"""That many interleavings, or fewer, are every way to go on from where they part."""
DRAINED = 0.02
"""The share of ends after which every deadline passes and nothing may be left over."""


class BrokenPromiseError(AssertionError):
    """A promise did not hold: names the seed and the moves that led there."""


@dataclass(slots=True)
class Tally:
    """What was really made."""

    interleavings: int = 0
    moves: int = 0
    drained: int = 0
    scenarios: int = 0
    lengths: int = 0
    longest: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        self.interleavings += other.interleavings
        self.moves += other.moves
        self.drained += other.drained
        self.scenarios += other.scenarios
        self.lengths += other.lengths
        self.longest = max(self.longest, other.longest)
        self.seen.update(other.seen)


def interleave(
    seed: str,
    interleavings: int,
    edit: Edit | None = None,
    *,
    per_scenario: int = PER_SCENARIO,
) -> Tally:
    """Make that many interleavings of scenarios of this seed; raises `BrokenPromiseError`."""
    tally = Tally()
    while tally.interleavings < interleavings:
        left = min(per_scenario, interleavings - tally.interleavings)
        tally.add(_interleave(f"{seed}.{tally.scenarios}", left, edit))
    return tally


def _interleave(seed: str, interleavings: int, edit: Edit | None) -> Tally:
    clock = SimulatedClock()
    with simulate(clock):
        tree = _Tree(make_play(drawn(seed), clock, edit), random.Random(seed))
        try:
            tree.grow(interleavings)
        except AssertionError as error:
            raise BrokenPromiseError(f"seed {seed}, after {tree.path}: {error}") from error
    tree.tally.scenarios = 1
    tree.tally.seen.update(tree.play.trial.seen)
    return tree.tally


class _Tree:
    """Walks every way it chose, depth first."""

    def __init__(self, play: Play, rng: random.Random) -> None:
        self.play = play
        self.path: list[Move] = []
        self.tally = Tally()
        self._rng = rng

    def grow(self, share: int) -> int:
        """Make up to `share` interleavings from here on, at least one; return how many."""
        moves = self.play.moves()
        if not moves:
            self._end()
            return 1
        saved = self.play.saved() if share > 1 else None
        made = 0
        for number, (move, part) in enumerate(self._choose(moves, share)):
            if made >= share:
                break
            if number and saved is not None:
                self.play.put_back(saved)
            self.path.append(move)
            self.play.make(move)
            self.tally.moves += 1
            made += self.grow(min(part, share - made))
            self.path.pop()
        return made

    def _choose(self, moves: list[Move], share: int) -> list[tuple[Move, int]]:
        """Return where to go on, each with its share: early now and then, late everywhere."""
        if share <= TOGETHER:
            return [(move, share) for move in self._rng.sample(moves, len(moves))]
        ways = min(len(moves), 3) if self._rng.random() < PARTING else 1
        return [(move, share // ways) for move in self._rng.sample(moves, ways)]

    def _end(self) -> None:
        self.tally.interleavings += 1
        self.tally.lengths += len(self.path)
        self.tally.longest = max(self.tally.longest, len(self.path))
        if self._rng.random() < DRAINED:
            self.play.drain()
            self.tally.drained += 1
