"""Sends three times as many questions as a desk can answer, and compares the results with a desk
under normal load.

`python -m benchmarks.speed.overload --minutes 10` prints the result; `--write` also writes
`docs/internal/measurements/overload.md`.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import shlex
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from agents.agent import Agent
from benchmarks.speed.redis_server import private_redis
from benchmarks.speed.refdesk_flow import WRITES, IdleAgent, NoTexts, Reads
from benchmarks.speed.tables import quantile
from broker.lease_renewer import LeaseRenewal
from broker.producer import AdmissionPolicy
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from broker.values import Accepted
from envelope.outcome import HopOutcome
from envelope.role import Role
from gateway.desk import Desk, Message
from gateway.errors import BusyError
from manager.flows import FLOWS
from manager.machine import Limits
from manager.manager import ManagerAgent
from memory.conversation import RedisMemory
from worker.agent_handler import AgentHandler, make_poison_notice
from worker.port import SilentMeter
from worker.process import WorkerProcess, WorkerSpec, collect_rarely
from worker.shutdown import GracePeriod, stop_on_signals

PAGE = Path(__file__).parents[2] / "docs" / "internal" / "measurements" / "overload.md"
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
"""How long the agents of a desk wait for models, in seconds."""
PLACES = 128
TIGHT = {"response": 25}
TTL_SECONDS = 10.0
P99_RATIO, GOODPUT, MEMORY, PROCESSORS = 1.3, 0.95, 1.05, 0.6
LEASE_SECONDS = 5.0
GRACE_SECONDS = 20.0
DEADLINE_SECONDS = 30.0
PATIENCE_SECONDS = 5.0
STOP_SECONDS = 30.0
SPREAD = 0.1
"""The relative variation of the waiting times of handlers."""
READY = "overload:ready"
TEXT = "How do I configure routing rules?"


@dataclass(frozen=True, slots=True)
class Overload:
    """Duration, load and seed; `quiet` is a small tenant next to a noisy one.

    `slower` is a factor for the waiting times of handlers, for a busier machine.
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
        """The number of questions per second that the worker can answer."""
        return TIGHT["response"] / self.waits["response"]


@dataclass(frozen=True, slots=True)
class Check:
    """A goal: a figure and its expected value."""

    name: str
    found: float
    must_be: Literal["at most", "at least"]
    goal: float

    @property
    def met(self) -> bool:
        """Whether the goal was reached."""
        return self.found <= self.goal if self.must_be == "at most" else self.found >= self.goal

    @property
    def line(self) -> str:
        """The goal as a row of a table."""
        word = "met" if self.met else "MISSED"
        return f"| {self.name} | {self.found:.3f} | {self.must_be} {self.goal:g} | {word} |"


@dataclass(frozen=True, slots=True)
class OverloadResult:
    """The figures of a run, and whether the goals were met."""

    figures: Mapping[str, object]
    checks: Sequence[Check]

    @property
    def met(self) -> bool:
        """Whether every goal was reached."""
        return all(check.met for check in self.checks)

    def text(self) -> str:
        """Return the run as two tables."""
        rows = "\n".join(f"| {name} | {_format(value)} |" for name, value in self.figures.items())
        goals = "\n".join(check.line for check in self.checks)
        return (
            f"| Goal | Result | Required | |\n|---|---|---|---|\n{goals}\n\n"
            f"| Figure | |\n|---|---|\n{rows}\n"
        )

    def json(self) -> str:
        """Return the run as one line for programs."""
        checks = {check.name: check.found for check in self.checks}
        return json.dumps({"met": self.met, **checks, **self.figures})


