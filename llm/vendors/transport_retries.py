"""Asks again after transport errors, and waits as long as the vendor says."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import stamina

from llm.call_scope import remaining_seconds
from llm.errors import ModelTimeout, ModelUnavailable, QuotaExhausted

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retrying:
    """How often and how patiently one model is asked again; `attempts` counts the first one.

    Waits grow with jitter from `wait_initial_seconds` to `wait_max_seconds`. A `Retry-After`
    is kept to exactly; when it is longer than `retry_after_max_seconds`, or than the time that is
    left, nobody waits: the caller falls back, or comes back later.
    """

    attempts: int = 3
    wait_initial_seconds: float = 0.5
    wait_max_seconds: float = 5.0
    retry_after_max_seconds: float = 20.0

    async def run(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Return what `ask` returns; raises its last error."""
        call = stamina.AsyncRetryingCaller(
            attempts=self.attempts,
            timeout=None,
            wait_initial=self.wait_initial_seconds,
            wait_max=self.wait_max_seconds,
            wait_jitter=self.wait_initial_seconds,
        )
        return await call(self._wait_after, ask)

    def _wait_after(self, error: Exception) -> bool | float:
        # A time-out has used up what patience there was: the next model of the chain is quicker.
        if not isinstance(error, ModelUnavailable) or isinstance(
            error, ModelTimeout | QuotaExhausted
        ):
            return False
        wait = error.retry_after_seconds
        if wait is None:
            return remaining_seconds(self.wait_max_seconds) > self.wait_initial_seconds
        return wait if wait < remaining_seconds(self.retry_after_max_seconds) else False
