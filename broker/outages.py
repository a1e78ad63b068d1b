"""Repeats calls while Redis does not respond."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from broker.errors import BrokerUnavailableError

PAUSE_SECONDS = 0.5

Result = TypeVar("Result")


async def bridge_outage(
    call: Callable[[], Awaitable[Result]],
    patience_seconds: float,
    errors: tuple[type[Exception], ...] = (BrokerUnavailableError,),
) -> Result:
    """Return the result of an idempotent call, repeated on `errors` for `patience_seconds` seconds.

    Raises the last error after that time.
    """
    until = time.monotonic() + patience_seconds
    while True:
        try:
            return await call()
        except errors:
            if time.monotonic() >= until:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
