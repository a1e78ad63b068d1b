"""Makes one call to a vendor: waits for its place, bounds its time, asks again after failures."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from llm.call_scope import remaining_seconds
from llm.errors import ModelTimeout, RateLimited
from llm.quotas import Limiter
from llm.vendors.transport_retries import Retrying

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ModelCaller:
    """Calls one model; `timeout_seconds` bounds each request, the hop's remaining time all."""

    name: str
    timeout_seconds: float
    retrying: Retrying
    limiter: Limiter | None

    async def call(self, tokens: int, ask: Callable[[float], Awaitable[T]]) -> T:
        """Return what `ask(seconds it may take)` returns; `tokens` are what it will use at most."""

        async def once() -> T:
            await self._wait_for_place(tokens)
            return await self.within(ask)

        return await self.retrying.run(once)

    async def within(self, ask: Callable[[float], Awaitable[T]]) -> T:
        """Return what `ask` returns in time, once; raises `ModelTimeout`."""
        seconds = remaining_seconds(self.timeout_seconds)
        try:
            async with asyncio.timeout(seconds):
                return await ask(seconds)
        except TimeoutError as error:
            raise ModelTimeout(
                f"expected an answer of {self.name!r} within {seconds:.3g} s, found none"
            ) from error

    async def _wait_for_place(self, tokens: int) -> None:
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
