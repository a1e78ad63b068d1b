"""The end of a worker process: stop taking, finish or hand back, keep the leases until the end."""

import asyncio
import signal
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

import structlog

from broker.errors import BrokerUnavailableError
from broker.ports import Consumer
from worker.worker import Worker

GRACE_SECONDS = 25.0
"""How long what runs may take to finish; a pod must be given longer before it is killed."""
CANCEL_AGAIN_SECONDS = 0.05

log = structlog.get_logger("worker")


@asynccontextmanager
async def stop_on_signals(stop: asyncio.Event) -> AsyncIterator[None]:
    """Set `stop` on SIGTERM and SIGINT while inside."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for number in signals:
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


async def drain(workers: Sequence[Worker], *, grace_seconds: float) -> int:
    """Wait for what runs; cancel what is left after the grace period and return its number."""
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


async def end(timers: Collection["asyncio.Task[None]"]) -> None:
    """Cancel tasks that never end by themselves, until they have ended."""
    while timers:
        for timer in timers:
            timer.cancel()
        # Asked again where it had no effect: a client may lose a cancellation inside a command.
        _, timers = await asyncio.wait(timers, timeout=CANCEL_AGAIN_SECONDS)


async def leave(consumer: Consumer, workers: Sequence[Worker]) -> None:
    """Hand back what these workers still own and remove their consumers."""
    for worker in workers:
        try:
            await consumer.leave(worker.role, worker.consumer)
        except BrokerUnavailableError as error:
            # What stays behind is taken over when its lease runs out.
            log.warning("consumer_not_removed", role=worker.role, error=str(error))
