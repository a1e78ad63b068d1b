"""What goes wrong in a run: processes are killed and stopped, at random and at named places."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from tests.faults.deployment import Deployment
from tests.faults.labels import Phase, Plan
from tests.faults.ledger import read_notes
from tests.support.waiting import poll

PASSINGS = 30
"""A process is to die at one of that many passings of its label."""
HIRED_AT_ONCE = 8
PATIENCE_SECONDS = 3.0
"""A process that has not passed its label by then is killed or stopped where it stands."""
ON_THE_WAY_OUT = ("worker/shutdown.py", "worker/executor.py:empty:")
KILLED = 9
EASY = {"slots": 2, "grace_seconds": 0.05}
"""Who fills up soon and may not finish comes to each place where one waits for room, or leaves."""
TRIES = 12
"""Among others' cuts some do not even come to work, and some have nothing in hand to leave with."""
PAUSES = (1.15, 1.6)
"""A pause lasts between that many leases."""
LABELLED_SHARE = 0.5
UNSYNCED_SECONDS = 1.0
"""What `appendfsync everysec` may lose when the power fails."""
Do = Literal["kill", "stop", "cut", "outage", "power cut"]
PHASES: tuple[Phase, Phase] = ("goes", "returns")


@dataclass(frozen=True, slots=True)
class FaultCounts:
    """How much of what, besides `plans` that name their places.

    A cut ends every connection. An outage is a SIGKILL of Redis and a new start on its file; a
    power cut besides takes the last second of that file, as `appendfsync everysec` allows.
    """

    kills: int
    pauses: int = 0
    cuts: int = 0
    outages: int = 0
    power_cuts: int = 0
    plans: tuple[Plan, ...] = ()


