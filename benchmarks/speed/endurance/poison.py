"""Asks now and then what kills whoever works on it, and looks what others notice of it."""

import asyncio
from dataclasses import dataclass

from benchmarks.speed.endurance.askers import Answers, Askers, desk_of
from benchmarks.speed.endurance.results import Check, RunResult
from benchmarks.speed.endurance.rolling import CAPACITY, LEASE_SECONDS, LOAD, TIGHT, WAITS, WORKERS
from benchmarks.speed.endurance.worker_fleet import POISON, WorkerFleet, Workers
from benchmarks.speed.harness.server import private_redis
from broker.redis_broker import RedisBroker
from broker.settlement import STARTS
from broker.values import DeadLetter
from gateway.desk import Message

MOVED = 1.1
LOOK_SECONDS = 0.2
"""How often somebody looks whether a worker died, as a supervisor does."""
DEADLINE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Poison:
    """`seconds` without poison first, then as long with some of it `every` that many seconds."""

    seconds: float = 120.0
    every: float = 30.0
    lease_seconds: float = LEASE_SECONDS
    seed: int = 1


@dataclass
class _Seen:
    """What became of the poison."""

    asked: int = 0
    apologies: int = 0
    workers_lost: int = 0


async def run(wanted: Poison) -> RunResult:
    """Return what was measured."""
    with private_redis() as url:
        fleet = WorkerFleet(
            url, WAITS, 64, TIGHT, lease_seconds=wanted.lease_seconds, quarantines=True
        )
        workers, broker = Workers(fleet), fleet.broker()
        for _ in range(WORKERS):
            await workers.start()
        try:
            askers, seen = Askers(broker, seed=wanted.seed), _Seen()
            rates = {"half": LOAD * CAPACITY}
            before = await askers.ask_for(wanted.seconds, rates)
            done = asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_supervise(workers, seen, done))
                poisoning = tasks.create_task(_poison(broker, wanted, seen))
                during = await askers.ask_for(wanted.seconds, rates)
                await poisoning
                done.set()
            letters = [
                letter
                for letter in await broker.admin.list_dead_letters(limit=1000)
                if letter.reason == "poison"
            ]
        finally:
            await workers.close()
            await broker.close()
    return _make_result(wanted, before, during, seen, letters)


async def _supervise(workers: Workers, seen: _Seen, done: asyncio.Event) -> None:
    while not done.is_set():
        seen.workers_lost += await workers.replace_dead()
        await asyncio.sleep(LOOK_SECONDS)


async def _poison(broker: RedisBroker, wanted: Poison, seen: _Seen) -> None:
    desk = desk_of(broker, "poison", DEADLINE_SECONDS)
    async with asyncio.TaskGroup() as tasks:
        for number in range(int(wanted.seconds / wanted.every)):
            await asyncio.sleep(wanted.every / 2 if number == 0 else wanted.every)
            seen.asked += 1
            message = Message(POISON, f"poison-{number}", f"poison-{number}")

            async def ask(message: Message = message) -> None:
                reply = await desk.ask(message)
                seen.apologies += reply["outcome"] == "failed"

            tasks.create_task(ask())


def _make_result(
    wanted: Poison, before: Answers, during: Answers, seen: _Seen, letters: list[DeadLetter]
) -> RunResult:
    asked = len(before.took) + len(during.took)
    answered = before.outcomes["answered"] + during.outcomes["answered"]
    thrice = [letter for letter in letters if len(letter.deaths) == STARTS]
    figures: dict[str, object] = {
        "seed": wanted.seed,
        "workers": WORKERS,
        "lease (s)": wanted.lease_seconds,
        "load (questions/s)": LOAD * CAPACITY,
        "seconds with poison": during.seconds,
        "poison asked": seen.asked,
        "workers that died of it": seen.workers_lost,
        "questions": asked,
        "p99 before (s)": before.p(0.99),
        "p99 during (s)": during.p(0.99),
        "p99.9 during (s)": during.p(0.999),
        "longest during (s)": max(during.took, default=0.0),
    }
    return RunResult(
        "Poison",
        figures,
        [
            Check("others' p99 against before", during.p(0.99) / before.p(0.99), "at most", MOVED),
            Check("poison buried after exactly three starts", len(thrice), "at least", seen.asked),
            Check("its users got an apology", seen.apologies, "at least", seen.asked),
            Check("workers lost, for each", seen.workers_lost / max(1, seen.asked), "at most", 1),
            Check("questions without an answer", asked - answered, "at most", 0),
        ],
    )
