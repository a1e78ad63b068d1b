"""Reports how much of the machine other programs used: a deadline that is late may be theirs."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

IDLE = (3, 4)
"""Of the ticks in the first line of /proc/stat: doing nothing, and waiting for a disk."""
COUNTED = 8
"""What follows, of guests, is part of what was counted."""
OWN, WITH_THE_DEAD = slice(11, 13), slice(11, 15)
"""User and system ticks of a process; and those of children that died and were waited for."""


@dataclass(frozen=True, slots=True)
class Ticks:
    """Processor time so far: of all there is, of all programs, and of the run's own."""

    there: int
    used: int
    own: int

    @classmethod
    def now(cls, parents: Iterable[int], others: Iterable[int] = ()) -> "Ticks":
        """Look; the run's own are these processes, and the dead children of the `parents`.

        All 0 where it is not known.
        """
        try:
            line = Path("/proc/stat").read_text("ascii").splitlines()[0]
        except OSError:
            return cls(0, 0, 0)
        ticks = [int(value) for value in line.split()[1 : COUNTED + 1]]
        idle = sum(ticks[place] for place in IDLE)
        own = sum(_of(pid, WITH_THE_DEAD) for pid in parents) + sum(_of(pid, OWN) for pid in others)
        return cls(sum(ticks), sum(ticks) - idle, own)

    def others_since(self, before: "Ticks") -> float:
        """Return the share of all processors that other programs used since then, 0 to 1."""
        others = (self.used - before.used) - (self.own - before.own)
        return max(0.0, others / max(1, self.there - before.there))


def _of(pid: int, which: slice) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii")
    except OSError:
        return 0
    # The name in brackets may hold spaces; what follows it does not.
    return sum(int(value) for value in stat.rpartition(")")[2].split()[which])
