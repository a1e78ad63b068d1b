"""Budgets per question and per tenant and day, reserved before each paid model or tool call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, Decimal

import structlog

from envelope.run import BudgetRefusal, Run
from llm.metering import CallCost
from memory.budgets import Amounts, Exhausted, RedisBudgets
from memory.errors import MemoryUnavailableError
from tools.calls import ToolCall

MODEL_CALLS, TOOL_CALLS, TOKENS, USD, TENANT_USD = (
    "model_calls", "tool_calls", "tokens", "usd", "tenant_usd"
)  # fmt: skip
_MICRO_USD = "micro_usd"
_MICRO = Decimal(1_000_000)

log = structlog.get_logger("budgets")


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """The limits per question, by the name of the limited amount, and the limit per tenant and day,
    in micro-USD.
    """

    question: Mapping[str, int]
    tenant_micro_usd: int | None = None

    @classmethod
    def of(
        cls, *, model_calls: int, tokens: int, usd: float, tenant_usd: float
    ) -> "BudgetLimits | None":
        """Return the limits, or None if all are 0; 0 means no limit."""
        question = {
            MODEL_CALLS: model_calls,
            TOKENS: tokens,
            _MICRO_USD: _count_micro(Decimal(str(usd))),
        }
        limits = {name: amount for name, amount in question.items() if amount}
        tenant = _count_micro(Decimal(str(tenant_usd))) or None
        return cls(limits, tenant) if limits or tenant else None


class ModelCallBudget:
    """Reserves paid model calls; see `llm.metering.CallBudget`."""

    def __init__(
        self,
        budgets: RedisBudgets,
        limits: BudgetLimits,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._budgets = budgets
        self._limits = limits
        self._clock = clock
        self._unpriced: set[str] = set()

    async def reserve(self, run: Run, reservation: str, most: CallCost) -> BudgetRefusal | None:
        """Reserve a call in the budget of the question, then in the daily budget of its tenant."""
        self._check_price(most)
        question = run.find_question()
        amounts = _list_amounts(most)
        if self._limits.question:
            asked = Amounts(amounts, self._limits.question)
            refused = await self._budgets.reserve(question, reservation, asked)
            if refused is not None:
                return _describe(refused, USD)
        if self._limits.tenant_micro_usd is None:
            return None
        spent = Amounts(
            {_MICRO_USD: amounts[_MICRO_USD]}, {_MICRO_USD: self._limits.tenant_micro_usd}
        )
        name = _name_in_tenant(run, reservation)
        [today, _] = self._list_days()
        refused = await self._budgets.reserve_of_tenant(question.tenant, today, name, spent)
        if refused is None:
            return None
        if self._limits.question:
            await self._budgets.settle(question, reservation, {})
        return _describe(refused, TENANT_USD)

    async def settle(self, run: Run, reservation: str, cost: CallCost) -> None:
        """Replace the reservation by the actual cost in both budgets.

        If Redis is unavailable, the reservation stays.
        """
        amounts = _list_amounts(cost)
        question = run.find_question()
        try:
            if self._limits.question:
                await self._budgets.settle(question, reservation, amounts)
            if self._limits.tenant_micro_usd is not None:
                name = _name_in_tenant(run, reservation)
                spent = {_MICRO_USD: amounts[_MICRO_USD]}
                for day in self._list_days():
                    if await self._budgets.settle_of_tenant(question.tenant, day, name, spent):
                        break
        except MemoryUnavailableError as error:
            # The answer is already paid for; raising would lose it.
            log.warning("budget_not_settled", message_id=question.message_id, error=str(error))

    def _list_days(self) -> tuple[str, str]:
        """Return today and yesterday (UTC), because a call may end after midnight."""
        today = self._clock().date()
        return today.isoformat(), (today - timedelta(days=1)).isoformat()

    def _check_price(self, most: CallCost) -> None:
        """Log once per model that calls without a known price do not count against USD limits."""
        limited = self._limits.tenant_micro_usd or _MICRO_USD in self._limits.question
        if limited and most.usd is None and most.model not in self._unpriced:
            self._unpriced.add(most.model)
            log.warning("budget_price_unknown", model=most.model)


class ToolCallBudget:
    """Reserves the tool calls of a run; see `tools.executor.ToolBudget`."""

    def __init__(self, budgets: RedisBudgets, most_calls: int, run: Run) -> None:
        self._budgets = budgets
        self._run = run
        self._limits = {TOOL_CALLS: most_calls}

    async def reserve(self, call: ToolCall) -> bool:
        """Reserve one call; a redelivered envelope does not reserve it again."""
        run = self._run
        if run.question is None:
            return True
        number = run.count_equal(f"tool/{call.call_id}")
        name = f"{run.place}/{run.attempt}/tool/{call.call_id}/{number}"
        asked = Amounts({TOOL_CALLS: 1}, self._limits)
        refused = await self._budgets.reserve(run.question, name, asked)
        if refused is not None:
            run.refusals.append(_describe(refused, USD))
        return refused is None


def _list_amounts(cost: CallCost) -> dict[str, int]:
    usd = Decimal(0) if cost.usd is None else cost.usd
    return {MODEL_CALLS: 1, TOKENS: cost.tokens, _MICRO_USD: _count_micro(usd)}


def _count_micro(usd: Decimal) -> int:
    return int((usd * _MICRO).to_integral_value(ROUND_CEILING))


def _name_in_tenant(run: Run, reservation: str) -> str:
    question = run.find_question()
    return f"{question.assistant}/{question.conversation_id}/{question.message_id}/{reservation}"


def _describe(refused: Exhausted, usd: str) -> BudgetRefusal:
    name = usd if refused.name == _MICRO_USD else refused.name
    return BudgetRefusal(name, refused.limit, refused.used)
