from typing import Any

from envelope.question import Question
from memory.budgets import Amounts, Exhausted, RedisBudgets

ASKED = Question(tenant="acme", assistant="docs", conversation_id="c", message_id="m")
CALL = Amounts({"model_calls": 1, "tokens": 100}, {"model_calls": 5, "tokens": 1000})


async def test_a_refused_reservation_counts_nothing_of_any_amount(client: Any) -> None:
    budgets = RedisBudgets(client, shards=1)

    refused = await budgets.reserve(
        ASKED, "a", Amounts({"model_calls": 1, "tokens": 2000}, {"model_calls": 5, "tokens": 1000})
    )

    assert refused == Exhausted("tokens", limit=1000, used=0)
    assert await budgets.read(ASKED) == {}


async def test_a_settled_call_counts_what_it_cost_and_frees_the_rest(client: Any) -> None:
    budgets = RedisBudgets(client, shards=1)
    for number in range(5):
        await budgets.reserve(ASKED, f"{number}", CALL)

    assert await budgets.settle(ASKED, "0", {"model_calls": 1, "tokens": 40, "micro_usd": 7})
    assert await budgets.settle(ASKED, "1", {})

    assert await budgets.read(ASKED) == {"model_calls": 4, "tokens": 340, "micro_usd": 7}
    assert await budgets.reserve(ASKED, "6", CALL) is None
    assert await budgets.reserve(ASKED, "7", CALL) is not None


async def test_a_redelivered_hop_reserves_and_settles_once(client: Any) -> None:
    budgets = RedisBudgets(client, shards=1)

    for _ in range(3):
        assert await budgets.reserve(ASKED, "a", CALL) is None
    assert await budgets.settle(ASKED, "a", {"model_calls": 1})
    assert not await budgets.settle(ASKED, "a", {"model_calls": 1})

    assert await budgets.read(ASKED) == {"model_calls": 1, "tokens": 0}


async def test_a_call_that_failed_and_is_made_again_counts_twice(client: Any) -> None:
    budgets = RedisBudgets(client, shards=1)

    for _ in range(2):
        assert await budgets.reserve(ASKED, "a", CALL) is None
        assert await budgets.settle(ASKED, "a", {"model_calls": 1, "tokens": 10})

    assert await budgets.read(ASKED) == {"model_calls": 2, "tokens": 20}


async def test_a_reservation_whose_process_died_stays_counted_until_the_budget_expires(
    client: Any,
) -> None:
    budgets = RedisBudgets(client, shards=1)
    await budgets.reserve(ASKED, "of a process that died", CALL)

    (key,) = await client.keys("*")

    assert await budgets.read(ASKED) == {"model_calls": 1, "tokens": 100}
    assert 0 < await client.ttl(key) <= 3600


async def test_an_amount_of_nothing_is_reserved_and_settled(client: Any) -> None:
    budgets = RedisBudgets(client, shards=1)

    assert await budgets.reserve(ASKED, "a", Amounts({"micro_usd": 0}, {})) is None
    assert await budgets.settle(ASKED, "a", {"micro_usd": 0})

    assert await budgets.read(ASKED) == {"micro_usd": 0}


async def test_a_tenant_has_a_budget_for_each_day(client: Any) -> None:
    budgets = RedisBudgets(client, shards=1)
    spent = Amounts({"micro_usd": 600}, {"micro_usd": 1000})

    assert await budgets.reserve_of_tenant("acme", "2026-11-23", "a", spent) is None
    refused = await budgets.reserve_of_tenant("acme", "2026-11-23", "b", spent)
    assert refused == Exhausted("micro_usd", limit=1000, used=600)
    assert await budgets.reserve_of_tenant("acme", "2026-11-24", "b", spent) is None
    assert await budgets.reserve_of_tenant("other", "2026-11-23", "b", spent) is None
    assert await budgets.settle_of_tenant("acme", "2026-11-23", "a", {"micro_usd": 100})
    assert await budgets.reserve_of_tenant("acme", "2026-11-23", "b", spent) is None
