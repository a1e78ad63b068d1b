"""Makes one call to a vendor: waits for its quota, bounds its time, asks again after failures."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import stamina

from llm.call_scope import may_retry, remaining_seconds
from llm.errors import ModelTimeout, ModelUnavailable, QuotaExhausted, RateLimited
from llm.quotas import Limiter

T = TypeVar("T")

FIRST_TOKEN_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class RetryRules:
    """How often and how patiently one model is asked again; `attempts` counts the first one.

    Waits grow with jitter from `wait_initial_seconds` to `wait_max_seconds`. A `Retry-After`
    is kept to exactly; when it is longer than `retry_after_max_seconds`, or than the time that is
    left, the call fails at once: the caller falls back, or comes back later.
    """

    attempts: int = 2
    wait_initial_seconds: float = 0.5
    wait_max_seconds: float = 5.0
    retry_after_max_seconds: float = 10.0

    def wait_after(self, error: Exception) -> bool | float:
        """Return whether to ask again after an error, or the exact seconds to wait first."""
        # After a time-out another model is quicker; a block may forbid what another model can do.
        if (
            not isinstance(error, ModelUnavailable)
            or isinstance(error, ModelTimeout | QuotaExhausted)
            or not may_retry()
        ):
            return False
        wait = error.retry_after_seconds
        if wait is None:
            return remaining_seconds(self.wait_max_seconds) > self.wait_initial_seconds
        return wait if wait < remaining_seconds(self.retry_after_max_seconds) else False


EMBEDDING_RETRIES = RetryRules(attempts=3)
"""An ingestion asks many times in a row, and has no other model to ask."""


@dataclass(frozen=True, slots=True)
class Transport:
    """Calls one model; `timeout_seconds` bounds each request, the hop's remaining time all.

    `first_token_seconds` bounds the wait for the beginning of an answer that is streamed.
    """

    name: str
    timeout_seconds: float
    retries: RetryRules
    limiter: Limiter | None
    first_token_seconds: float = FIRST_TOKEN_SECONDS

    async def call(
        self, tokens: int, ask: Callable[[float], Awaitable[T]], *, time_share: float = 1.0
    ) -> T:
        """Return what `ask(seconds it may take)` returns; `tokens` are what it will use at most."""

        async def ask_once() -> T:
            await self._reserve_quota(tokens)
            return await self.within(ask, time_share=time_share)

        rules = self.retries
        repeat = stamina.AsyncRetryingCaller(
            attempts=rules.attempts,
            timeout=None,
            wait_initial=rules.wait_initial_seconds,
            wait_max=rules.wait_max_seconds,
            wait_jitter=rules.wait_initial_seconds,
        )
        return await repeat(rules.wait_after, ask_once)

    async def within(self, ask: Callable[[float], Awaitable[T]], *, time_share: float = 1.0) -> T:
        """Return what `ask` returns in time, once; raises `ModelTimeout`."""
        seconds = remaining_seconds(self.timeout_seconds * time_share)
        try:
            async with asyncio.timeout(seconds):
                return await ask(seconds)
        except TimeoutError as error:
            raise ModelTimeout(
                f"expected an answer of {self.name!r} within {seconds:.3g} s, found none",
                had_full_time=time_share == 1.0,
            ) from error
        except ModelTimeout as error:
            error.had_full_time &= time_share == 1.0
            raise

    async def wait_for_first(self, coming: Awaitable[T]) -> T:
        """Return the first part of a streamed answer; raises `ModelTimeout` if none comes."""
        seconds = remaining_seconds(self.first_token_seconds)
        try:
            async with asyncio.timeout(seconds):
                return await coming
        except TimeoutError as error:
            raise ModelTimeout(
                f"expected {self.name!r} to begin an answer within {seconds:.3g} s, found nothing"
            ) from error

    async def _reserve_quota(self, tokens: int) -> None:
        if self.limiter is None:
            return
        patience = remaining_seconds(self.timeout_seconds)
        while (wait := await self.limiter.acquire(self.name, tokens)) > 0:
            patience -= wait
            if patience < 0:
                raise RateLimited(
                    f"expected a place within the limits of {self.name!r}, "
                    f"found none for {wait:.3g} s",
                    retry_after_seconds=wait,
                )
            await asyncio.sleep(wait)
