"""Repeats a call to a platform as long as the platform asks for it; raises permanent errors."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from gateway.chat.cancellation import raise_if_cancelled
from gateway.chat.errors import NoOpError, RetryableError

log = structlog.get_logger("gateway")
T = TypeVar("T")
TRIES = 6
LONGEST_SECONDS = 60.0
BACKOFF = 2.0


async def retry(
    call: Callable[[], Awaitable[T]], *, call_name: str, tries: int = TRIES
) -> T | None:
    """Return the result of `call`; None when the platform reports that nothing had to change.

    `call_name` is the slug of the call in the log. Raises `PermanentError` at once, and
    `RetryableError` after `tries` or when the wait would be too long.
    """
    for tried in range(1, tries + 1):
        raise_if_cancelled()
        try:
            return await call()
        except NoOpError:
            return None
        except RetryableError as error:
            seconds = error.seconds if error.by_platform else error.seconds * BACKOFF**tried
            if tried == tries or seconds > LONGEST_SECONDS:
                raise
            log.info(
                "platform_call_retried",
                call=call_name,
                seconds=seconds,
                requested_by_platform=error.by_platform,
            )
            await asyncio.sleep(seconds)
    raise AssertionError("a loop that always returns or raises")
