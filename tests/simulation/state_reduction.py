"""Finds what of a state decides on what may follow; all other differences are left out of it.

Two things make the states of pauses many without making them different: times that no move that is
left can reach, and the time at which a message was accepted. The number of ways through a graph is
the same without them, which `test_graph.py` checks. Managers are not exchanged for each other: a
sweep takes from the first of them first, so that two managers are not quite alike.
"""

from dataclasses import dataclass, replace

from tests.simulation.scenario import Play

FAR = "far"
PAUSE_MS = 30_000
"""How long a pause of a scenario lasts."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """How much time the moves that are left can let pass at most; `lease_ms` is that of the rules.

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
