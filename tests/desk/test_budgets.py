"""Budgets of questions and tenants, from an agent's call to the vendor's server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

import pytest

from deploy.assembly.tool_access import make_tool_budgets
from envelope.question import Question as Message
from envelope.run import BudgetRefusal, Run
from llm.errors import BudgetExhausted
from llm.metering import CallCost
from llm.port import Model
from llm.registry import AnswerStores, Registry
from llm.vendors.catalogue import VendorAccess
from memory.budgets import RedisBudgets
from tests.llm.sample_task import BLUE, COLOUR, CallsInMemory, PlainPrompts, Question
from tests.llm.vendor_dialects import OpenAI
from tests.support.app_harness import AppHarness
from tests.support.empty_redis import EMPTY_REDIS, open_empty_redis
from tests.support.model_server import ModelServer, Response
from tests.support.runs import start_run
from tools.calls import ToolCall
from worker.budgets import BudgetLimits, ModelCallBudget, ToolCallBudget

VENDOR = OpenAI()
ANSWER = VENDOR.answer(BLUE.model_dump_json())
ASKED = Message(tenant="acme", assistant="docs", conversation_id="c", message_id="m")
MODEL = "gpt-4o-mini@openai"


class OpenApp(Protocol):
    def __call__(self, **changes: object) -> AbstractAsyncContextManager[AppHarness]: ...


@pytest.fixture(params=EMPTY_REDIS)
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    async with open_empty_redis(request) as client:
        yield client


MakeModel = Callable[..., Model]


@pytest.fixture
async def make_model(server: ModelServer) -> AsyncIterator[MakeModel]:
    """Return a function from a budget to the model of a setting, with a store of paid answers."""
    access = {"openai": VendorAccess(api_key="secret-key", base_url=f"{server.url}/v1")}
    async with AsyncExitStack() as stack:

        def make(budget: ModelCallBudget, setting: str = MODEL) -> Model:
            registry = Registry(prompts=PlainPrompts(), access=access, budget=budget)
            stack.push_async_callback(registry.close)
            return registry.model(setting, AnswerStores(CallsInMemory()))

        yield make


async def ask(model: Model, text: str, *, branch: str = "") -> Run:
    run = start_run(ASKED, stage="response", attempt=0, branch=branch)
    await model.ask(COLOUR, Question(text=text), run)
    return run


async def test_of_two_hundred_calls_at_once_on_a_limit_of_five_exactly_five_are_asked(
    server: ModelServer, make_model: MakeModel, client: Any
) -> None:
    server.will_send(*[ANSWER] * 200)
    budgets = RedisBudgets(client, shards=4)
    budget = ModelCallBudget(budgets, BudgetLimits({"model_calls": 5}))
    model = make_model(budget)
    connections = asyncio.Semaphore(64)

    async def ask_one(number: int) -> BaseException | None:
        async with connections:
            try:
                await ask(model, f"question {number}", branch=f"t{number}")
            except BudgetExhausted as error:
                return error
        return None

    gathered = await asyncio.gather(*map(ask_one, range(200)))

    assert gathered.count(None) == 5
    assert len(server.received) == 5
    assert (await budgets.read(ASKED))["model_calls"] == 5


async def test_a_call_that_was_killed_before_it_was_settled_counts_once_when_it_is_made_again(
    server: ModelServer, make_model: MakeModel, client: Any
) -> None:
    server.will_send(Response(ends="never"), ANSWER, ANSWER)
    budgets = RedisBudgets(client, shards=4)
    budget = ModelCallBudget(budgets, BudgetLimits({"model_calls": 1}))
    model = make_model(budget)

    async with asyncio.TaskGroup() as group:
        killed = group.create_task(ask(model, "the first"))
        await server.was_asked.wait()
        killed.cancel()
    assert (await budgets.read(ASKED))["model_calls"] == 1
    await ask(model, "the first")
    await ask(model, "the first")
    with pytest.raises(BudgetExhausted, match="1 model_calls"):
        await ask(model, "another")

    assert len(server.received) == 2
    assert await budgets.read(ASKED) == {"model_calls": 1, "tokens": 120, "micro_usd": 0}


async def test_stored_answers_and_answers_of_rules_reserve_nothing(
    server: ModelServer, make_model: MakeModel, client: Any
) -> None:
    server.will_send(ANSWER)
    budgets = RedisBudgets(client, shards=4)
    budget = ModelCallBudget(budgets, BudgetLimits({"model_calls": 1}))
    model = make_model(budget)

    for _ in range(3):
        await ask(model, "the same")

    assert (await budgets.read(ASKED))["model_calls"] == 1
    assert len(server.received) == 1


async def test_equal_calls_of_two_branches_are_two_calls_and_a_redelivered_branch_pays_for_none(
    server: ModelServer, make_model: MakeModel, client: Any
) -> None:
    server.will_send(ANSWER, ANSWER)
    budget = ModelCallBudget(RedisBudgets(client, shards=4), BudgetLimits({"model_calls": 2}))
    model = make_model(budget)

    for _ in range(2):
        for branch in ("t1", "t2"):
            await ask(model, "the same", branch=branch)

    assert len(server.received) == 2


async def test_a_failed_call_that_costs_nothing_frees_its_tokens_and_counts_as_a_call(
    server: ModelServer, make_model: MakeModel, client: Any
) -> None:
    server.will_send(VENDOR.failure(401), ANSWER)
    budgets = RedisBudgets(client, shards=4)
    limits = BudgetLimits({"tokens": 1000, "model_calls": 9})
    model = make_model(ModelCallBudget(budgets, limits))

    with pytest.raises(Exception, match="OPENAI_API_KEY"):
        await ask(model, "the first")

    assert await budgets.read(ASKED) == {"model_calls": 1, "tokens": 0, "micro_usd": 0}


async def test_a_call_that_may_cost_more_than_is_left_is_not_made(
    server: ModelServer, make_model: MakeModel, client: Any
) -> None:
    server.will_send(ANSWER, ANSWER)
    budget = ModelCallBudget(RedisBudgets(client, shards=4), BudgetLimits({"tokens": 150}))
    model = make_model(budget)

    scope = await ask(model, "short")
    assert scope.refusals == []
    run = start_run(ASKED, stage="response", attempt=0)
    with pytest.raises(BudgetExhausted):
        await model.ask(COLOUR, Question(text="another"), run)

    [refusal] = run.refusals
    assert (refusal.name, refusal.limit, refusal.used) == ("tokens", 150, 120)
    assert len(server.received) == 1


async def test_a_tenants_day_ends_its_budget_and_a_call_over_midnight_is_settled(
    client: Any,
) -> None:
    now = [datetime(2026, 11, 23, 23, 59, tzinfo=UTC)]
    budgets = RedisBudgets(client, shards=4)
    budget = ModelCallBudget(
        budgets, BudgetLimits({"model_calls": 5}, tenant_micro_usd=100), clock=lambda: now[0]
    )
    run = Run(ASKED, "response", 0)
    dear, cheap = CallCost(MODEL, 9, Decimal("0.00006")), CallCost(MODEL, 9, Decimal("0.00001"))

    assert await budget.reserve(run, "a", dear) is None
    assert await budget.reserve(run, "b", dear) == BudgetRefusal("tenant_usd", 100, 60)
    assert (await budgets.read(ASKED))["model_calls"] == 1
    now[0] += timedelta(minutes=2)
    await budget.settle(run, "a", cheap)
    now[0] -= timedelta(minutes=2)

    assert await budget.reserve(run, "c", dear) is None
    assert await budget.reserve(run, "d", dear) == BudgetRefusal("tenant_usd", 100, 70)


async def test_a_budget_that_refuses_a_model_does_not_keep_other_questions_off_it(
    server: ModelServer, make_model: MakeModel, client: Any
) -> None:
    server.will_send(*[ANSWER] * 9)
    budget = ModelCallBudget(RedisBudgets(client, shards=4), BudgetLimits({"model_calls": 1}))
    model = make_model(budget, f"{MODEL},gpt-4o@openai")

    await ask(model, "first")
    for _ in range(6):
        with pytest.raises(BudgetExhausted):
            await ask(model, "refused")
    run = start_run(ASKED.model_copy(update={"message_id": "n"}), stage="response", attempt=0)
    answer = await model.ask(COLOUR, Question(text="of another question"), run)

    assert answer.model == MODEL


async def test_a_tool_call_is_reserved_once_and_the_sixth_of_five_is_not_made(client: Any) -> None:
    budgets = RedisBudgets(client, shards=4)

    async def reserve(branch: str) -> bool:
        call = ToolCall(call_id="c1", tool="lookup", arguments={})
        run = start_run(ASKED, stage="tool", attempt=0, branch=branch)
        return await ToolCallBudget(budgets, 5, run).reserve(call)

    first = [await reserve("t1") for _ in range(3)]
    gathered = await asyncio.gather(*(reserve(f"t{number}") for number in range(2, 40)))

    assert first == [True, True, True]
    assert gathered.count(True) == 4


def test_without_a_limit_nothing_asks_redis(client: Any) -> None:
    assert BudgetLimits.of(model_calls=0, tokens=0, usd=0, tenant_usd=0) is None
    assert make_tool_budgets(client, shards=1, most_calls=0) is None


async def test_a_question_whose_budget_is_used_up_is_answered_and_says_so(
    server: ModelServer, open_app: OpenApp
) -> None:
    server.will_send(*[VENDOR.answer("not what was asked")] * 40)

    async with open_app(
        gen_model=MODEL,
        openai_api_key="sk-of-this-test",
        openai_base_url=f"{server.url}/v1",
        budget_model_calls=1,
    ) as app:
        talk = app.driver()
        reply = await talk.say("How do I create a routing rule?")
        journal = await talk.journal(reply)

    assert (reply["outcome"], reply["fallback_reason"]) == ("answered", "budget_spent")
    assert reply["termination_reason"] == "budget_model_calls"
    assert len(server.received) == 1
    noted = [entry.fields for entry in journal if entry.kind == "budget_exhausted"]
    assert noted[0] == {"budget": "model_calls", "limit": 1, "used": 1}
