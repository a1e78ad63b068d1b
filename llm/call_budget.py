"""The budget port of paid model calls: a call is reserved before it is made, and settled after."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from envelope.run import BudgetRefusal, Run
from llm.errors import BudgetExhausted
from llm.metering import UsageEntry, UsageMeter
from llm.port import Usage


@dataclass(frozen=True, slots=True)
class CallCost:
    """What a call takes, or may take at most; `usd` is None where the price is unknown."""

    model: str
    tokens: int
    usd: Decimal | None


class CallBudget(Protocol):
    """Counts the paid calls of questions, over every process that works on them."""

    async def reserve(self, run: Run, reservation: str, most: CallCost) -> BudgetRefusal | None:
        """Reserve one call; return the exhausted amount, and then reserve nothing.

        A reservation that is not settled is granted again, and counted once.
        """
        ...

    async def settle(self, run: Run, reservation: str, cost: CallCost) -> None:
        """Replace a reservation by what its call cost."""
        ...


@asynccontextmanager
async def hold(
    budget: CallBudget | None, run: Run, meter: UsageMeter, most: Usage
) -> AsyncIterator[UsageEntry]:
    """Meter the exchange in the block, and hold its reservation meanwhile.

    Raises `BudgetExhausted` before the block. An exchange that is cancelled stays reserved: nobody
    knows what it cost. Outside of a question there is no budget.
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
