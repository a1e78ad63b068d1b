"""Shuts down a worker process: stops taking entries, finishes or returns them, and keeps leases
until the end.

One `GracePeriod` covers the whole shutdown. It begins with the signal, and each step gets the time
that remains.
"""

import asyncio
import faulthandler
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

from broker.errors import BrokerUnavailableError
from broker.ports import Consumer
from worker.worker import Worker

GRACE_SECONDS = 25.0
"""How long a process may take to shut down. A pod's termination grace period must be longer."""
RETURN_SECONDS = 5.0
"""The time reserved for returning entries, at most a fifth of the grace period."""

log = structlog.get_logger("worker")
NOTICE_SECONDS = 1.0
"""How long a shutdown waits for runs before it logs a notice."""


class GracePeriod:
    """The time that a process may take to shut down, counted from `begin`."""

    def __init__(self, seconds: float = GRACE_SECONDS) -> None:
        self.seconds = seconds
        self._ends: float | None = None

    def begin(self) -> None:
        """Begin the period; do nothing if it has already begun."""
        if self._ends is None:
            self._ends = asyncio.get_running_loop().time() + self.seconds

    def left(self) -> float:
        """Return the remaining seconds, and begin the period if it has not begun."""
        self.begin()
        assert self._ends is not None  # noqa: S101 - set by `begin`
        return max(0.0, self._ends - asyncio.get_running_loop().time())

    def left_for_runs(self) -> float:
        """Return how many more seconds running agents may take."""
        return max(0.0, self.left() - min(RETURN_SECONDS, self.seconds / 5))


@asynccontextmanager
async def stop_on_signals(stop: asyncio.Event) -> AsyncIterator[GracePeriod]:
    """Set `stop` on SIGTERM and SIGINT inside the context; yield the grace period that begins then.

    If the process is still inside the context when the period is over, it prints a traceback and
    exits with status 1.
    """
    loop = asyncio.get_running_loop()
    grace = GracePeriod()

    def begin_to_end() -> None:
        if not stop.is_set():
            grace.begin()
            faulthandler.dump_traceback_later(grace.seconds, exit=True)
            stop.set()

    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, begin_to_end)
    try:
        yield grace
    finally:
        faulthandler.cancel_dump_traceback_later()
        for number in signals:
            loop.remove_signal_handler(number)


async def drain(
    workers: Sequence[Worker],
    grace: GracePeriod,
    *,
    report_waiting: Callable[[], None] = lambda: None,
) -> int:
    """Wait for running agents to finish, cancel those that exceed their share of the grace period,
    and return how many were cancelled.

    `report_waiting` is called once if the wait takes longer than `NOTICE_SECONDS`.
    """
    notice = asyncio.get_running_loop().call_later(NOTICE_SECONDS, report_waiting)
    try:
        return await _drain(workers, grace)
    finally:
        notice.cancel()


async def leave(consumer: Consumer, workers: Sequence[Worker], grace: GracePeriod) -> None:
    """Return the entries that these workers still hold to their streams, and remove their
    consumers.
    """
    async with asyncio.TaskGroup() as tasks:
        for worker in workers:
            tasks.create_task(_leave_group(consumer, worker, grace.left()))


async def _drain(workers: Sequence[Worker], grace: GracePeriod) -> int:
    late = 0
    for patience in (grace.left_for_runs(), None):
        try:
            async with asyncio.timeout(patience):
                await asyncio.gather(*(worker.runs.empty() for worker in workers))
            break
        except TimeoutError:
            late = sum(worker.runs.call_off() for worker in workers)
            log.warning("handlers_cancelled_at_shutdown", handlers=late)
    return late


async def _leave_group(consumer: Consumer, worker: Worker, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await consumer.leave(worker.role, worker.consumer)
    except (BrokerUnavailableError, TimeoutError) as error:
        # Other workers take over its entries when their leases end.
        reason = str(error) or "the grace period is over"
        log.warning("consumer_not_removed", role=worker.role, error=reason)
