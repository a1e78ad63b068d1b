"""Waits between attempts to reach Redis, and logs failures every few seconds."""

import asyncio
import random

from broker.transport.outage import Outage

FIRST_SECONDS = 0.05
LONGEST_SECONDS = 0.5
"""With the time that an attempt may take, work continues two seconds after Redis answers."""

_RANDOM = random.Random()  # noqa: S311 - jitter is no secret


class Backoff:
    """Waits 50 ms to half a second with full jitter; `outage` logs the failures of the process."""

    def __init__(self, operation: str, outage: Outage, *, role: str) -> None:
        self._operation = operation
        self._role = role
        self._outage = outage
        self._failures = 0

    @property
    def in_trouble(self) -> bool:
        """Whether the last attempt failed."""
        return self._failures > 0

    def record_success(self) -> None:
        """Record that Redis answers."""
        self._failures = 0
        self._outage.record_success()

    async def wait_after_failure(self, error: Exception) -> None:
        """Record a failure and wait."""
        longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** min(self._failures, 10))
        self._failures += 1
        self._outage.record_failure(self._operation, error, role=self._role)
        await asyncio.sleep(_RANDOM.uniform(FIRST_SECONDS / 2, longest))
