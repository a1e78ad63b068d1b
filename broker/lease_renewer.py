"""Renews leases and runs maintenance in a separate thread with its own event loop and connection.

A handler that blocks its event loop for minutes keeps its entries, because this thread does not
share the loop. Leases expire only when the whole process hangs or dies. One such thread in the
whole system is enough to handle the delays, deadlines, and recovery of all processes.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import structlog

from broker.background_jobs import BackgroundJobs
from broker.errors import BrokerUnavailableError
from broker.leases import describe_loss
from broker.maintenance.loop import AWAY_SECONDS, MaintenanceLoop
from broker.ports import Consumer
from broker.redis_broker import RedisBroker
from broker.values import Delivery, LeaseLost

log = structlog.get_logger("broker")


MakeBroker = Callable[[], RedisBroker]
"""Creates the thread's broker; it is called inside the thread's event loop."""


class LeaseRenewal:
    """Renews held leases three times per lease period, reports lost ones, and runs the maintenance
    loop.

    `hold` and `release` may be called from any thread. `on_lost` is called in the renewal thread.
    """

    def __init__(
        self,
        make_broker: MakeBroker,
        *,
        lease_seconds: float = 15.0,
        jobs: BackgroundJobs | None = None,
    ) -> None:
        self._make_broker = make_broker
        self._jobs = BackgroundJobs() if jobs is None else jobs
        self._pause_seconds = lease_seconds / 3
        # Keyed by identity. Each access is a single dict operation, so threads need no lock.
        self._held: dict[int, Delivery] = {}
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started = threading.Event()
        self._away = False

    def start(self, on_lost: Callable[[LeaseLost], None]) -> None:
        """Start the thread; return once it is running."""
        self._started.clear()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run(on_lost)), name="lease-renewal", daemon=True
        )
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        """Stop the thread and wait for it. Leases that are still held then expire."""
        thread, loop, stop = self._thread, self._loop, self._stop
        if thread is None or loop is None or stop is None:
            return
        if thread.is_alive():
            loop.call_soon_threadsafe(stop.set)
        thread.join()
        self._thread = self._loop = self._stop = None

    @asynccontextmanager
    async def running(self, on_lost: Callable[[LeaseLost], None]) -> AsyncIterator[None]:
        """Renew leases inside the context; starting and stopping do not block the event loop."""
        await asyncio.to_thread(self.start, on_lost)
        try:
            yield
        finally:
            await asyncio.to_thread(self.stop)

    @property
    def alive(self) -> bool:
        """Whether the thread is running. Without it, all leases expire."""
        return self._thread is not None and self._thread.is_alive()

    def hold(self, delivery: Delivery) -> None:
        """Renew the lease of this entry from now on."""
        self._held[id(delivery)] = delivery

    def release(self, delivery: Delivery) -> None:
        """Stop renewing the lease; does nothing for an entry that is not held."""
        self._held.pop(id(delivery), None)

    async def _run(self, on_lost: Callable[[LeaseLost], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = stop = asyncio.Event()
        self._started.set()
        broker = self._make_broker()
        try:
            renew = partial(self._renew, broker.consumer, stop, on_lost)
            async with self._jobs.running("lease_renewal", renew):
                await MaintenanceLoop(broker.maintenance, self._record_result, self._jobs).run(stop)
        finally:
            await broker.close()

    async def _renew(
        self, consumer: Consumer, stop: asyncio.Event, on_lost: Callable[[LeaseLost], None]
    ) -> None:
        while not await _wait_for_stop(stop, AWAY_SECONDS if self._away else self._pause_seconds):
            held = list(self._held.values())
            try:
                lost = await consumer.renew(held) if held else ()
            except BrokerUnavailableError as error:
                self._record_result(error)
                continue
            if held:
                self._record_result(None)
            if lost:
                self._lose(held, lost, on_lost)

    def _lose(
        self,
        asked: Sequence[Delivery],
        lost: Sequence[LeaseLost],
        on_lost: Callable[[LeaseLost], None],
    ) -> None:
        known = {describe_loss(delivery): delivery for delivery in asked}
        for entry in lost:
            # An entry that was released during the call was settled, not lost.
            if self._held.pop(id(known[entry]), None) is not None:
                on_lost(entry)

    def _record_result(self, error: BrokerUnavailableError | None) -> None:
        if error is not None and not self._away:
            log.warning("lease_renewal_failed", error=str(error))
        self._away = error is not None


class InLoopRenewal(LeaseRenewal):
    """Renews leases from the worker's own event loop, because fakeredis can be used from only one
    loop.

    The data of fakeredis does not outlive this process, so no other process could take over the
    entries of a blocked loop.
    """

    @asynccontextmanager
    async def running(self, on_lost: Callable[[LeaseLost], None]) -> AsyncIterator[None]:
        """Renew leases inside the context."""
        async with asyncio.TaskGroup() as tasks:
            renewing = tasks.create_task(self._run(on_lost))
            try:
                yield
            finally:
                # Stopped by the event rather than cancelled: fakeredis may lose a cancellation.
                if self._stop is None:
                    renewing.cancel()
                else:
                    self._stop.set()

    @property
    def alive(self) -> bool:
        """Always true: the renewal runs as long as its event loop."""
        return True


async def _wait_for_stop(stop: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return False
    return True
