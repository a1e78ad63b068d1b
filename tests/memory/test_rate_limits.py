import asyncio
from dataclasses import dataclass
from typing import Any

from memory.rate_limits import RedisLimiter


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
    one, other = RedisLimiter(client, limits), RedisLimiter(client, limits)

    waits = await asyncio.gather(*(lim.acquire("m", 400) for lim in (one, other, one, other)))

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
