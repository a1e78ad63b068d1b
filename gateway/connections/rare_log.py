"""Logs once a minute events that may happen thousands of times a second."""

import time

import structlog

LOG_SECONDS = 60.0

log = structlog.get_logger("gateway")


class RareLog:
    """Writes one warning a minute for each reason, with the number of cases since the last one."""

    def __init__(self, event: str, *, seconds: float = LOG_SECONDS) -> None:
        self._event = event
        self._seconds = seconds
        self._counts: dict[str, int] = {}
        self._written_at: dict[str, float] = {}

    def count(self, reason: str, **fields: object) -> None:
        """Count one case of a reason, one slug of a small set; log it at most once a minute."""
        self._counts[reason] = self._counts.get(reason, 0) + 1
        now = time.monotonic()
        if now - self._written_at.get(reason, -self._seconds) < self._seconds:
            return
        self._written_at[reason] = now
        log.warning(self._event, reason=reason, times=self._counts.pop(reason), **fields)
