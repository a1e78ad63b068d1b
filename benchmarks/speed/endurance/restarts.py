"""Long runs with restarts: of all workers in turn, and of those whom a message kills."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

from benchmarks.speed.endurance.results import Check, RunResult
from benchmarks.speed.endurance.worker_fleet import (
    AGAIN,
    POISON,
    Answers,
    Askers,
    WorkerFleet,
    Workers,
    desk_of,
)
from benchmarks.speed.redis_server import private_redis
from broker.redis_broker import RedisBroker
from broker.settlement import STARTS
from broker.transport.connect import connect
from broker.values import DeadLetter
from gateway.desk import Message

WAITS = {"translation": 0.05, "essence": 0.05, "guardrails": 0.05, "response": 0.2, "quality": 0.1}
TIGHT = {"response": 8}
WORKERS = 3
LOAD = 0.5
CAPACITY = WORKERS * TIGHT["response"] / WAITS["response"]
ROLES = 8
ADDED_SECONDS = 1.0
LEASE_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Rolling:
    """`seconds` without restarts first; then every worker is restarted `rounds` times."""

    seconds: float = 20.0
    rounds: int = 3
    seed: int = 1


async def run_rolling(wanted: Rolling) -> RunResult:
    """Return what was measured."""
    with private_redis() as url:
        fleet = WorkerFleet(url, WAITS, 64, TIGHT, lease_seconds=LEASE_SECONDS)
        client: Any = connect(url)
        workers, broker = Workers(fleet), fleet.broker()
        for _ in range(WORKERS):
            await workers.start()
        try:
            askers = Askers(broker, seed=wanted.seed)
            rates = {"half": LOAD * CAPACITY}
            before = await askers.ask_for(wanted.seconds, rates)
            done = asyncio.Event()
            async with asyncio.TaskGroup() as tasks:
                restarting = tasks.create_task(_restart(workers, wanted.rounds, done))
                during = await askers.ask_until(done, rates)
                await restarting
            again = int(await client.get(AGAIN) or 0)
            steps = await _steps(broker, range(1, askers.asked + 1))
        finally:
            await workers.close()
            await broker.close()
            await client.aclose()
    return _report_rolling(wanted, before, during, again, steps)


async def _restart(workers: Workers, rounds: int, done: asyncio.Event) -> None:
    try:
        for _ in range(rounds * WORKERS):
            await workers.replace_oldest()
    finally:
        done.set()


async def _steps(broker: RedisBroker, numbers: range) -> Counter[str]:
    """Count the entries of the journals: how often a role wrote, and what was tried again."""
    desk = desk_of(broker, "half")
    found: Counter[str] = Counter()
    for number in numbers:
        question = desk.question(Message("-", f"talk-{number}", f"message-{number}"))
        found.update(entry.kind for entry in await broker.replies.read_journal(question))
    return found


def _report_rolling(
    wanted: Rolling, before: Answers, during: Answers, again: int, steps: Counter[str]
) -> RunResult:
    asked = len(before.took) + len(during.took)
    answered = before.outcomes["answered"] + during.outcomes["answered"]
    figures: dict[str, object] = {
        "seed": wanted.seed,
        "workers": WORKERS,
        "restarts": wanted.rounds * WORKERS,
        "load (questions/s)": LOAD * CAPACITY,
        "seconds with restarts": during.seconds,
        "questions": asked,
        "p99 before (s)": before.p(0.99),
        "p99 during (s)": during.p(0.99),
        "longest during (s)": max(during.took, default=0.0),
    }
    return RunResult(
        "Rolling restart",
        figures,
        [
            Check("added p99 (s)", during.p(0.99) - before.p(0.99), "at most", ADDED_SECONDS),
            Check("attempts spent: deliveries that were not the first", again, "at most", 0),
            Check(
                "steps tried again or given up",
                steps["retried"] + steps["dead_lettered"],
                "at most",
                0,
            ),
            Check("steps written more than once", steps["agent_run"] - ROLES * asked, "at most", 0),
            Check("questions without an answer", asked - answered, "at most", 0),
        ],
    )


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


async def run_poison(wanted: Poison) -> RunResult:
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
    return _report_poison(wanted, before, during, seen, letters)


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


def _report_poison(
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
