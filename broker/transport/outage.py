"""Tells the log of a Redis that is away: when it begins, now and then while it lasts, and its end.

However many tasks of a process find out, and however often, a log stays readable.
"""

import threading
import time
from collections.abc import Callable

import structlog

log = structlog.get_logger("broker")

PAUSE_SECONDS = 5.0
"""How long nothing more is said of what was said."""


class Outage:
    """What one process, or one thread of it, knows of Redis being away; for any thread.

    `troubles` counts what could not be done since the beginning.
    """

    def __init__(
        self, event: str = "broker_unreachable", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._event = event
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._told = False
        self._quiet_until = float("-inf")
        self.troubles = 0

    def record_failure(self, what: str, error: Exception) -> None:
        """Note that something could not be done."""
        with self._lock:
            self._failures += 1
            self.troubles += 1
            now, failures = self._clock(), self._failures
            if now < self._quiet_until:
                return
            self._quiet_until = now + PAUSE_SECONDS
            self._told = True
        log.warning(self._event, what=what, error=str(error), failures=failures)

    def record_success(self) -> None:
        """Note that Redis answers."""
        if not self._failures:
            return
        with self._lock:
            failures, self._failures = self._failures, 0
            told, self._told = self._told, False
        if told:
            log.info("broker_reached_again", failures=failures)
