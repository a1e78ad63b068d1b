"""Restarts all workers one after the other under half load, and compares with a quiet time."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

from benchmarks.speed.endurance.askers import Answers, Askers, desk_of
from benchmarks.speed.endurance.results import Check, RunResult
from benchmarks.speed.endurance.worker_fleet import AGAIN, WorkerFleet, Workers
from benchmarks.speed.harness.server import private_redis
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
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


async def run(wanted: Rolling) -> RunResult:
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
    return _make_result(wanted, before, during, again, steps)


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


def _make_result(
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
