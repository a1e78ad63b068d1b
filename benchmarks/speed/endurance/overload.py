"""Asks three times as much as the desk can do, and compares with a desk at ease."""

import asyncio
import os
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.speed.endurance.results import Check, RunResult
from benchmarks.speed.endurance.worker_fleet import Answers, Askers, WorkerFleet, Workers
from benchmarks.speed.redis_server import private_redis
from broker.producer import AdmissionPolicy
from broker.transport.connect import connect

WAITS = {
    "lang": 0.01,
    "translation": 0.2,
    "essence": 0.2,
    "guardrails": 0.2,
    "search": 0.1,
    "augmentation": 0.01,
    "response": 0.5,
    "quality": 0.3,
}
"""Seconds; what a desk waits for models."""
PLACES = 128
TIGHT = {"response": 25}
TTL_SECONDS = 10.0
P99_RATIO, GOODPUT, MEMORY, PROCESSORS = 1.3, 0.95, 1.05, 0.6


@dataclass(frozen=True, slots=True)
class Overload:
    """How long, how much, and with which seed; `quiet` is a small tenant next to a noisy one.

    `slower`: how many times longer handlers wait, for a machine that has more to do than this.
    """

    seconds: float = 600.0
    ease_seconds: float = 120.0
    times: float = 3.0
    quiet: float = 0.1
    seed: int = 1
    slower: float = 1.0

    @property
    def waits(self) -> dict[str, float]:
        """How long each role's handler waits (seconds)."""
        return {role: seconds * self.slower for role, seconds in WAITS.items()}

    @property
    def capacity(self) -> float:
        """Questions a second that the one worker can answer."""
        return TIGHT["response"] / self.waits["response"]


async def run(wanted: Overload) -> RunResult:
    """Return what was measured."""
    with private_redis() as url:
        fleet = WorkerFleet(
            url,
            wanted.waits,
            PLACES,
            TIGHT,
            ttl_seconds=TTL_SECONDS,
            pace=AdmissionPolicy(at_least=min(TIGHT.values())),
        )
        workers, broker = Workers(fleet), fleet.broker()
        await workers.start()
        askers = Askers(broker, seed=wanted.seed)
        try:
            at_ease = await askers.ask_for(wanted.ease_seconds, {"noisy": 0.8 * wanted.capacity})
            rates = {
                "noisy": (wanted.times - wanted.quiet) * wanted.capacity,
                "quiet": wanted.quiet * wanted.capacity,
            }
            async with watching(url, workers) as gauges:
                pressed = await askers.ask_for(wanted.seconds, rates)
        finally:
            await workers.close()
            await broker.close()
    return make_result(wanted, at_ease, pressed, gauges)


@dataclass
class Gauges:
    """What was read; `memory` are bytes that Redis uses, in order of time.

    `processors` is the share of all processors that the run used, `machine` what every program did.
    """

    memory: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    processors: float = 0.0
    machine: float = 0.0

    def growth(self) -> float:
        """Return the memory of the last third of the time over that of the middle one."""
        third = len(self.memory) // 3
        if third == 0:
            return 1.0
        return statistics.mean(self.memory[-third:]) / statistics.mean(
            self.memory[third : 2 * third]
        )


def make_result(wanted: Overload, at_ease: Answers, pressed: Answers, gauges: Gauges) -> RunResult:
    """Return the table and whether the goals were met."""
    ratio = pressed.p(0.99) / at_ease.p(0.99)
    goodput = pressed.answered_a_second / wanted.capacity
    quiet = 1 - pressed.refused["quiet"] / max(1, pressed.asked["quiet"])
    waits = sorted(pressed.retry_waits_seconds)
    figures: dict[str, object] = {
        "seed": wanted.seed,
        "capacity (questions/s)": wanted.capacity,
        "asked (questions/s)": sum(pressed.asked.values()) / wanted.seconds,
        "seconds": wanted.seconds,
        "p99 at 0.8 load (s)": at_ease.p(0.99),
        "refused at 0.8 load": sum(at_ease.refused.values()) / max(1, sum(at_ease.asked.values())),
        "p50 under overload (s)": pressed.p(0.5),
        "p99 under overload (s)": pressed.p(0.99),
        "longest under overload (s)": max(pressed.took, default=0.0),
        "accepted": len(pressed.took),
        "refused": sum(pressed.refused.values()),
        "outcomes": dict(pressed.outcomes),
        "asked to wait, median (s)": waits[len(waits) // 2] if waits else 0.0,
        "processors used by every program here": gauges.machine,
        "memory of Redis at the end (MB)": gauges.memory[-1] / 1e6,
    }
    return RunResult(
        "Overload",
        figures,
        [
            Check("p99 of the accepted against 0.8 load", ratio, "at most", P99_RATIO),
            Check("goodput, of the capacity", goodput, "at least", GOODPUT),
            Check("memory, last third against the middle", gauges.growth(), "at most", MEMORY),
            Check("processors used, all of them", gauges.processors, "at most", PROCESSORS),
            Check("a quiet tenant's questions accepted", quiet, "at least", GOODPUT),
            Check(
                "accepted without an answer",
                len(pressed.took) - pressed.outcomes["answered"],
                "at most",
                0,
            ),
        ],
    )


TICKS = os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def watching(url: str, workers: Workers, *, every: float = 0.5) -> AsyncIterator[Gauges]:
    """Fill the gauges while inside."""
    gauges = Gauges()
    client: Any = connect(url)
    info = await client.info()
    began, pids = time.perf_counter(), [int(info["process_id"]), os.getpid()]
    pids += [process.pid for process in workers.running if process.pid is not None]
    used, (busy, all_ticks) = _read_used_seconds(pids), _machine()

    async def read() -> None:
        while True:
            info = await client.info()
            gauges.memory.append(int(info["used_memory"]))
            gauges.keys.append(await client.dbsize())
            await asyncio.sleep(every)

    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(read())
        yield gauges
        reading.cancel()
    seconds = (time.perf_counter() - began) * (os.cpu_count() or 1)
    gauges.processors = (_read_used_seconds(pids) - used) / seconds
    busy_then, all_then = _machine()
    gauges.machine = (busy_then - busy) / max(1, all_then - all_ticks)
    await client.aclose()


def _machine() -> tuple[int, int]:
    """Return the ticks in which the processors did something, and all ticks; 0 where unknown."""
    try:
        line = Path("/proc/stat").read_text("ascii").splitlines()[0]
    except OSError:
        return 0, 0
    ticks = [int(value) for value in line.split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def _read_used_seconds(pids: Sequence[int]) -> float:
    """Return the processor seconds that these processes used so far."""
    ticks = 0
    for pid in pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text("ascii")
        except OSError:
            continue
        # The name in brackets may hold spaces; what follows it does not.
        values = stat.rpartition(")")[2].split()
        ticks += int(values[11]) + int(values[12])
    return ticks / TICKS
