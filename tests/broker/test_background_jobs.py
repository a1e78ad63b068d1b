"""A background job that fails is restarted, and ends neither its process nor another job."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from broker.background_jobs import (
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    BackgroundJobs,
    JobState,
)
from broker.errors import BrokerUnavailableError
from tests.support.waiting import yield_to_tasks


class Clock:
    """A clock that a pause moves on at once."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.pauses: list[float] = []

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        await yield_to_tasks()

    def make_jobs(self) -> BackgroundJobs:
        return BackgroundJobs(now=lambda: self.now, monotonic=lambda: self.now, sleep=self.pause)


def fail_before(starts: int, error: Callable[[], Exception], ended: asyncio.Event) -> Callable[
    [], Awaitable[None]
]:  # fmt: skip
    """A job whose first starts fail, and which then runs until it is cancelled."""
    count = 0

    async def work() -> None:
        nonlocal count
        count += 1
        if count <= starts:
            raise error()
        ended.set()
        await asyncio.Event().wait()

    return work


@pytest.mark.parametrize(
    ("make_error", "shown"),
    [
        (lambda: ValueError("an odd message"), "ValueError: an odd message"),
        (lambda: ExceptionGroup("of tasks", [BrokerUnavailableError("away")]),
         "BrokerUnavailableError: away"),
        (lambda: ExceptionGroup("of", [ExceptionGroup("x", [KeyError("y")])]), "KeyError: 'y'"),
        (RecursionError, "RecursionError"),
    ],
)  # fmt: skip
async def test_a_job_that_fails_is_logged_counted_and_restarted(
    make_error: Callable[[], Exception], shown: str
) -> None:
    clock, runs = Clock(), asyncio.Event()
    jobs = clock.make_jobs()

    with capture_logs() as logs:
        async with jobs.running("odd", fail_before(3, make_error, runs)):
            await runs.wait()

    [state] = jobs.states
    assert state == JobState("odd", 3, shown, clock.now - clock.pauses[-1], is_paused=False)
    assert [log["error"] for log in logs if log["event"] == "job_failed"] == [shown] * 3


async def test_restart_delays_grow_to_a_limit_and_reset_after_a_long_run() -> None:
    clock, count = Clock(), 0
    jobs = clock.make_jobs()

    async def work() -> None:
        nonlocal count
        count += 1
        if count == 10:
            clock.now += LONGEST_PAUSE_SECONDS + 1
        if count < 12:
            raise OSError("no disk")

    await jobs.supervise("disk", work)

    first, longest = FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS
    assert clock.pauses == [1, 2, 4, 8, 16, 32, longest, longest, longest, first, 2]


async def test_a_failing_job_does_not_touch_the_block_and_the_other_jobs() -> None:
    clock, runs, other = Clock(), asyncio.Event(), asyncio.Event()
    jobs = clock.make_jobs()

    async def run() -> None:
        async with (
            jobs.running("failing", fail_before(2, ValueError, runs)),
            jobs.running("other", fail_before(0, ValueError, other)),
        ):
            await runs.wait()
            await other.wait()
            raise LookupError("of the block")

    with pytest.raises(LookupError, match="of the block"):
        await run()
    assert [(state.name, state.failures) for state in jobs.states] == [("failing", 2), ("other", 0)]


async def test_a_job_that_loses_its_cancellation_is_not_restarted() -> None:
    begun, starts = asyncio.Event(), 0
    jobs = BackgroundJobs()

    async def work() -> None:
        nonlocal starts
        starts += 1
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("the client lost the cancellation") from None

    async with jobs.running("client", work):
        await begun.wait()

    assert starts == 1
