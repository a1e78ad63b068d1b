"""Logs what may happen thousands of times a second, at most once a minute."""

import time

import structlog

LOG_SECONDS = 60.0

log = structlog.get_logger("gateway")


class RareLog:
    """Writes one warning a minute for each kind of trouble, with how often it came since."""

    def __init__(self, event: str, *, seconds: float = LOG_SECONDS) -> None:
        self._event = event
        self._seconds = seconds
        self._counts: dict[str, int] = {}
        self._written_at: dict[str, float] = {}

    def count(self, reason: str, **fields: object) -> None:
        """Count one case of a reason, out of a small set; write when the last line is old."""
        self._counts[reason] = self._counts.get(reason, 0) + 1
        now = time.monotonic()
        if now - self._written_at.get(reason, -self._seconds) < self._seconds:
            return
        self._written_at[reason] = now
        log.warning(self._event, reason=reason, times=self._counts.pop(reason), **fields)
