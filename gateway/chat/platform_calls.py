"""Calls a platform within its rate limits, which are shared by all processes, and retries calls
when the platform asks for it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import structlog

from gateway.chat.ports import CallSkippedError, NoOpError, RetryableError
from memory.rate_limits import RedisTurns

log = structlog.get_logger("gateway")
T = TypeVar("T")
TRIES = 6
LONGEST_SECONDS = 60.0
BACKOFF = 2.0
SOON_SECONDS = 3.0
"""An optional call is skipped if it would have to wait longer than this."""
LATE_SECONDS = 600.0
"""Maximum wait for a turn in seconds. A required call that would have to wait longer is left to a
later delivery.
"""

MISSED = 3
"""After this many missed turns, the call is made anyway."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate of `per_minute` calls, the first `at_once` of which do not wait; with `each_place`,
    per conversation.

    In any minute, there are at most `per_minute + at_once` calls, so this sum must be below the
    platform's limit. An optional call waits up to `soon_seconds` for its turn; 0 means that it is
    made immediately or not at all.
    """

    per_minute: float
    at_once: int = 1
    each_place: bool = False
    soon_seconds: float = SOON_SECONDS

    @property
    def every_seconds(self) -> float:
        """The interval, in seconds, between calls in a long series."""
        return 60.0 / self.per_minute


class Pacer:
    """Makes every call wait for its turn."""

    def __init__(self, turns: RedisTurns, rates: Mapping[str, Rate]) -> None:
        self._turns = turns
        self._rates = rates

    @asynccontextmanager
    async def turn(
        self, call: str, place: str = "", *, soon: bool = False, leaves: int = 0
    ) -> AsyncIterator[None]:
        """Wait for a turn, then enter the context. If the platform demands a pause, all calls with
        this rate are delayed.

        With `leaves`, the call is made only if that many further calls could still be made without
        waiting. Raises `CallSkippedError` if the turn of an optional call (`soon` or `leaves`)
        comes too late, and `RetryableError` for any other call.
        """
        rate = self._rates[call]
        if leaves:
            soon, rate = True, replace(rate, soon_seconds=0.0)
        name = f"{call}:{place}" if rate.each_place else call
        for _ in range(MISSED):
            if await self._came(name, rate, soon=soon, leaves=leaves):
                break
        try:
            yield
        except RetryableError as error:
            if error.by_platform:
                await self._turns.hold(
                    name,
                    every_seconds=rate.every_seconds,
                    at_once=rate.at_once,
                    seconds=error.seconds,
                )
                if soon and error.seconds > rate.soon_seconds:
                    raise CallSkippedError(
                        f"{name} would have to wait {error.seconds:g} s"
                    ) from error
            raise

    async def _came(self, name: str, rate: Rate, *, soon: bool, leaves: int) -> bool:
        """Wait for a turn; return False if the process woke up so late that later turns were missed
        as well.

        If those turns were all used together, the rate limit would be exceeded, so the caller
        requests another turn instead.
        """
        asked = time.monotonic()
        seconds = await self._turns.turn(
            name,
            every_seconds=rate.every_seconds,
            at_once=max(1, rate.at_once - leaves),
            patience_seconds=rate.soon_seconds if soon else LATE_SECONDS,
        )
        if seconds is None:
            if soon:
                raise CallSkippedError(f"{name} would be executed after its deadline")
            raise RetryableError(f"{name} is called too often", LATE_SECONDS, by_platform=True)
        await asyncio.sleep(seconds)
        return time.monotonic() - asked - seconds < rate.every_seconds * rate.at_once


async def retry(call: Callable[[], Awaitable[T]], *, call_name: str) -> T | None:
    """Return the result of `call`, or None if the platform reports that no change was needed.

    `call_name` is the slug of the call in the log. Raises `PermanentError` immediately, and
    `RetryableError` after `TRIES` attempts or if the wait would be too long.
    """
    for tried in range(1, TRIES + 1):
        raise_if_cancelled()
        try:
            return await call()
        except NoOpError:
            return None
        except RetryableError as error:
            seconds = error.seconds if error.by_platform else error.seconds * BACKOFF**tried
            if tried == TRIES or seconds > LONGEST_SECONDS:
                raise
            log.info(
                "platform_call_retried",
                call=call_name,
                seconds=seconds,
                requested_by_platform=error.by_platform,
            )
            await asyncio.sleep(seconds)
    raise AssertionError("a loop that always returns or raises")


def raise_if_cancelled() -> None:
    """Raise a cancellation that a client library swallowed, because a task group cancels a task
    only once.

    This is intended for long loops within a task group. An expired time limit is ignored, because
    `asyncio.timeout` withdraws its own cancellation.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
