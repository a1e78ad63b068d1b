"""Runs the background jobs of a process. If a job fails, the failure is logged and counted, and the
job is restarted.

Every task that lives as long as its process runs here, so that none of them can end the process.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog

log = structlog.get_logger("jobs")

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
"""The longest pause before a restart. After a job has run for longer than this, pauses start again
with the shortest one.
"""
CANCEL_AGAIN_SECONDS = 0.05
LONGEST_ERROR = 300

Work = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class JobState:
    """The state of one job since the process started.

    `error` is the last failure, at `failed_at` (Unix seconds). `is_paused` is true if the job is
    waiting for its restart, or ended with the failure. `notice` is a message from the job to
    operators.
    """

    name: str
    failures: int = 0
    error: str = ""
    failed_at: float = 0.0
    is_paused: bool = False
    notice: str = ""


class BackgroundJobs:
    """The background jobs of one process and their states."""

    def __init__(
        self,
        *,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._states: dict[str, JobState] = {}
        self._now = now
        self._monotonic = monotonic
        self._sleep = sleep

    @property
    def states(self) -> list[JobState]:
        """The states of all jobs that were started, by name."""
        return [self._states[name] for name in sorted(self._states)]

    def report(self, name: str, notice: str) -> None:
        """Set the notice of a job for operators; an empty string clears it."""
        self._state_of(name).notice = notice

    @asynccontextmanager
    async def running(self, name: str, work: Work) -> AsyncIterator["asyncio.Task[None]"]:
        """Run a job inside the context, and cancel it at the end; yield its task."""
        try:
            async with asyncio.TaskGroup() as tasks:
                task = tasks.create_task(self.supervise(name, work), name=name)
                try:
                    yield task
                finally:
                    await cancel_until_done([task])
        except BaseExceptionGroup as group:
            # Jobs never raise, so this error is from the body of the context.
            raise group.exceptions[0] from None

    async def supervise(self, name: str, work: Work) -> None:
        """Run a job until it returns, and restart it after each failure, with longer pauses."""
        pause = 0.0
        while not _is_cancelled():
            began = self._monotonic()
            if await self.attempt(name, work):
                return
            if self._monotonic() - began > LONGEST_PAUSE_SECONDS:
                pause = 0.0
            pause = min(max(FIRST_PAUSE_SECONDS, pause * 2), LONGEST_PAUSE_SECONDS)
            log.info("job_restarts", job=name, pause_seconds=pause)
            await self._sleep(pause)

    async def attempt(self, name: str, work: Work) -> bool:
        """Run a job once; return whether it ended without a failure."""
        state = self._state_of(name)
        state.is_paused = False
        try:
            await work()
        except Exception as error:
            cause = find_cause(error)
            state.failures += 1
            state.error = f"{type(cause).__name__}: {cause}".rstrip(": ")[:LONGEST_ERROR]
            state.failed_at = self._now()
            state.is_paused = True
            log.error("job_failed", job=name, failures=state.failures, error=state.error,
                      exc_info=cause)  # fmt: skip
            return False
        return True

    def _state_of(self, name: str) -> JobState:
        return self._states.setdefault(name, JobState(name))


def find_cause(error: Exception) -> Exception:
    """Return the first error inside nested exception groups, or the error itself."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


async def cancel_until_done(tasks: Collection["asyncio.Task[Any]"]) -> None:
    """Cancel tasks repeatedly until they end, because a client library may swallow a
    cancellation.
    """
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=CANCEL_AGAIN_SECONDS)


def _is_cancelled() -> bool:
    """Return whether the current task was cancelled, even if a client library swallowed the
    cancellation.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
