import asyncio
from dataclasses import dataclass
from typing import Any

from memory.rate_limits import RedisLimiter, RedisTurns


@dataclass(frozen=True)
class Limit:
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


async def test_requests_over_the_limit_are_asked_to_wait(client: Any) -> None:
    limiter = RedisLimiter(client, {"m": Limit(requests_per_minute=2)})

    waits = [await limiter.acquire("m", 10) for _ in range(3)]

    assert waits[:2] == [0.0, 0.0]
    assert 20 < waits[2] <= 30


async def test_tokens_are_limited_over_all_processes(client: Any) -> None:
    limits = {"m": Limit(tokens_per_minute=1000)}
    first, other = RedisLimiter(client, limits), RedisLimiter(client, limits)

    waits = await asyncio.gather(*(lim.acquire("m", 400) for lim in (first, other, first, other)))

    assert sorted(wait == 0.0 for wait in waits) == [False, False, True, True]


async def test_a_request_larger_than_a_minute_holds_is_not_refused_for_ever(client: Any) -> None:
    limiter = RedisLimiter(client, {"m": Limit(tokens_per_minute=100)})

    assert await limiter.acquire("m", 5000) == 0.0


async def test_a_refused_request_reserves_nothing(client: Any) -> None:
    limiter = RedisLimiter(client, {"m": Limit(requests_per_minute=1, tokens_per_minute=100)})
    await limiter.acquire("m", 10)

    first = await limiter.acquire("m", 10)
    second = await limiter.acquire("m", 10)

    assert second <= first


async def test_a_model_without_a_limit_passes(client: Any) -> None:
    assert await RedisLimiter(client, {}).acquire("m", 10**9) == 0.0


MINUTE: dict[str, Any] = {"every_seconds": 60.0, "at_once": 2}


async def waits(turns: RedisTurns, count: int, patience_seconds: float = 1e6) -> list[float | None]:
    return [
        await turns.turn("post", **MINUTE, patience_seconds=patience_seconds) for _ in range(count)
    ]


def about(waits: list[float | None]) -> list[int | None]:
    """Waits in whole minutes: the test itself takes some time."""
    return [None if wait is None else round(wait / 60) for wait in waits]


async def test_the_first_turns_come_at_once_and_the_others_one_by_one(client: Any) -> None:
    assert about(await waits(RedisTurns(client, "slack"), 5)) == [0, 0, 1, 2, 3]


async def test_turns_are_given_over_all_processes(client: Any) -> None:
    first, other = RedisTurns(client, "slack"), RedisTurns(client, "slack")

    waited = [*await waits(first, 2), *await waits(other, 1), *await waits(first, 1)]

    assert about(waited) == [0, 0, 1, 2]


async def test_a_caller_that_does_not_wait_gets_no_turn_and_takes_none(client: Any) -> None:
    turns = RedisTurns(client, "slack")

    waited = [*await waits(turns, 4, patience_seconds=1.0), *await waits(turns, 1)]

    assert about(waited) == [0, 0, None, None, 1]


async def test_no_turn_is_given_while_turns_are_held(client: Any) -> None:
    turns = RedisTurns(client, "slack")
    await turns.hold("post", **MINUTE, seconds=600)
    await turns.hold("post", **MINUTE, seconds=60)

    assert about(await waits(turns, 3)) == [10, 11, 12]
    assert await turns.turn("other", **MINUTE, patience_seconds=0.0) == 0.0


async def test_stored_turns_expire(client: Any) -> None:
    turns = RedisTurns(client, "slack")
    await waits(turns, 3)

    (key,) = await client.keys("rd:push:slack:pace:*")
    assert 100_000 < await client.pttl(key) <= 181_000
