"""Calls a platform with patience: waits as long as it says, and gives up what it never takes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from gateway.chat.cancellation import raise_if_cancelled
from gateway.chat.errors import AlreadyError, LaterError

log = structlog.get_logger("gateway")
T = TypeVar("T")
TRIES = 6
LONGEST_SECONDS = 60.0
BACKOFF = 2.0


async def retry(call: Callable[[], Awaitable[T]], *, what: str, tries: int = TRIES) -> T | None:
    """Return what `call` returns; None when the platform says that it is so already.

    Raises `NeverError` at once, and `LaterError` after `tries` or when the wait would be too long.
    """
    for tried in range(1, tries + 1):
        raise_if_cancelled()
        try:
            return await call()
        except AlreadyError:
            return None
        except LaterError as error:
            seconds = error.seconds if error.told else error.seconds * BACKOFF**tried
            if tried == tries or seconds > LONGEST_SECONDS:
                raise
            log.info("platform_waits", call=what, seconds=seconds, told=error.told)
            await asyncio.sleep(seconds)
    raise AssertionError("a loop that always returns or raises")
