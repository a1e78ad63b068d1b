"""Graceful shutdown of a worker process: finishes runs, or returns their entries."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import structlog

from broker.errors import BrokerUnavailableError
from broker.ports import Consumer
from worker.worker import Worker

GRACE_SECONDS = 25.0
"""How long runs may take to finish; the termination grace period of a pod must be longer."""

log = structlog.get_logger("worker")
NOTICE_SECONDS = 1.0
"""How long a shutdown may wait for runs before the wait is reported."""


@asynccontextmanager
async def stop_on_signals(stop: asyncio.Event) -> AsyncIterator[None]:
    """Set `stop` on SIGTERM and SIGINT inside the context."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


async def drain(
    workers: Sequence[Worker],
    *,
    grace_seconds: float,
    report_waiting: Callable[[], None] = lambda: None,
) -> int:
    """Wait for the runs, cancel those left after the grace period, and return their number.

    `report_waiting` is called once if the wait takes longer than `NOTICE_SECONDS`.
    """
    notice = asyncio.get_running_loop().call_later(NOTICE_SECONDS, report_waiting)
    try:
        return await _drain(workers, grace_seconds)
    finally:
        notice.cancel()


async def leave(consumer: Consumer, workers: Sequence[Worker]) -> None:
    """Return the entries that the workers still own, and remove their consumers."""
    async with asyncio.TaskGroup() as tasks:
        for worker in workers:
            tasks.create_task(_leave_group(consumer, worker))


async def _drain(workers: Sequence[Worker], grace_seconds: float) -> int:
    late = 0
    for patience in (grace_seconds, None):
        try:
            async with asyncio.timeout(patience):
                await asyncio.gather(*(worker.runs.empty() for worker in workers))
            break
        except TimeoutError:
            late = sum(worker.runs.call_off() for worker in workers)
            log.warning("handlers_cancelled_at_shutdown", handlers=late)
    return late


async def _leave_group(consumer: Consumer, worker: Worker) -> None:
    try:
        await consumer.leave(worker.role, worker.consumer)
    except BrokerUnavailableError as error:
        # Other workers take over its entries when their leases end.
        log.warning("consumer_not_removed", role=worker.role, error=str(error))
