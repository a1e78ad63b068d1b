"""What is measured of a system: the rows and columns of the tables."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Speed:
    """Many questions at once, by that many processes; milliseconds of processor a question.

    `redis_share` is the part of one processor that Redis used, `waited_share` the part of the time
    that the clients had work and no processor: how much the machine was disturbed.
    """

    processes: int
    questions_a_second: float
    client_ms: float
    redis_ms: float
    redis_share: float
    waited_share: float
    megabytes: float


@dataclass(frozen=True, slots=True)
class Alone:
    """One question after the other, milliseconds; pick-up is from handing in to the manager."""

    questions: int
    p50: float
    p99: float
    picked_up_p95: float


@dataclass(frozen=True, slots=True)
class Trips:
    """Round trips of the workers: a question alone, among many, and a second without any."""

    sparse: float
    saturated: float
    idle: float


@dataclass(frozen=True, slots=True)
class Recovery:
    """Leases from `SIGKILL` until the work starts again; `missed` did not in six leases."""

    kills: int
    missed: int
    p50: float
    p99: float


@dataclass(slots=True)
class Row:
    """A system with a payload. `error` says why figures are missing.

    Of all turns that were measured with that many processes, the median is in `speeds`.
    """

    system: str
    payload: str
    versions: str
    speeds: dict[int, Speed] = field(default_factory=dict)
    alone: Alone | None = None
    turns: dict[int, list[Speed]] = field(default_factory=dict)
    turns_alone: list[Alone] = field(default_factory=list)
    trips: Trips | None = None
    recovery: Recovery | None = None
    error: str = ""

    def add(self, speed: Speed, alone: Alone | None) -> None:
        """Add what one turn found."""
        turns = self.turns.setdefault(speed.processes, [])
        turns.append(speed)
        self.speeds[speed.processes] = _middle(turns, lambda turn: turn.questions_a_second)
        if alone is not None:
            self.turns_alone.append(alone)
            self.alone = _middle(self.turns_alone, lambda turn: turn.p50)

    def turns_of(self, processes: int) -> list[Speed]:
        """Return all turns with that many processes, in their order."""
        known = self.speeds.get(processes)
        return self.turns.get(processes) or ([] if known is None else [known])

    def rate(self, processes: int = 1) -> float | None:
        """Return the questions a second of that many processes, if measured."""
        speed = self.speeds.get(processes)
        return None if speed is None else speed.questions_a_second


@dataclass(slots=True)
class Report:
    """One run: the rows, and where and how it was made."""

    mode: str
    date: str
    machine: str
    redis: str
    load: float
    sizes: dict[str, int]
    rows: list[Row] = field(default_factory=list)

    def fields(self) -> dict[str, Any]:
        """Return the figures as data for JSON."""
        return asdict(self)

    def row(self, system: str, payload: str) -> Row | None:
        """Return a row by its names."""
        return next((r for r in self.rows if (r.system, r.payload) == (system, payload)), None)


def _middle(turns: list[T], key: Callable[[T], float]) -> T:
    return sorted(turns, key=key)[(len(turns) - 1) // 2]


def quantile(values: list[float], share: float) -> float:
    """Return the smallest value that so great a share of them does not exceed."""
    if not values:
        raise ValueError("expected values, found none")
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
