"""What each agent took for a message: runs, time, model calls, cost and errors."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from pydantic import BaseModel, JsonValue

from broker.values import Fields, JournalEntry

_RULES = "offline"


class AgentTotals(BaseModel, frozen=True):
    """The sums of one agent over all of its runs, in all branches.

    `error_count` counts runs that failed or gave up, and the errors that runs have written.
    """

    agent: str
    runs: int
    total_time_ms: float
    model_calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: str | None
    error_count: int


@dataclass
class _Sums:
    """The sums of an agent so far; without a price from one call on, the cost is unknown."""

    runs: int = 0
    milliseconds: float = 0.0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = Decimal(0)
    errors: int = 0

    def add_call(self, fields: Fields) -> None:
        self.model_calls += 1
        self.input_tokens += _read_whole(fields.get("input_tokens"))
        self.output_tokens += _read_whole(fields.get("output_tokens"))
        price = fields.get("cost_usd")
        known = price is not None and self.cost is not None
        self.cost = self.cost + Decimal(str(price)) if known and self.cost is not None else None


def is_vendor_call(entry: JournalEntry) -> bool:
    """Return whether an entry is the call of a vendor's model; the rules are no model."""
    return entry.kind == "model_call" and entry.fields.get("model") != _RULES


def sum_agents(entries: Iterable[JournalEntry]) -> list[AgentTotals]:
    """Return the totals of each agent, the one with most time first.

    The calls of models before the run of an agent, in the same branch, are those of the agent.
    """
    sums: defaultdict[str, _Sums] = defaultdict(_Sums)
    waiting: defaultdict[str, list[Fields]] = defaultdict(list)
    for entry in entries:
        branch = str(entry.fields.get("branch") or "")
        if is_vendor_call(entry):
            waiting[branch].append(entry.fields)
        elif entry.kind == "agent_run":
            own = sums[str(entry.fields.get("role"))]
            own.runs += 1
            took = entry.fields.get("milliseconds")
            own.milliseconds += took if isinstance(took, int | float) else 0.0
            own.errors += _count_errors(entry.fields)
            for call in waiting.pop(branch, ()):
                own.add_call(call)
    totals = [
        AgentTotals(
            agent=name,
            runs=one.runs,
            total_time_ms=round(one.milliseconds, 3),
            model_calls=one.model_calls,
            input_tokens=one.input_tokens,
            output_tokens=one.output_tokens,
            cost_usd=None if one.cost is None else str(one.cost),
            error_count=one.errors,
        )
        for name, one in sums.items()
    ]
    return sorted(totals, key=lambda one: (-one.total_time_ms, one.agent))


def _count_errors(fields: Fields) -> int:
    writes = fields.get("writes")
    written = writes.get("errors") if isinstance(writes, dict) else None
    failed = fields.get("status") != "completed"
    return int(failed) + (len(written) if isinstance(written, list) else 0)


def _read_whole(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0
