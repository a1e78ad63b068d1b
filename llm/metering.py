"""Measures tokens, cost and time of model calls, and enforces budgets.

The cost of a paid call is reserved before the call is made, and settled afterwards.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from time import perf_counter
from typing import Protocol

from envelope.run import BudgetRefusal, Run
from llm.errors import BudgetExhausted, ModelError
from llm.port import ModelCall, Usage, record
from llm.prices import PriceSource

CANCELLED = "cancelled before the model answered"


@dataclass(slots=True)
class UsageMeter:
    """Records every exchange as a model call, and adds up usage, cost, and time.

    The total cost is None if any cost is unknown.
    """

    task: str
    name: str
    prices: PriceSource
    prompt_hash: str = ""
    usage: Usage = field(default=Usage())
    cost_usd: Decimal | None = Decimal(0)
    milliseconds: float = 0.0

    @contextmanager
    def exchange(self) -> Iterator["UsageEntry"]:
        """Record the exchange in the `with` block as one call; the block sets the entry's `usage`.

        Failed exchanges are recorded as well, because they also cost money.
        """
        entry = UsageEntry()
        started = perf_counter()
        error = CANCELLED
        try:
            yield entry
            error = entry.problem
        except ModelError as raised:
            error = f"{type(raised).__name__}: {raised}"
            raise
        finally:
            self._close(entry, (perf_counter() - started) * 1000, error)

    def price(self, usage: Usage) -> Decimal | None:
        """Return the price of a call with this usage, or None if it is unknown."""
        return self.prices.cost_usd(self.name.rpartition("@")[0], usage)

    def charge(self, error: ModelError) -> None:
        """Store the usage and cost so far in an error."""
        error.usage, error.cost_usd = self.usage, self.cost_usd

    def _close(self, entry: "UsageEntry", milliseconds: float, error: str) -> None:
        cost = entry.cost_usd = self._cost(entry)
        entry.has_ended = error != CANCELLED
        usage = entry.usage if entry.usage is not None else Usage()
        self.usage = _sum(self.usage, usage)
        self.cost_usd = None if self.cost_usd is None or cost is None else self.cost_usd + cost
        self.milliseconds += milliseconds
        record(
            ModelCall(
                task=self.task,
                model=self.name,
                usage=usage,
                cost_usd=cost,
                milliseconds=milliseconds,
                error=error or None,
                prompt_hash=self.prompt_hash,
                answered_by=entry.answered_by,
            )
        )

    def _cost(self, entry: "UsageEntry") -> Decimal | None:
        if not entry.answered:
            return Decimal(0)
        if entry.usage is None:
            return None
        return self.price(entry.usage)


@dataclass(slots=True)
class UsageEntry:
    """An exchange with a vendor. `answered` is true if the vendor replied, and `problem` is set if
    the reply was unusable.

    `has_ended` is False for a cancelled exchange, whose cost is unknown.
    """

    answered: bool = False
    usage: Usage | None = None
    problem: str = ""
    has_ended: bool = False
    cost_usd: Decimal | None = Decimal(0)
    answered_by: str = ""

    def record_usage(self, usage: Usage | None, answered_by: str = "") -> None:
        """Record that the vendor answered; `usage` is None if it does not report it.

        `answered_by` is the model named in the reply.
        """
        self.answered, self.usage, self.answered_by = True, usage, answered_by


@dataclass(frozen=True, slots=True)
class CallCost:
    """The cost of a call, or its upper bound; `usd` is None if the price is unknown."""

    model: str
    tokens: int
    usd: Decimal | None


class CallBudget(Protocol):
    """Counts the paid calls of questions across all processes."""

    async def reserve(self, run: Run, reservation: str, most: CallCost) -> BudgetRefusal | None:
        """Reserve a call; return the refusal if a budget is exhausted, or None.

        Repeating an unsettled reservation succeeds and counts only once.
        """
        ...

    async def settle(self, run: Run, reservation: str, cost: CallCost) -> None:
        """Replace a reservation with the actual cost of its call."""
        ...


@asynccontextmanager
async def hold(
    budget: CallBudget | None, run: Run, meter: UsageMeter, most: Usage
) -> AsyncIterator[UsageEntry]:
    """Meter the exchange in the block, and reserve its cost from the budget.

    Raises `BudgetExhausted` before the block runs. The reservation of a cancelled exchange is kept,
    because its cost is unknown. A run without a question has no budget.
    """
    if budget is None or run.question is None:
        with meter.exchange() as entry:
            yield entry
        return
    cost = CallCost(meter.name, _count_tokens(most), meter.price(most))
    reservation = await _reserve(budget, run, meter, cost)
    entry = UsageEntry()
    try:
        with meter.exchange() as entry:
            yield entry
    finally:
        if entry.has_ended:
            used = entry.usage if entry.answered else Usage()
            if used is not None:
                cost = CallCost(meter.name, _count_tokens(used), entry.cost_usd)
            await budget.settle(run, reservation, cost)


def _sum(first: Usage, second: Usage) -> Usage:
    return Usage(
        first.input_tokens + second.input_tokens,
        first.output_tokens + second.output_tokens,
        first.cached_input_tokens + second.cached_input_tokens,
        first.cache_write_tokens + second.cache_write_tokens,
    )


def _count_tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


async def _reserve(budget: CallBudget, run: Run, meter: UsageMeter, most: CallCost) -> str:
    stem = f"{run.place}/{run.attempt}/{meter.name}/{meter.prompt_hash}"
    reservation = f"{stem}/{run.count_equal(stem)}"
    refusal = await budget.reserve(run, reservation, most)
    if refusal is not None:
        run.refusals.append(refusal)
        raise BudgetExhausted(
            f"expected a budget of {refusal.limit} {refusal.name} to allow a call of "
            f"{meter.name!r}, found {refusal.used} used",
            amount=refusal.name,
        )
    return reservation
