"""Waits between attempts to reach Redis, and says so once."""

import asyncio
import random

import structlog

FIRST_SECONDS = 0.05
LONGEST_SECONDS = 1.0

_RANDOM = random.Random()  # noqa: S311 - jitter is no secret

log = structlog.get_logger("worker")


class Backoff:
    """Full-jitter waits from 50 ms to 1 s; logs when the trouble starts and when it ends."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._failures = 0

    @property
    def in_trouble(self) -> bool:
        """Whether the last attempt failed."""
        return self._failures > 0

    def succeeded(self) -> None:
        """Note that Redis answers."""
        if self._failures:
            log.info("broker_reached_again", what=self._what, failures=self._failures)
        self._failures = 0

    async def failed(self, error: Exception) -> None:
        """Note a failure and wait."""
        if self._failures == 0:
            log.warning("broker_unreachable", what=self._what, error=str(error))
        longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** min(self._failures, 10))
        self._failures += 1
        await asyncio.sleep(_RANDOM.uniform(FIRST_SECONDS / 2, longest))
