"""The measurements of a system, and its Markdown tables for the terminal and the page."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, TypeVar

from benchmarks.speed.payload import HOPS
from benchmarks.speed.systems.port import COLUMNS, SYSTEMS

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Speed:
    """The speed with many questions at once and a number of processes; processor times are in
    milliseconds per question.

    `redis_share` is the share of one processor that Redis used, `waited_share` the share of the
    time in which the clients were ready to run but had no processor, which shows the load of the
    machine.
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
    """One question after the other, in milliseconds; pick-up is the time from submission to the
    manager.
    """

    questions: int
    p50: float
    p99: float
    picked_up_p95: float


@dataclass(frozen=True, slots=True)
class Trips:
    """Round trips of the workers: for a single question, for one of many, and per second without
    questions.
    """

    sparse: float
    saturated: float
    idle: float


@dataclass(frozen=True, slots=True)
class Recovery:
    """Lease times from `SIGKILL` until the work starts again; `missed` counts the cases that took
    more than six lease times.
    """

    kills: int
    missed: int
    p50: float
    p99: float


@dataclass(slots=True)
class Row:
    """A system with a payload. `error` states why figures are missing.

    `speeds` contains the median of all turns with the given number of processes.
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
        """Add the results of one turn."""
        turns = self.turns.setdefault(speed.processes, [])
        turns.append(speed)
        self.speeds[speed.processes] = _middle(turns, lambda turn: turn.questions_a_second)
        if alone is not None:
            self.turns_alone.append(alone)
            self.alone = _middle(self.turns_alone, lambda turn: turn.p50)

    def turns_of(self, processes: int) -> list[Speed]:
        """Return all turns with this number of processes, in order."""
        known = self.speeds.get(processes)
        return self.turns.get(processes) or ([] if known is None else [known])

    def rate(self, processes: int = 1) -> float | None:
        """Return the questions per second with this number of processes, if measured."""
        speed = self.speeds.get(processes)
        return None if speed is None else speed.questions_a_second


@dataclass(slots=True)
class Report:
    """One run: the rows, and the conditions under which they were measured."""

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
        """Return the row of a system and a payload."""
        return next((r for r in self.rows if (r.system, r.payload) == (system, payload)), None)


def _middle(turns: list[T], key: Callable[[T], float]) -> T:
    return sorted(turns, key=key)[(len(turns) - 1) // 2]


def quantile(values: list[float], share: float) -> float:
    """Return the smallest value that this share of the values does not exceed."""
    if not values:
        raise ValueError("expected values, found none")
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


NONE = "-"
RAW = "raw limit"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with aligned columns."""
    widths = [max(len(row[n]) for row in (head, *rows)) for n in range(len(head))]
    lines = [_line(head, widths), _line(["-" * width for width in widths], widths)]
    lines += [_line(row, widths) for row in rows]
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "| " + " | ".join(padded) + " |"


def speed(report: Report, payload: str) -> str:
    """Return the table of questions per second and of a single question."""
    rows = [row for row in report.rows if row.payload == payload]
    numbers = sorted({number for row in rows for number in row.speeds})
    raw = next((row.rate() for row in rows if row.system == RAW), None)
    head = [
        "system",
        *(f"q/s, {number} proc." for number in numbers),
        "of the raw limit",
        "alone p50 ms",
        "p99 ms",
        "pick-up p95 ms",
        "client CPU ms/q",
        "Redis CPU ms/q",
        "resident MB",
        "waited",
    ]
    return table(head, [_speed(row, numbers, raw) for row in rows])


def _speed(row: Row, numbers: Sequence[int], raw: float | None) -> list[str]:
    if not row.speeds:
        return [row.system, row.error or row.versions, *[NONE] * (len(numbers) + 7)]
    one = row.speeds.get(1)
    alone = row.alone
    rate = row.rate()
    return [
        row.system,
        *(_number(row.rate(number), "{:.0f}") for number in numbers),
        f"{rate / raw:.0%}" if rate is not None and raw else NONE,
        _number(_of(alone, "p50"), "{:.2f}"),
        _number(_of(alone, "p99"), "{:.2f}"),
        _number(_of(alone, "picked_up_p95"), "{:.2f}"),
        _number(_of(one, "client_ms"), "{:.2f}"),
        _number(_of(one, "redis_ms") or None, "{:.2f}"),
        _number(_of(one, "megabytes"), "{:.0f}"),
        _number(_of(one, "waited_share"), "{:.0%}"),
    ]


def broker(report: Report) -> str:
    """Return the table of round trips and recovery."""
    head = [
        "system",
        "trips/hop, alone",
        "trips/hop, 200 in flight",
        "trips/question, alone",
        "idle trips/s",
        "recovery p50, leases",
        "p99",
        "kills",
    ]
    rows = [row for row in report.rows if row.trips is not None]
    return table(head, [_broker(row) for row in rows])


