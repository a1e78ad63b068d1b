"""Keeps time for everybody: sends what is due, and gives back what dead workers held.

Wherever a process runs this, delays, deadlines and recovery work for the whole system. It sleeps
until the next thing is due, or until an alarm tells of something earlier; on an idle system it
asks Redis a few times a minute. It also hears from Redis twice a second, so that all connections of
the process learn soon when their lines are dead.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from broker.errors import BrokerUnavailableError
from broker.maintenance.heartbeat import Heartbeats
from broker.maintenance.orphan_rescuer import OrphanRescuer
from broker.maintenance.scheduler import Scheduler
from broker.maintenance.upkeep import Upkeep
from broker.transport.connect import LONGEST_BLOCK_SECONDS

AWAY_SECONDS = 0.25
"""How long it sleeps when Redis does not answer."""
GATHER_SECONDS = 0.02
"""Alarms and looks follow each other no faster: many retries are sent at once."""
CANCEL_AGAIN_SECONDS = 0.05
TIDY_SECONDS = 1.0
"""A process that has just begun sweeps first, to see what it is on duty for."""

Heard = Callable[[BrokerUnavailableError | None], None]


@dataclass(frozen=True, slots=True)
class Maintenance:
    """The parts that work on timers, for the whole system."""

    scheduler: Scheduler
    rescuer: OrphanRescuer
    upkeep: Upkeep
    heartbeats: Heartbeats


class MaintenanceLoop:
    """Runs what is due, sweeps, and listens for alarms.

    `heard` is told how each call went: the error of a silent Redis, or None.
    """

    def __init__(self, maintenance: Maintenance, heard: Heard) -> None:
        self._maintenance = maintenance
        self._heard = heard
        self._look_at = 0.0
        self._tidy_seconds = TIDY_SECONDS
        self._sooner = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Keep time until told to stop."""
        async with asyncio.TaskGroup() as tasks:
            keeping = {
                tasks.create_task(self._repeat(work))
                for work in (*self._own_work, self._maintenance.heartbeats.keep)
            }
            await stop.wait()
            while keeping:
                for task in keeping:
                    task.cancel()
                # Asked again where it had no effect: a client may lose a cancellation.
                _, keeping = await asyncio.wait(keeping, timeout=CANCEL_AGAIN_SECONDS)

    @property
    def _own_work(self) -> tuple[Callable[[], Awaitable[None]], ...]:
        return self._listen, self._send_due, self._sweep, self._tidy

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except BrokerUnavailableError as error:
                self._heard(error)
                # What rang meanwhile was not heard: look, once Redis answers.
                self._ring(0.0)
                await asyncio.sleep(AWAY_SECONDS)
            else:
                self._heard(None)

    async def _listen(self) -> None:
        seconds = await self._maintenance.scheduler.wait_for_wakeup(
            block_seconds=LONGEST_BLOCK_SECONDS
        )
        if seconds is not None:
            self._ring(seconds)
            await asyncio.sleep(GATHER_SECONDS)

    def _ring(self, seconds: float) -> None:
        at = time.monotonic() + seconds
        if at < self._look_at:
            self._look_at = at
            self._sooner.set()

    async def _send_due(self) -> None:
        while (left := self._look_at - time.monotonic()) > 0:
            self._sooner.clear()
            try:
                async with asyncio.timeout(left):
                    await self._sooner.wait()
            except TimeoutError:
                break
        # Set before the look: an alarm that rings during it shortens the sleep after it.
        self._look_at = float("inf")
        seconds = await self._maintenance.scheduler.send_due()
        self._look_at = min(self._look_at, time.monotonic() + max(seconds, GATHER_SECONDS / 2))

    async def _sweep(self) -> None:
        await asyncio.sleep(await self._maintenance.rescuer.sweep())

    async def _tidy(self) -> None:
        await asyncio.sleep(self._tidy_seconds)
        self._tidy_seconds = await self._maintenance.upkeep.tidy()
