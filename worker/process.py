"""A worker process: workers of several roles that share settlement and lease renewal."""

import asyncio
import gc
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from broker.background_jobs import BackgroundJobs, cancel_until_done
from broker.lease_renewer import LeaseRenewal
from broker.ports import Broker
from broker.settle_pipeline import SettlementPipeline
from broker.transport.connect import Outage
from broker.values import LeaseLost
from worker.executor import Runners
from worker.port import Handler, WorkerMeter
from worker.shutdown import GracePeriod, drain, leave
from worker.worker import Worker


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """A handler, its number of workers, and how many entries each runs at the same time."""

    handler: Handler
    slots: int
    instances: int = 1


class WorkerProcess:
    """Runs the workers of a process; see `worker.shutdown` for the shutdown sequence."""

    def __init__(
        self,
        broker: Broker,
        specs: Sequence[WorkerSpec],
        *,
        renewal: LeaseRenewal,
        meter: WorkerMeter,
        attempts: int = 3,
        grace: GracePeriod | None = None,
        report_waiting: Callable[[], None] = lambda: None,
        consumer: str | None = None,
        jobs: BackgroundJobs | None = None,
    ) -> None:
        self._jobs = BackgroundJobs() if jobs is None else jobs
        self.consumer = consumer if consumer is not None else consumer_name()
        self._broker = broker
        self._renewal = renewal
        self._grace = GracePeriod() if grace is None else grace
        self._report_waiting = report_waiting
        self._settler = SettlementPipeline(broker.settle_and_take, consumers=lambda: self.workers)
        self._runners = Runners()
        outage = Outage()
        self.workers = [
            Worker(
                broker.consumer,
                broker.replies,
                member.handler,
                consumer=f"{self.consumer}-{instance}",
                slots=member.slots,
                settler=self._settler,
                leases=renewal,
                runners=self._runners,
                meter=meter,
                attempts=attempts,
                outage=outage,
            )
            for member in specs
            for instance in range(member.instances)
        ]

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of this process."""
        return tuple(dict.fromkeys(worker.role for worker in self.workers))

    @property
    def paused_roles(self) -> tuple[str, ...]:
        """The paused roles whose workers have no pending read."""
        taking = {worker.role for worker in self.workers if not worker.is_paused}
        return tuple(role for role in self.roles if role not in taking)

    def pause(self, roles: Collection[str]) -> None:
        """Pause the workers of these roles, and resume all others."""
        for worker in self.workers:
            if worker.role in roles:
                worker.pause()
            else:
                worker.resume()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the workers inside the context; on exit, finish their runs or return the entries."""
        loop = asyncio.get_running_loop()
        await self._broker.prepare(self.roles)

        def on_lost(lost: LeaseLost) -> None:
            loop.call_soon_threadsafe(self._cancel_lost, lost)

        try:
            async with self._renewal.running(on_lost), asyncio.TaskGroup() as tasks:
                tasks.create_task(self._jobs.supervise("settlements", self._settler.run))
                self._runners.work_in(tasks)
                timers = [
                    tasks.create_task(self._jobs.supervise(f"take_{worker.role}", worker.take))
                    for worker in self.workers
                ]
                try:
                    with self._broker.producer.local_consumers(self.workers):
                        yield
                finally:
                    await cancel_until_done(timers)
                    await drain(self.workers, self._grace, report_waiting=self._report_waiting)
                    self._settler.stop()
        finally:
            await leave(self._broker.consumer, self.workers, self._grace)

    def _cancel_lost(self, lost: LeaseLost) -> None:
        for worker in self.workers:
            worker.cancel_lost(lost)


def collect_rarely() -> None:
    """Run the garbage collector less often, because reference cycles are rare here."""
    gc.set_threshold(100_000, 50, 50)


def consumer_name() -> str:
    """Return a unique consumer name for this process."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
