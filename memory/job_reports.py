"""Reports from processes about their background jobs, for `doctor` and the console."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from memory.key_names import job_reports_key
from memory.model_calls import await_answer
from memory.presence import ALIVE_SECONDS, ANNOUNCE, LIVING, MOST

if TYPE_CHECKING:
    from redis.asyncio import Redis


class JobReport(BaseModel, frozen=True, extra="ignore"):
    """The state of a background job of one process, for operators.

    `error` is its last failure, at `failed_at` (Unix seconds). `is_paused` is true if it is waiting
    for its restart. `notice` is a message from the job itself.
    """

    process: str
    name: str
    failures: int = 0
    error: str = ""
    failed_at: float = 0.0
    is_paused: bool = False
    notice: str = ""

    def describe_failure(self) -> str:
        """Describe the failures in one sentence."""
        at = f"{datetime.fromtimestamp(self.failed_at, UTC):%Y-%m-%d %H:%M} UTC"
        now = "it waits for its restart" if self.is_paused else "it was restarted"
        return (
            f"{self.name} of process {self.process} failed {self.failures} times since the process "
            f"started, last at {at}: {self.error}; {now}"
        )


class RedisJobReports:
    """The reports of the live processes; every method raises `MemoryUnavailableError`."""

    def __init__(self, client: "Redis") -> None:
        self._client = client
        self._last = ""

    async def put(self, reports: Sequence[JobReport]) -> None:
        """Replace the reports of this process. They expire unless they are stored again."""
        own = json.dumps([report.model_dump() for report in reports])
        before, self._last = self._last or own, own
        arguments = (own, int(ALIVE_SECONDS * 1000), MOST, before)
        await await_answer(self._client.eval(ANNOUNCE, 1, job_reports_key(), *arguments))

    async def leave(self) -> None:
        """Remove the reports of this process."""
        if self._last:
            await await_answer(self._client.zrem(job_reports_key(), self._last))
            self._last = ""

    async def list_reports(self) -> list[JobReport]:
        """Return the reports of all live processes, by name and process."""
        key, alive_ms = job_reports_key(), int(ALIVE_SECONDS * 1000)
        flat = await await_answer(self._client.eval(LIVING, 1, key, alive_ms))
        reports = [report for member in flat[::2] for report in _read(member)]
        return sorted(reports, key=lambda report: (report.name, report.process))


def _read(member: bytes) -> list[JobReport]:
    try:
        return [JobReport.model_validate(fields) for fields in json.loads(member)]
    except (ValueError, TypeError, RecursionError, ValidationError):
        # Written by a process of another version.
        return []
