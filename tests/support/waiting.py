"""Waits for a condition until a deadline, the only place where tests poll; a clock to be moved."""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.time_limits import measure_slowness

PATIENCE_SECONDS = 40.0
"""Only a test that fails waits for so long."""
PAUSE_SECONDS = 0.005


async def wait_until(
    look: Callable[[], Any], *, patience_seconds: float | None = PATIENCE_SECONDS
) -> Any:
    """Return the first true value that `look` returns, directly or as an awaitable.

    Raises AssertionError after `patience_seconds`, longer on a slow machine; None waits as long as
    the test may run.
    """
    if found := await poll(look, patience_seconds=patience_seconds):
        return found
    more_seconds = 0.0 if patience_seconds is None else patience_seconds * (measure_slowness() - 1)
    if found := await poll(look, patience_seconds=more_seconds):
        return found
    raise AssertionError(f"`{look.__qualname__}` was not true within {patience_seconds} s")


@asynccontextmanager
async def within(seconds: float = PATIENCE_SECONDS) -> AsyncIterator[None]:
    """Raise TimeoutError after `seconds`, later on a slow machine."""
    loop = asyncio.get_running_loop()

    async with asyncio.timeout(None) as limit:

        def expire() -> None:
            limit.reschedule(loop.time() + seconds * (measure_slowness() - 1))

        alarm = loop.call_later(seconds, expire)
        try:
            yield
        finally:
            alarm.cancel()


async def poll(look: Callable[[], Any], *, patience_seconds: float | None) -> Any:
    """Return the first true value of `look`, or None after `patience_seconds`."""
    limit = asyncio.timeout(patience_seconds)
    try:
        async with limit:
            while True:
                screenshot = look()
                if inspect.isawaitable(screenshot):
                    screenshot = await screenshot
                if screenshot:
                    return screenshot
                await asyncio.sleep(PAUSE_SECONDS)  # noqa: TID251 - this module polls
    except TimeoutError:
        if not limit.expired():
            raise
        return None


def block_until(look: Callable[[], Any], *, patience_seconds: float = PATIENCE_SECONDS) -> Any:
    """Return the first true value of `look`, for tests without an event loop.

    Raises AssertionError after `patience_seconds`, longer on a slow machine.
    """
    started, limit_seconds = time.monotonic(), patience_seconds
    while not (found := look()):
        elapsed = time.monotonic() - started
        if elapsed > limit_seconds:
            limit_seconds = patience_seconds * measure_slowness()
        if elapsed > limit_seconds:
            raise AssertionError(f"`{look.__qualname__}` was not true within {patience_seconds} s")
        time.sleep(PAUSE_SECONDS)  # noqa: TID251 - this module polls
    return found


async def yield_to_tasks(turns: int = 1) -> None:
    """Let every other task of the event loop run `turns` times; no time needs to pass."""
    for _ in range(turns):
        await asyncio.sleep(0)  # noqa: TID251 - this module polls


@dataclass
class Clock:
    """Stands still until it is moved."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now
