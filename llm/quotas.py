"""Limits per model: how many requests and tokens a minute, whoever asks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Protocol


class Limiter(Protocol):
    """Counts what is asked of a model, over every process that shares the counts."""

    async def acquire(self, model: str, tokens: int) -> float:
        """Reserve one request of `tokens` and return 0.0; else reserve nothing and return the
        seconds after which it is worth trying again.
        """
        ...


@dataclass(frozen=True, slots=True)
class ModelQuota:
    """What one model may be asked in a minute; None: no limit."""

    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


class InProcessLimiter:
    """Limits for one process: a bucket of requests and one of tokens per model, each holding one
    minute's worth and filling evenly. Models without a limit pass.
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
        wait = max(b.wait(n, now) for b, n in zip(buckets, amounts, strict=True))
        if wait == 0.0:
            for bucket, amount in zip(buckets, amounts, strict=True):
                bucket.take(amount)
        return wait


class _Bucket:
    """Fills with `per_minute` and holds no more; what is larger than all of it takes all of it."""

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
