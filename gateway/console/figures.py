"""Computes the figures of a period for the console: counts, shares, times and costs, by day and
group.
"""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any

from records.record import COMMAND, COURTESY
from records.store import OUT_OF_SCOPE, SEARCH, UNRESOLVED

OUTCOMES = ("answered", "passages", "clarification", "refused", "failed", "superseded")
"""Outcomes of a message as shown to the owner; `passages`: no model wrote an answer."""


@dataclass(frozen=True, slots=True)
class DayFigures:
    """The questions that ended on one day, by outcome."""

    day: str
    outcomes: Mapping[str, int]

    @property
    def total(self) -> int:
        """The questions of the day."""
        return sum(self.outcomes.values())


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """The number of questions that share a value, such as their channel, and their known cost in US
    dollars.
    """

    name: str
    total: int
    answered: int
    refused: int
    down: int
    cost_usd: Decimal


@dataclass(frozen=True, slots=True)
class PeriodFigures:
    """The figures of a period; times are seconds from acceptance to the outcome.

    Greetings, thanks and commands are not questions. `resolved` questions have a written answer
    without a negative rating; `unresolved` ones are within the scope and have no answer, or one
    that was rated down. Passages shown without a model count as neither, because they were not
    judged.
    """

    total: int
    outcomes: Mapping[str, int]
    resolved: int
    unresolved: int
    out_of_scope: int
    up: int
    down: int
    median_seconds: float | None
    slow_seconds: float | None
    """95 % of the questions ended within this time."""
    cost_usd: Decimal
    unknown_costs: int
    """Number of questions with a model call of unknown price; `cost_usd` does not include it."""
    mean_cost_usd: Decimal | None
    """Mean over the questions whose cost is known; None if there are none."""
    days: Sequence[DayFigures]
    reasons: Sequence[tuple[str, str, int]]
    """Outcome, reason and count, the most frequent first."""
    groups: Mapping[str, Sequence[GroupFigures]]

    @property
    def resolution(self) -> float | None:
        """The share of resolved questions among the resolved and unresolved ones, or None without
        either.
        """
        judged = self.resolved + self.unresolved
        return self.resolved / judged if judged else None


def compute_figures(
    rows: Iterable[Mapping[str, Any]], *, since: float, until: float, zone: tzinfo = UTC
) -> PeriodFigures:
    """Return the figures of a period (Unix seconds); `rows` come from
    `RecordStore.read_figures`.
    """
    rows = [
        row
        for row in rows
        if since <= row["ended_at"] < until and row["way"] not in (COURTESY, COMMAND)
    ]
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
        resolved=sum(outcome_of(row) == "answered" and row["rating"] != "down" for row in rows),
        unresolved=sum(map(_is_unresolved, rows)),
        out_of_scope=reasons["refused", OUT_OF_SCOPE],
        up=ratings["up"],
        down=ratings["down"],
        median_seconds=statistics.median(seconds) if seconds else None,
        slow_seconds=_percentile(seconds, 95),
        cost_usd=_sum(costs),
        unknown_costs=costs.count(None),
        mean_cost_usd=_sum(costs) / known if (known := len(costs) - costs.count(None)) else None,
        days=_count_days(rows, since, until, zone),
        reasons=[(outcome, reason, count) for (outcome, reason), count in reasons.most_common()],
        groups={name: _group(rows, name) for name in ("channel", "assistant", "way")},
    )


def outcome_of(row: Mapping[str, Any]) -> str:
    """Return the outcome as shown to the owner, which distinguishes passages from written
    answers.
    """
    outcome = str(row["outcome"])
    is_passages = outcome == "answered" and row["answered_by"] == SEARCH
    return "passages" if is_passages else outcome if outcome in OUTCOMES else "failed"


def sum_by_day(rows: Sequence[Mapping[str, Any]], days: Sequence[str], zone: tzinfo = UTC
) -> dict[str, Decimal]:  # fmt: skip
    """Return the known cost of each day."""
    sums = dict.fromkeys(days, Decimal(0))
    for row in rows:
        day = day_of(row["ended_at"], zone)
        if row["cost_usd"] is not None and day in sums:
            sums[day] += Decimal(row["cost_usd"])
    return sums


def day_of(moment: float, zone: tzinfo) -> str:
    """Return the day of a time (Unix seconds)."""
    return f"{datetime.fromtimestamp(moment, zone):%Y-%m-%d}"


def _is_unresolved(row: Mapping[str, Any]) -> bool:
    is_open = outcome_of(row) in UNRESOLVED and row["reason"] != OUT_OF_SCOPE
    return bool(is_open or row["rating"] == "down")


def _count_days(
    rows: Sequence[Mapping[str, Any]], since: float, until: float, zone: tzinfo
) -> list[DayFigures]:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        counts[day_of(row["ended_at"], zone)][outcome_of(row)] += 1
    first, last = (datetime.fromtimestamp(moment, zone).date() for moment in (since, until))
    days = [f"{first + timedelta(days=at)}" for at in range((last - first).days + 1)]
    return [DayFigures(day, counts[day]) for day in days]


def _group(rows: Sequence[Mapping[str, Any]], name: str) -> list[GroupFigures]:
    parts: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        parts[row[name]].append(row)
    groups = []
    for value, part in parts.items():
        outcomes = Counter(outcome_of(row) for row in part)
        groups.append(
            GroupFigures(
                name=value,
                total=len(part),
                answered=outcomes["answered"] + outcomes["passages"],
                refused=outcomes["refused"],
                down=sum(row["rating"] == "down" for row in part),
                cost_usd=_sum(row["cost_usd"] for row in part),
            )
        )
    return sorted(groups, key=lambda item: (-item.total, item.name))


def _sum(costs: Iterable[str | None]) -> Decimal:
    return sum((Decimal(cost) for cost in costs if cost is not None), Decimal(0))


def _percentile(values: Sequence[float], percent: int) -> float | None:
    """Return the nearest-rank percentile, or None without values."""
    if not values:
        return None
    return sorted(values)[max(0, -(-len(values) * percent // 100) - 1)]