def _format(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def desk_of(broker: RedisBroker, tenant: str) -> Desk:
    """Return the desk of a tenant."""
    return Desk(
        broker.producer,
        broker.replies,
        tenant=tenant,
        assistant="overload",
        channel="overload",
        deadline_seconds=DEADLINE_SECONDS,
        words=lambda _key, language: language,
    )


@dataclass
class Answers:
    """The results of the questions in a period, in seconds."""

    seconds: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    took: list[float] = field(default_factory=list)
    retry_waits_seconds: list[float] = field(default_factory=list)
    in_the_time: int = 0

    def close(self, seconds: float) -> None:
        """End the measured time; later answers do not count."""
        self.seconds = seconds
        self.in_the_time = self.outcomes["answered"]

    def p(self, share: float) -> float:
        """Return the time within which this share of the accepted questions was answered."""
        return quantile(self.took, share)

    @property
    def answered_a_second(self) -> float:
        """The number of questions per second that received an actual answer in this time."""
        return self.in_the_time / self.seconds


class Askers:
    """Asks at random times at given rates, each question in a new conversation."""

    def __init__(self, broker: RedisBroker, *, seed: int) -> None:
        self._broker = broker
        self._random = random.Random(seed)
        self.asked = 0

    async def ask_for(self, seconds: float, rates: Mapping[str, float]) -> Answers:
        """Ask for `seconds` at the rate of each tenant (questions per second); wait for every
        answer.
        """
        desks = {tenant: desk_of(self._broker, tenant) for tenant in rates}
        answers = Answers()
        began = time.perf_counter()
        due = self._random.expovariate(sum(rates.values()))
        async with asyncio.TaskGroup() as tasks:
            while due < seconds:
                (tenant,) = self._random.choices(list(rates), list(rates.values()))
                await asyncio.sleep(max(0.0, began + due - time.perf_counter()))
                tasks.create_task(self._ask(desks[tenant], tenant, answers))
                due += self._random.expovariate(sum(rates.values()))
            answers.close(time.perf_counter() - began)
        return answers

    async def _ask(self, desk: Desk, tenant: str, answers: Answers) -> None:
        self.asked += 1
        message = Message(TEXT, f"talk-{self.asked}", f"message-{self.asked}")
        answers.asked[tenant] += 1
        began = time.perf_counter()
        try:
            admission = await desk.submit(message)
        except BusyError as busy:
            answers.refused[tenant] += 1
            answers.retry_waits_seconds.append(busy.retry_after_seconds)
            return
        if not isinstance(admission, Accepted):
            raise SystemExit(f"expected a new question to be accepted, found {admission}")
        reply = await self._broker.replies.await_reply(
            desk.question(message), block_seconds=DEADLINE_SECONDS + PATIENCE_SECONDS
        )
        ended = time.perf_counter()
        outcome = str(reply["outcome"]) if reply is not None else "none"
        answers.outcomes[outcome] += 1
        answers.took.append(ended - began)


async def run(wanted: Overload) -> OverloadResult:
    """Run the measurement and return its results."""
    with private_redis() as url:
        broker = make_broker(url)
        async with run_worker(url, wanted) as pid:
            askers = Askers(broker, seed=wanted.seed)
            at_ease = await askers.ask_for(wanted.ease_seconds, {"noisy": 0.8 * wanted.capacity})
            rates = {
                "noisy": (wanted.times - wanted.quiet) * wanted.capacity,
                "quiet": wanted.quiet * wanted.capacity,
            }
            async with watching(url, pid) as gauges:
                pressed = await askers.ask_for(wanted.seconds, rates)
        await broker.close()
    return make_result(wanted, at_ease, pressed, gauges)


def make_broker(url: str) -> RedisBroker:
    """Return a broker configured like that of every process in a run."""
    return RedisBroker(
        connect(url),
        lease_seconds=LEASE_SECONDS,
        ttl_seconds=TTL_SECONDS,
        pace=AdmissionPolicy(at_least=min(TIGHT.values())),
        make_notice=make_poison_notice,
    )


@dataclass
class Gauges:
    """Measurements over time; `memory` is the number of bytes used by Redis.

    `processors` is the share of all processors that the run used, `machine` that of all programs.
    """

    memory: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    processors: float = 0.0
    machine: float = 0.0

    def growth(self) -> float:
        """Return the memory in the last third of the time, relative to that in the middle third."""
        third = len(self.memory) // 3
        if third == 0:
            return 1.0
        return statistics.mean(self.memory[-third:]) / statistics.mean(
            self.memory[third : 2 * third]
        )


def make_result(
    wanted: Overload, at_ease: Answers, pressed: Answers, gauges: Gauges
) -> OverloadResult:
    """Return the table and whether the goals were met."""
    ratio = pressed.p(0.99) / at_ease.p(0.99)
    goodput = pressed.answered_a_second / wanted.capacity
    quiet = 1 - pressed.refused["quiet"] / max(1, pressed.asked["quiet"])
    waits = sorted(pressed.retry_waits_seconds)
    figures: dict[str, object] = {
        "seed": wanted.seed,
        "capacity (questions/s)": wanted.capacity,
        "load (questions/s)": sum(pressed.asked.values()) / wanted.seconds,
        "seconds": wanted.seconds,
        "p99 at 0.8 load (s)": at_ease.p(0.99),
        "share rejected at 0.8 load": sum(at_ease.refused.values())
        / max(1, sum(at_ease.asked.values())),
        "p50 under overload (s)": pressed.p(0.5),
        "p99 under overload (s)": pressed.p(0.99),
        "longest under overload (s)": max(pressed.took, default=0.0),
        "accepted": len(pressed.took),
        "rejected": sum(pressed.refused.values()),
        "outcomes": dict(pressed.outcomes),
        "requested wait, median (s)": waits[len(waits) // 2] if waits else 0.0,
        "share of all processors used by all programs": gauges.machine,
        "memory of Redis at the end (MB)": gauges.memory[-1] / 1e6,
    }
    return OverloadResult(
        figures,
        [
            Check("p99 of accepted questions, relative to 0.8 load", ratio, "at most", P99_RATIO),
            Check("goodput, relative to the capacity", goodput, "at least", GOODPUT),
            Check(
                "memory in the last third, relative to the middle third",
                gauges.growth(),
                "at most",
                MEMORY,
            ),
            Check(
                "share of all processors used by the run", gauges.processors, "at most", PROCESSORS
            ),
            Check(
                "share of a quiet tenant's questions that was accepted", quiet, "at least", GOODPUT
            ),
            Check(
                "accepted questions without an answer",
                len(pressed.took) - pressed.outcomes["answered"],
                "at most",
                0,
            ),
        ],
    )


TICKS = os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def watching(url: str, pid: int, *, every: float = 0.5) -> AsyncIterator[Gauges]:
    """Record measurements within the context."""
    gauges = Gauges()
    client: Any = connect(url)
    info = await client.info()
    began, pids = time.perf_counter(), [int(info["process_id"]), os.getpid(), pid]
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
    """Return the busy ticks and all ticks of the processors; 0 if unknown."""
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


class WaitingAgent(IdleAgent):
    """Waits as long as a model call takes, then writes the fixed attributes of the stage."""

    def __init__(self, role: Role, seconds: float) -> None:
        super().__init__(role)
        self._seconds = seconds

    async def work(self, reads: Reads) -> HopOutcome[BaseModel]:
        """Return the fixed writes, after a while."""
        await asyncio.sleep(self._seconds * random.uniform(1 - SPREAD, 1 + SPREAD))
        return await super().work(reads)


def make_process(url: str, wanted: Overload) -> WorkerProcess:
    """Return the workers of one process."""
    memory = RedisMemory(connect(url), shards=1, ttl_seconds=int(TTL_SECONDS))
    manager = ManagerAgent(FLOWS, memory, NoTexts(), limits=Limits(), quality_threshold=0.7)
    specs = [WorkerSpec(manager, 4 * PLACES)]
    for role in WRITES:
        agent: Agent[Reads, BaseModel] = WaitingAgent(role, wanted.waits[role.value])
        slots = TIGHT.get(role.value, PLACES)
        specs.append(WorkerSpec(AgentHandler(agent, limit_seconds=30), slots))
    return WorkerProcess(
        make_broker(url),
        specs,
        renewal=LeaseRenewal(lambda: make_broker(url), lease_seconds=LEASE_SECONDS),
        meter=SilentMeter(),
        grace=GracePeriod(GRACE_SECONDS),
    )


async def _work(url: str, wanted: Overload) -> None:
    collect_rarely()
    stop = asyncio.Event()
    async with stop_on_signals(stop), make_process(url, wanted).running():
        await connect(url).rpush(READY, 1)
        await stop.wait()


def work(url: str, wanted: Overload) -> None:
    """Work until SIGTERM is received."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_work(url, wanted))


@asynccontextmanager
async def run_worker(url: str, wanted: Overload) -> AsyncIterator[int]:
    """Run a worker process of the whole flow, and yield its process id."""
    context = multiprocessing.get_context("forkserver")
    process = context.Process(target=work, args=(url, wanted), daemon=True)
    client = connect(url)
    await asyncio.to_thread(process.start)
    try:
        while not await client.blpop([READY], timeout=1):
            if not process.is_alive():
                raise SystemExit(f"expected a worker that works, found exit {process.exitcode}")
        yield process.pid or 0
    finally:
        await client.aclose()
        process.terminate()
        await asyncio.to_thread(process.join, STOP_SECONDS)


def main(words: list[str]) -> int:
    """Run the measurement, print table and JSON, and return 1 if a goal was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.overload")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--ease-minutes", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--slower", type=float, default=1.0, help="the factor by which handlers are slower"
    )
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    wanted = parser.parse_args(words)
    overload = Overload(
        60 * wanted.minutes, 60 * wanted.ease_minutes, seed=wanted.seed, slower=wanted.slower
    )
    result = asyncio.run(run(overload))
    print(result.text())
    print(result.json())
    if wanted.write:
        command = f"python -m benchmarks.speed.overload {shlex.join(words)}"
        PAGE.write_text(f"# Overload\n\nWritten by `{command}`; do not edit.\n\n{result.text()}")
    return 0 if result.met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
