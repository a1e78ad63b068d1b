"""Waits between attempts to reach Redis, and says so now and then."""

import asyncio
import random

from broker.transport.outage import Outage

FIRST_SECONDS = 0.05
LONGEST_SECONDS = 0.5
"""Together with the time an attempt may take: work goes on two seconds after Redis answers."""

_RANDOM = random.Random()  # noqa: S311 - jitter is no secret


class Backoff:
    """Full-jitter waits from 50 ms to half a second; `outage` tells of the trouble of all."""

    def __init__(self, what: str, outage: Outage) -> None:
        self._what = what
        self._outage = outage
        self._failures = 0

    @property
    def in_trouble(self) -> bool:
        """Whether the last attempt failed."""
        return self._failures > 0

    def record_success(self) -> None:
        """Note that Redis answers."""
        self._failures = 0
        self._outage.record_success()

    async def wait_after_failure(self, error: Exception) -> None:
        """Note a failure and wait."""
        longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** min(self._failures, 10))
        self._failures += 1
        self._outage.record_failure(self._what, error)
        await asyncio.sleep(_RANDOM.uniform(FIRST_SECONDS / 2, longest))