class FaultInjector:
    """Keeps `workers` processes alive, and spreads an amount of trouble over a run."""

    def __init__(
        self,
        harness: Deployment,
        seed: int,
        amount: FaultCounts,
        *,
        workers: int,
        labels: Sequence[str],
        hiring: dict[str, Any] | None = None,
    ) -> None:
        self._app = harness
        self._random = random.Random(seed)
        self._workers = workers
        self._labels = labels
        self._hiring = hiring or {}
        self._left: Counter[str] = Counter(
            {
                "kill": amount.kills,
                "stop": amount.pauses,
                "cut": amount.cuts,
                "outage": amount.outages,
                "power cut": amount.power_cuts,
            }
        )
        self._plans = list(amount.plans)
        self._left.update(plan.do for plan in self._plans)
        self.caused: Counter[str] = Counter()
        self.missed: list[Plan] = []
        self.outages: list[tuple[float, float]] = []
        self.faulty: set[int] = set()
        self._tasks: asyncio.TaskGroup | None = None
        self._cutting = asyncio.Lock()
        self._hired_at_once = asyncio.Semaphore(HIRED_AT_ONCE)
        self._hired: set[int] = set()

    async def keep_staffed(self) -> None:
        """Replace each process that dies, until cancelled."""
        workers = self._app.workers
        while True:
            self._hired &= set(workers.alive)
            while len(self._hired) < self._workers:
                self._hired.add(await workers.hire(**self._hiring))
            await workers.until(lambda: not self._hired <= set(workers.alive), seconds=None)

    async def spread(self, progress: "asyncio.Queue[int]", questions: int) -> None:
        """Cause trouble as questions are answered; ends when all is caused and over."""
        amount, done = sum(self._left.values()), 0
        async with asyncio.TaskGroup() as self._tasks:
            while sum(self._left.values()):
                done += await progress.get()
                while sum(self.caused.values()) * questions < min(done, questions) * amount:
                    self._cause()

    async def kill_regularly(self, seconds: float | None) -> None:
        """Kill one of the workers at each of these intervals, until cancelled; None: never."""
        while seconds is not None:
            await asyncio.sleep(seconds)  # noqa: TID251 - a process stays stopped for this long
            await self._kill_somebody()

    def _cause(self) -> None:
        assert self._tasks is not None
        wanted = plan = self._plans.pop() if self._plans else None
        do: Do = plan.do if plan is not None else self._choice()
        self._left[do] -= 1
        self.caused[do] += 1
        if plan is None and do in ("kill", "stop") and self._random.random() < LABELLED_SHARE:
            plan = self._plan(do)
        self._tasks.create_task(self._task(do, plan, insists=wanted is not None))

    def _task(self, do: Do, plan: Plan | None, *, insists: bool) -> Coroutine[Any, Any, None]:
        if plan is None:
            return self._act(do)
        return self._insisted(plan) if insists else self._tried(plan)

    async def _act(self, do: Do) -> None:
        match do:
            case "kill":
                await self._kill_somebody()
            case "stop":
                await self._stop_somebody()
            case "cut":
                await self._cut()
            case "outage" | "power cut":
                await self._outage(power_cut=do == "power cut")

    def _choice(self) -> Do:
        kinds: tuple[Do, ...] = get_args(Do)
        [do] = self._random.choices(kinds, [self._left[kind] for kind in kinds])
        return do

    async def _kill_somebody(self) -> None:
        victim = await self._somebody()
        self._app.workers.kill(victim)
        await self._app.workers.until(lambda: victim in self._app.workers.died)

    async def _cut(self) -> None:
        """Let the server end every connection but ours, whatever is in flight."""
        async with self._cutting:
            await self._app.client.client_kill_filter(_type="normal", skipme=True)

    async def _outage(self, *, power_cut: bool) -> None:
        """Kill Redis, and start it again on what its file has."""
        server, client = self._app.server, self._app.client
        async with self._cutting:
            before = server.written()
            await asyncio.sleep(UNSYNCED_SECONDS)  # noqa: TID251 - a process stays stopped for this long
            gone = time.time()
            await asyncio.to_thread(server.kill)
            if power_cut:
                server.forget_after(before)
            await asyncio.to_thread(server.start)
            self.outages.append((gone, time.time()))
            await client.connection_pool.disconnect()

    async def _stop_somebody(self) -> None:
        victim = await self._somebody()
        self._app.workers.stop(victim)
        await self._pause(victim)

    async def _somebody(self) -> int:
        """Return one of the workers that had no fault yet."""
        workers = self._app.workers

        def at_work() -> list[int]:
            return sorted((self._hired & set(workers.alive)) - self.faulty)

        await workers.until(lambda: bool(at_work()))
        victim = self._random.choice(at_work())
        self.faulty.add(victim)
        return victim

    def _plan(self, do: Literal["kill", "stop"]) -> Plan | None:
        if not self._labels:
            return None
        label, phase = self._random.choice(self._labels), self._random.choice(PHASES)
        return Plan(label, phase, self._random.randint(1, PASSINGS), do)

    async def _insisted(self, plan: Plan) -> None:
        """Hire again and again, until somebody comes to the place of a plan or too many did not."""
        for _ in range(TRIES):
            if await self._carried_out(plan, leads=True, **EASY):
                return
        self.missed.append(plan)

    async def _tried(self, plan: Plan) -> None:
        if not await self._carried_out(plan):
            self.missed.append(plan)

    async def _carried_out(self, plan: Plan, *, leads: bool = False, **changes: object) -> bool:
        """Hire one more, which dies or stops at its label; return whether it got there.

        With `leads` it is led there, if it does not come by itself.
        """
        workers, written = self._app.workers, self._app.ledger.path.stat().st_size
        async with self._hired_at_once:
            pid = await workers.hire(**{**self._hiring, "plan": plan, **changes})
            self.faulty.add(pid)
            if plan.label.startswith(ON_THE_WAY_OUT):
                await self._busy(pid, written)
                workers.end(pid)
            reached = await self._reached(pid) or (leads and await self._led_there(pid))
            if not reached and plan.do == "stop":
                workers.stop(pid)
                await self._reached(pid)
            if pid in workers.stopped:
                await self._pause(pid)
            workers.kill(pid)
        return reached

    async def _busy(self, pid: int, written: int) -> None:
        """Wait a while for it to begin something that will not end in time."""
        await poll(
            lambda: self._has_begun_long_work(pid, written), patience_seconds=PATIENCE_SECONDS
        )

    def _has_begun_long_work(self, pid: int, written: int) -> bool:
        lines = read_notes(self._app.ledger.path, after=written)
        return any(
            (line.kind, line.pid) == ("started", pid)
            and line["role"] == "search"
            and line["name"].startswith("slow")
            for line in lines
        )

    async def _led_there(self, pid: int) -> bool:
        """Return whether it came there by trouble with Redis, a dead colleague, or its own end."""
        for lead in (self._cut, self._kill_somebody, lambda: self._end(pid)):
            await lead()
            if await self._reached(pid):
                return True
        return False

    async def _end(self, pid: int) -> None:
        self._app.workers.end(pid)

    async def _reached(self, pid: int) -> bool:
        """Return whether it died or stopped by its plan; False for one that ended in order."""
        workers = self._app.workers
        try:
            await workers.until(
                lambda: pid in workers.died or pid in workers.stopped, seconds=PATIENCE_SECONDS
            )
        except TimeoutError:
            return False
        return workers.died.get(pid, KILLED) == KILLED

    async def _pause(self, pid: int) -> None:
        """Wait until its leases are gone, let it go on, and send it home for the next."""
        lease = self._app.workers.settings.lease_seconds
        await asyncio.sleep(lease * self._random.uniform(*PAUSES))  # noqa: TID251 - a process stays stopped for this long
        self._app.workers.go_on(pid)
        # Long enough for what it had finished before to be refused.
        await asyncio.sleep(lease / 2)  # noqa: TID251 - a process stays stopped for this long
        await self._sent_home(pid)

    async def _sent_home(self, pid: int) -> None:
        """Let it end by itself, also when it passes the place where it is to stop only now."""
        workers = self._app.workers
        workers.end(pid)
        while pid not in workers.died:
            await workers.until(lambda: pid in workers.died or pid in workers.stopped)
            workers.go_on(pid)
