"""Rate limits per model: requests and tokens per minute."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Protocol


class Limiter(Protocol):
    """Limits the rate of requests to models, possibly across processes."""

    async def acquire(self, model: str, tokens: int) -> float:
        """Reserve one request of `tokens` and return 0.0, or return the seconds to wait.

        Nothing is reserved if the result is not 0.0.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelQuota:
    """The limits of one model per minute; None means no limit."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class InProcessLimiter:
    """In-process limits: a token bucket for requests and one for tokens, per model.

    Each bucket contains at most the amount for one minute and is refilled evenly. Models without a
    limit always pass.
    """

    def __init__(
        self, limits: Mapping[str, ModelQuota], *, clock: Callable[[], float] = monotonic
    ) -> None:
        self._buckets = {
            model: tuple(
                _Bucket(per_minute, clock())
                for per_minute in (limit.requests_per_minute, limit.tokens_per_minute)
            )
            for model, limit in limits.items()
        }
        self._clock = clock

    async def acquire(self, model: str, tokens: int) -> float:
        buckets = self._buckets.get(model)
        if buckets is None:
            return 0.0
        now = self._clock()
        amounts = (1.0, float(tokens))
        wait = max(
            bucket.wait(amount, now) for bucket, amount in zip(buckets, amounts, strict=True)
        )
        if wait == 0.0:
            for bucket, amount in zip(buckets, amounts, strict=True):
                bucket.take(amount)
        return wait


class SharedLimits:
    """A limiter that can be replaced with one that is shared with other processes."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter

    def count_with(self, limiter: Limiter) -> None:
        """Use the shared limiter from now on."""
        self._limiter = limiter

    async def acquire(self, model: str, tokens: int) -> float:
        return await self._limiter.acquire(model, tokens)


class PatientLimiter:
    """Waits for capacity without a time limit, for background work that no user is waiting for.

    `waits` counts the requests that had to wait, and `seconds` is their total waiting time.
    """

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self.waits = 0
        self.seconds = 0.0

    async def acquire(self, model: str, tokens: int) -> float:
        wait = await self._limiter.acquire(model, tokens)
        self.waits += wait > 0
        while wait > 0:
            self.seconds += wait
            await asyncio.sleep(wait)
            wait = await self._limiter.acquire(model, tokens)
        return wait


class _Bucket:
    """A token bucket that is refilled with `per_minute` tokens per minute; a request for more
    tokens takes the whole content.
    """

    def __init__(self, per_minute: float | None, now: float) -> None:
        self._per_minute = per_minute
        self._level = per_minute if per_minute is not None else 0.0
        self._at = now

    def wait(self, amount: float, now: float) -> float:
        if self._per_minute is None:
            return 0.0
        filled = (now - self._at) * self._per_minute / 60
        self._level = min(self._per_minute, self._level + filled)
        self._at = now
        missing = min(amount, self._per_minute) - self._level
        return max(0.0, missing) * 60 / self._per_minute

    def take(self, amount: float) -> None:
        if self._per_minute is not None:
            self._level -= min(amount, self._per_minute)
