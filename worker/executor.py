"""Runs the entries of workers: tasks, called runners, process a queue of runs.

A runner processes runs of all roles one after the other, so it can continue with an entry that was
taken in the same call as its own settlement, without starting a task. If a runner awaits something
while runs are queued, another runner starts. Handlers that await therefore run concurrently, and
handlers that never await share one runner.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from broker.lease_renewer import LeaseRenewal
from broker.values import Delivery, LeaseLost

Key = tuple[str, int, str, int]


@dataclass(eq=False, slots=True)
class Execution:
    """The run of one entry, from its delivery to its settlement."""

    key: Key
    delivery: Delivery
    task: asyncio.Task[None] | None = None
    """The runner; None while the run is queued, or while its settlement is pending."""
    settling: bool = False
    called_off: bool = False
    began: float = field(default_factory=time.perf_counter)


class Runners:
    """The runner tasks of a process and their queue."""

    def __init__(self) -> None:
        self._queue: deque[tuple[Executor, Execution]] = deque()
        self._at_work: dict[asyncio.Task[Any] | None, Execution] = {}
        self._runner_comes = False
        self._group: asyncio.TaskGroup | None = None
        self._context = copy_context()

    def work_in(self, group: asyncio.TaskGroup) -> None:
        """From now on, start runners in this group.

        Runners use the context variables of this call, not those of the code that queues a run.
        """
        self._group = group
        self._context = copy_context()

    def add(self, executor: "Executor", run: Execution) -> None:
        """Queue a run, and start a runner in the next loop iteration if one is needed.

        No new runner is needed if the caller is a runner whose settlement returned the entry,
        because it finishes its current run and then takes this one.
        """
        if self._group is None:
            raise RuntimeError("call `work_in` before adding a run")
        self._queue.append((executor, run))
        current = self._at_work.get(asyncio.current_task())
        if current is None or not current.settling:
            self._call_runner()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task in the group of the runners."""
        if self._group is None:
            work.close()
            raise RuntimeError("call `work_in` before spawning a task")
        return self._group.create_task(work, context=self._context.copy())

    def _call_runner(self) -> None:
        if not self._runner_comes:
            self._runner_comes = True
            asyncio.get_running_loop().call_soon(self._start_runner)

    def _start_runner(self) -> None:
        self._runner_comes = False
        if self._queue:
            self.spawn(self._run())

    async def _run(self) -> None:
        task = asyncio.current_task()
        try:
            while self._queue:
                executor, run = self._queue.popleft()
                if self._queue:
                    # It starts in the next loop iteration, when this runner awaits or has ended.
                    self._call_runner()
                self._at_work[task] = run
                await executor.work(run)
        finally:
            self._at_work.pop(task, None)


class Executor:
    """Calls `work` with each run of a role, at most `slots` at a time, and holds their leases."""

    def __init__(
        self,
        work: Callable[[Execution], Coroutine[Any, Any, None]],
        *,
        slots: int,
        leases: LeaseRenewal,
        runners: Runners,
    ) -> None:
        self._work = work
        self._slots = slots
        self._leases = leases
        self._runners = runners
        self._runs: dict[Key, Execution] = {}
        self._waiting: deque[Execution] = deque()
        self._at_work = 0
        self._free = asyncio.Event()
        self._free.set()
        self._empty = asyncio.Event()

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def by_key(self) -> Mapping[Key, Execution]:
        """The runs that have not ended, by role, shard, entry id and delivery count."""
        return self._runs

    @property
    def free_slots(self) -> int:
        """The number of additional entries that can run now."""
        return max(0, self._slots - len(self._runs))

    def start(self, delivery: Delivery) -> bool:
        """Queue an entry; return False if it is already queued or running.

        A recreated consumer group redelivers all entries, even running ones. If entries taken by a
        settlement exceed the free slots, they wait.
        """
        key = (delivery.role, delivery.shard, delivery.entry_id, delivery.count)
        if key in self._runs:
            return False
        self._leases.hold(delivery)
        self._runs[key] = run = Execution(key=key, delivery=delivery)
        if len(self._runs) >= self._slots:
            self._free.clear()
        self._waiting.append(run)
        self._begin_waiting()
        return True

    def end(self, run: Execution) -> None:
        """Remove a run and release its lease; do nothing if it has already ended."""
        if self._runs.pop(run.key, None) is None:
            return
        self._leases.release(run.delivery)
        if len(self._runs) < self._slots:
            self._free.set()
        if not self._runs:
            self._empty.set()

    def cancel_lost(self, lost: LeaseLost) -> bool:
        """Cancel the run of an entry whose lease was lost; return False if there is none.

        A run that is being settled is not cancelled: its lease may be missing because the entry is
        already settled, and the response may contain entries that were taken in the same round
        trip.
        """
        run = self._runs.get((lost.role, lost.shard, lost.entry_id, lost.count))
        if run is None or run.settling:
            return False
        self._call_off(run)
        return True

    def call_off(self) -> int:
        """Cancel all runs and return their number."""
        runs = list(self._runs.values())
        for run in runs:
            self._call_off(run)
        return len(runs)

    async def free(self) -> None:
        """Wait until a slot is free."""
        await self._free.wait()

    async def empty(self) -> None:
        """Wait until no runs remain."""
        while self._runs:
            self._empty.clear()
            await self._empty.wait()

    async def work(self, run: Execution) -> None:
        """Process a queued run; called by a runner."""
        run.task = task = asyncio.current_task()
        try:
            if run.key in self._runs:
                await self._work(run)
        except asyncio.CancelledError:
            self.end(run)
            # The run was cancelled, not its runner, unless that was requested as well.
            if not run.called_off or task is None or task.uncancel() > 0:
                raise
        except BaseException:
            self.end(run)
            raise
        finally:
            self._at_work -= 1
        self._begin_waiting()

    def _begin_waiting(self) -> None:
        """Pass waiting runs to the runners while slots are free."""
        while self._waiting and self._at_work < self._slots:
            run = self._waiting.popleft()
            if run.key in self._runs:
                self._at_work += 1
                self._runners.add(self, run)

    def _call_off(self, run: Execution) -> None:
        if run.task is None or run.settling:
            # A retry of the settlement that is cancelled before it starts would not end the run.
            self.end(run)
        if run.task is not None and not run.called_off:
            run.called_off = True
            run.task.cancel()
