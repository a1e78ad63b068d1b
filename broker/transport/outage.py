"""Logs an outage of Redis: its beginning, every few seconds while it lasts, and its end.

The number of log lines does not depend on how many tasks of a process fail, and how often.
"""

import threading
import time
from collections.abc import Callable

import structlog

log = structlog.get_logger("broker")

PAUSE_SECONDS = 5.0
"""The least time between two warnings."""


class Outage:
    """Counts failures of a process, or of one of its threads; every thread may call it.

    `troubles` is the number of operations that failed since the process started.
    """

    def __init__(
        self, event: str = "broker_unreachable", *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._event = event
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._is_logged = False
        self._quiet_until = float("-inf")
        self.troubles = 0

    def record_failure(self, operation: str, error: Exception, **fields: str | int) -> None:
        """Record that an operation, named by a slug, failed; log it now and then with `fields`."""
        with self._lock:
            self._failures += 1
            self.troubles += 1
            now, failures = self._clock(), self._failures
            if now < self._quiet_until:
                return
            self._quiet_until = now + PAUSE_SECONDS
            self._is_logged = True
        log.warning(self._event, operation=operation, **fields, error=str(error), failures=failures)

    def record_success(self) -> None:
        """Record that Redis answers; log it once after failures that were logged."""
        if not self._failures:
            return
        with self._lock:
            failures, self._failures = self._failures, 0
            was_logged, self._is_logged = self._is_logged, False
        if was_logged:
            log.info("broker_reconnected", failures=failures)
