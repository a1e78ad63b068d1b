"""What goes wrong in a run: processes are killed and stopped, at random and at named places."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.faults.house import House
from tests.faults.labels import Phase, Plan

PASSINGS = 30
"""A process is to die at one of so many passings of its label."""
PATIENCE_SECONDS = 4.0
"""A process that has not passed its label by then is killed where it stands."""
PAUSES = (1.15, 1.6)
"""A pause lasts between so many leases."""
LABELLED_SHARE = 0.5
PHASES: tuple[Phase, Phase] = ("goes", "returns")


@dataclass(frozen=True, slots=True)
class Amount:
    """How much of what; about half of it at named places."""

    kills: int
    pauses: int = 0


class Trouble:
    """Keeps `workers` processes alive, and spreads an amount of trouble over a run."""

    def __init__(
        self,
        house: House,
        seed: int,
        amount: Amount,
        *,
        workers: int,
        labels: Sequence[str],
        hiring: dict[str, Any] | None = None,
    ) -> None:
        self._house = house
        self._random = random.Random(seed)
        self._workers = workers
        self._labels = labels
        self._hiring = hiring or {}
        self._left: Counter[str] = Counter(kill=amount.kills, stop=amount.pauses)
        self.caused: Counter[str] = Counter()
        self.missed_labels = 0
        self.faulty: set[int] = set()
        self.stopped: set[int] = set()
        self._tasks: asyncio.TaskGroup | None = None
        self._staff: set[int] = set()

    async def keep_staffed(self) -> None:
        """Replace whoever died, for ever; cancel this to stop."""
        workers = self._house.workers
        while True:
            self._staff &= set(workers.alive)
            while len(self._staff) < self._workers:
                self._staff.add(await workers.hire(**self._hiring))
            await workers.until(lambda: not self._staff <= set(workers.alive), seconds=None)

    async def spread(self, progress: "asyncio.Queue[int]", questions: int) -> None:
        """Cause trouble as questions are answered; ends when all is caused and over."""
        amount, done = sum(self._left.values()), 0
        async with asyncio.TaskGroup() as self._tasks:
            while sum(self._left.values()):
                done += await progress.get()
                while sum(self.caused.values()) * questions < min(done, questions) * amount:
                    self._cause()

    def _cause(self) -> None:
        assert self._tasks is not None
        do = self._choice()
        self._left[do] -= 1
        self.caused[do] += 1
        if self._labels and self._random.random() < LABELLED_SHARE:
            self._tasks.create_task(self._at_a_label(do))
        elif do == "kill":
            self._tasks.create_task(self._kill_somebody())
        else:
            self._tasks.create_task(self._stop_somebody())

    def _choice(self) -> Literal["kill", "stop"]:
        kinds: tuple[Literal["kill", "stop"], ...] = ("kill", "stop")
        [do] = self._random.choices(kinds, [self._left[kind] for kind in kinds])
        return do

    async def _kill_somebody(self) -> None:
        victim = await self._somebody()
        self._house.workers.kill(victim)
        await self._house.workers.until(lambda: victim in self._house.workers.died)

    async def _stop_somebody(self) -> None:
        victim = await self._somebody()
        self._house.workers.stop(victim)
        await self._pause(victim)

    async def _somebody(self) -> int:
        """Return one of the staff whom nothing has happened to yet."""
        workers = self._house.workers

        def at_work() -> list[int]:
            return sorted((self._staff & set(workers.alive)) - self.faulty)

        await workers.until(lambda: bool(at_work()))
        victim = self._random.choice(at_work())
        self.faulty.add(victim)
        return victim

    async def _at_a_label(self, do: Literal["kill", "stop"]) -> None:
        """Hire one more, who dies or stops at a place of its own."""
        workers = self._house.workers
        plan = Plan(
            self._random.choice(self._labels),
            self._random.choice(PHASES),
            self._random.randint(1, PASSINGS),
            do,
        )
        pid = await workers.hire(**{**self._hiring, "plan": plan})
        self.faulty.add(pid)
        try:
            await workers.until(
                lambda: pid in workers.died or pid in workers.stopped, seconds=PATIENCE_SECONDS
            )
        except TimeoutError:
            self.missed_labels += 1
            if do == "stop":
                workers.stop(pid)
        if do == "stop" and pid not in workers.died:
            await self._pause(pid)
        workers.kill(pid)

    async def _pause(self, pid: int) -> None:
        """Wait until its leases are gone, let it go on, and send it home for the next."""
        lease = self._house.workers.staff.lease_seconds
        self.stopped.add(pid)
        await asyncio.sleep(lease * self._random.uniform(*PAUSES))
        self._house.workers.go_on(pid)
        # Long enough for what it had finished before to be refused.
        await asyncio.sleep(lease / 2)
        self._house.workers.end(pid)
        await self._house.workers.until(lambda: pid in self._house.workers.died)