def _broker(row: Row) -> list[str]:
    trips, recovery = row.trips, row.recovery
    if trips is None:
        raise ValueError(f"expected round trips of {row.system}, found none")
    return [
        row.system,
        f"{trips.sparse / HOPS:.2f}",
        f"{trips.saturated / HOPS:.2f}",
        f"{trips.sparse:.1f}",
        f"{trips.idle:.2f}",
        *(
            [NONE, NONE, NONE]
            if recovery is None
            else [f"not in 6 ({recovery.missed} of {recovery.kills})", NONE, str(recovery.kills)]
            if recovery.missed
            else [f"{recovery.p50:.2f}", f"{recovery.p99:.2f}", str(recovery.kills)]
        ),
    ]


def limit(report: Report, payload: str) -> str:
    """Return the table of the load of Redis for each number of processes."""
    head = [
        "system",
        "processes",
        "q/s",
        "relative to one process",
        "Redis, share of one processor",
        "clients CPU ms/q",
        "Redis CPU ms/q",
        "q/s at which Redis is full",
    ]
    rows = []
    for row in report.rows:
        if row.payload != payload or not any(speed.redis_share for speed in row.speeds.values()):
            continue
        alone = row.rate()
        for number, speed in sorted(row.speeds.items()):
            rows.append(
                [
                    row.system,
                    str(number),
                    f"{speed.questions_a_second:.0f}",
                    f"{speed.questions_a_second / alone:.2f}" if alone else NONE,
                    f"{speed.redis_share:.0%}",
                    f"{speed.client_ms:.2f}",
                    f"{speed.redis_ms:.2f}",
                    f"{1000 / speed.redis_ms:.0f}" if speed.redis_ms else NONE,
                ]
            )
    return table(head, rows)


def guarantees(report: Report) -> str:
    """Return the table of the systems' guarantees, with the versions to which they apply."""
    named = {row.system: row.versions for row in report.rows}
    rows = [
        [system.name, named[system.name], *(system.guarantees[column] for column in COLUMNS)]
        for system in SYSTEMS
        if system.name in named
    ]
    return table(["system", "versions", *COLUMNS], rows)


def goals(report: Report, payload: str) -> str:
    """Return the table of the ratios that have goals, as measured in this run."""
    refdesk, raw = report.row("refdesk", payload), report.row(RAW, payload)
    peer = report.row("faststream", payload)
    if refdesk is None:
        return ""
    trips, recovery, alone = refdesk.trips, refdesk.recovery, refdesk.alone
    rows = [
        ["questions per second, relative to FastStream", "5", *_ratio(refdesk, peer, _rates)],
        ["the same, by processor time of the clients", "5", *_ratio(peer, refdesk, _client)],
        ["a single question, p50, relative to FastStream", "0.5", *_ratio(refdesk, peer, _p50)],
        ["share of the raw limit", "0.5", *_ratio(refdesk, raw, _rates)],
        ["the same, by processor time of the clients", "0.5", *_ratio(raw, refdesk, _client)],
        ["round trips per hop, single questions", "2.0", _number(_hop(trips, "sparse")), NONE],
        ["round trips per hop, 200 in flight", "1.15", _number(_hop(trips, "saturated")), NONE],
        ["idle round trips per second", "0.5", _number(_of(trips, "idle")), NONE],
        ["recovery p99 on an idle queue, leases", "1.25", _number(_of(recovery, "p99")), NONE],
        ["pick-up p95, ms", "2", _number(_of(alone, "picked_up_p95")), NONE],
        ["four processes, relative to one", "see below", _number(_scaling(refdesk)), NONE],
    ]
    return table(["figure", "goal", "in this run", "range of the turns"], rows)


def _p50(row: Row) -> list[float]:
    turns = row.turns_alone or ([] if row.alone is None else [row.alone])
    return [turn.p50 for turn in turns]


def _rates(row: Row) -> list[float]:
    return [turn.questions_a_second for turn in row.turns_of(1)]


def _client(row: Row) -> list[float]:
    return [turn.client_ms for turn in row.turns_of(1)]


def _scaling(row: Row) -> float | None:
    one, four = row.rate(1), row.rate(4)
    return four / one if one and four else None


def _ratio(
    one: Row | None, other: Row | None, figure: Callable[[Row], list[float]]
) -> tuple[str, str]:
    """Return the median, the minimum and the maximum of the ratios of adjacent turns."""
    pairs = zip(figure(one), figure(other), strict=False) if one and other else ()
    ratios = [above / below for above, below in pairs if below]
    if not ratios:
        return NONE, NONE
    return _number(median(ratios)), f"{min(ratios):.2f} - {max(ratios):.2f}"


def _of(part: object | None, name: str) -> float | None:
    """Return a figure of a part that may not have been measured."""
    return None if part is None else float(getattr(part, name))


def _hop(trips: Trips | None, name: str) -> float | None:
    of_question = _of(trips, name)
    return None if of_question is None else of_question / HOPS


def _number(value: float | None, form: str = "{:.2f}") -> str:
    return NONE if value is None else form.format(value)
