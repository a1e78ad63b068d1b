"""Reports logged errors to Sentry, with only the content of the log line."""

from collections.abc import Mapping
from typing import Any, Literal

from envelope.specialists import ErrorSeverity
from telemetry.observer import make_span_id

REPORTED = frozenset({"error", "critical"})
FAILED_RUN = "hop_failed"
"""A failed run is logged only as a warning, because it is retried, but it is reported to
developers.
"""
FAILED_SPECIALIST = "specialist_failed"
"""Logged as a warning, because the review continues; reported if its result is missing."""
STOP_SECONDS = 3.0


_LEVELS: dict[str, Literal["fatal", "error", "warning", "info"]] = {
    "critical": "fatal",
    "error": "error",
    "warning": "warning",
    "info": "info",
}
"""Log levels as named by Sentry."""


class ErrorTracker:
    """Reports log lines. Raises `ImportError` if the extra is not installed, and `ValueError` for
    an invalid DSN.

    The SDK does not add any data, such as variables, requests, or other log lines.
    """

    def __init__(self, dsn: str, *, release: str, **options: Any) -> None:
        import sentry_sdk

        self._client = sentry_sdk.Client(
            dsn,
            release=release,
            default_integrations=False,
            auto_enabling_integrations=False,
            include_local_variables=False,
            max_breadcrumbs=0,
            server_name="",
            **options,
        )

    def report(self, event: Mapping[str, Any], trace_id: int | None) -> None:
        """Report a log line if it is an error, or a failure whose result is missing."""
        level, name = str(event.get("level")), str(event.get("event"))
        has_lost_result = name == FAILED_SPECIALIST and event.get("severity") == ErrorSeverity.HIGH
        if level not in REPORTED and name != FAILED_RUN and not has_lost_result:
            return
        causes = (event.get("exception"), event.get("error"), event.get("specialist"), "")
        kind = str(next(filter(None, causes), "")).partition("\n")[0]
        rest: dict[str, object] = {
            key: value
            for key, value in event.items()
            if key not in {"event", "level", "timestamp"}
            and isinstance(value, str | int | float | bool)
        }
        contexts: dict[str, dict[str, object]] = {}
        if trace_id is not None:
            contexts["trace"] = {
                "trace_id": f"{trace_id:032x}",
                "span_id": f"{make_span_id(trace_id, 0):016x}",
            }
        self._client.capture_event(
            {
                "message": name,
                "level": _LEVELS.get(level, "error"),
                "logger": str(event.get("logger", "refdesk")),
                "fingerprint": [name, kind],
                "extra": rest,
                "contexts": contexts,
            }
        )

    def close(self) -> None:
        """Send pending reports, for at most `STOP_SECONDS`."""
        self._client.close(timeout=STOP_SECONDS)
