"""Computes what the console shows of a period: counts, shares, times, costs, by day and group."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

OUTCOMES = ("answered", "passages", "clarification", "refused", "failed", "superseded")
"""How a message can end for the owner: `passages` are shown where no model wrote an answer."""
_BY_SEARCH = "search"


@dataclass(frozen=True, slots=True)
class DayFigures:
    """The messages that ended on one day (UTC), by outcome."""

    day: str
    outcomes: Mapping[str, int]

    @property
    def total(self) -> int:
        """The messages of the day."""
        return sum(self.outcomes.values())


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """The messages with one value, for example those of one channel. Cost in US dollars."""

    name: str
    total: int
    answered: int
    refused: int
    down: int
    cost_usd: Decimal | None


@dataclass(frozen=True, slots=True)
class PeriodFigures:
    """The figures of all messages of a period; seconds from acceptance to the outcome."""

    total: int
    outcomes: Mapping[str, int]
    up: int
    down: int
    median_seconds: float | None
    slow_seconds: float | None
    """95 of 100 messages ended within this time."""
    cost_usd: Decimal
    unknown_costs: int
    """Messages with a model call whose price is not known; `cost_usd` is without them."""
    mean_cost_usd: Decimal | None
    """Of the messages whose price is known; None if there are none."""
    days: Sequence[DayFigures]
    reasons: Sequence[tuple[str, str, int]]
    """Outcome, reason and number, the most frequent first."""
    groups: Mapping[str, Sequence[GroupFigures]]


def compute_figures(
    rows: Iterable[Mapping[str, Any]], *, since: float, until: float
) -> PeriodFigures:
    """Return the figures of a period (Unix seconds); `rows` are of `RecordStore.read_figures`."""
    rows = list(rows)
    outcomes = Counter(outcome_of(row) for row in rows)
    ratings = Counter(row["rating"] for row in rows)
    seconds = [row["seconds"] for row in rows if outcome_of(row) != "superseded"]
    costs = [row["cost_usd"] for row in rows]
    reasons = Counter(
        (outcome_of(row), row["reason"]) for row in rows if outcome_of(row) != "answered"
    )
    return PeriodFigures(
        total=len(rows),
        outcomes={name: outcomes[name] for name in OUTCOMES},
        up=ratings["up"],
        down=ratings["down"],
        median_seconds=statistics.median(seconds) if seconds else None,
        slow_seconds=_percentile(seconds, 95),
        cost_usd=_sum(costs),
        unknown_costs=costs.count(None),
        mean_cost_usd=_sum(costs) / known if (known := len(costs) - costs.count(None)) else None,
        days=_count_days(rows, since, until),
        reasons=[(outcome, reason, count) for (outcome, reason), count in reasons.most_common()],
        groups={name: _group(rows, name) for name in ("channel", "assistant", "way")},
    )


def outcome_of(row: Mapping[str, Any]) -> str:
    """Return the outcome for the owner, who tells passages of the search from written answers."""
    outcome = str(row["outcome"])
    is_passages = outcome == "answered" and row["answered_by"] == _BY_SEARCH
    return "passages" if is_passages else outcome if outcome in OUTCOMES else "failed"


def _count_days(rows: Sequence[Mapping[str, Any]], since: float, until: float) -> list[DayFigures]:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[_day(row["ended_at"])][outcome_of(row)] += 1
    first, last = datetime.fromtimestamp(since, UTC), datetime.fromtimestamp(until, UTC)
    days = [first + timedelta(days=at) for at in range((last.date() - first.date()).days + 1)]
    return [DayFigures(f"{day:%Y-%m-%d}", counts[f"{day:%Y-%m-%d}"]) for day in days]


def _day(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"


def _group(rows: Sequence[Mapping[str, Any]], name: str) -> list[GroupFigures]:
    parts: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        parts[row[name]].append(row)
    found = []
    for value, part in parts.items():
        outcomes = Counter(outcome_of(row) for row in part)
        costs = [row["cost_usd"] for row in part]
        found.append(
            GroupFigures(
                name=value,
                total=len(part),
                answered=outcomes["answered"] + outcomes["passages"],
                refused=outcomes["refused"],
                down=sum(row["rating"] == "down" for row in part),
                cost_usd=None if None in costs else _sum(costs),
            )
        )
    return sorted(found, key=lambda one: (-one.total, one.name))


def _sum(costs: Iterable[str | None]) -> Decimal:
    return sum((Decimal(cost) for cost in costs if cost is not None), Decimal(0))


def _percentile(values: Sequence[float], percent: int) -> float | None:
    """Return the nearest-rank percentile."""
    if not values:
        return None
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]
