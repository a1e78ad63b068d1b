"""Worker processes of the whole flow, quick to start: forked from one that has imported all."""

import asyncio
import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.context import ForkServerProcess

from pydantic import BaseModel

from agents.agent import Agent
from benchmarks.speed.endurance.results import share_below
from benchmarks.speed.refdesk_flow import WRITES, IdleAgent, NoTexts, Reads
from broker.lease_renewer import LeaseRenewal
from broker.producer import NO_PACE, AdmissionPolicy
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from broker.values import Accepted, Delivery, Settlement
from envelope.envelope import Envelope
from envelope.outcome import HopOutcome
from envelope.role import Role
from gateway.desk import Desk, Message
from gateway.errors import BusyError
from manager.flows import FLOWS
from manager.machine import Limits
from manager.manager import Manager
from memory.conversation import RedisMemory
from worker.agent_handler import AgentHandler, make_poison_notice
from worker.isolation import IsolatedHandler, Quarantine
from worker.port import Handler, SilentMeter
from worker.process import WorkerProcess, WorkerSpec, collect_rarely
from worker.shutdown import stop_on_signals

DEADLINE_SECONDS = 30.0
PATIENCE_SECONDS = 5.0
TEXT = "How do I configure routing rules?"


def desk_of(broker: RedisBroker, tenant: str, deadline_seconds: float = DEADLINE_SECONDS) -> Desk:
    """Return the desk of a tenant."""
    return Desk(
        broker.producer,
        broker.replies,
        tenant=tenant,
        assistant="endurance",
        channel="endurance",
        deadline_seconds=deadline_seconds,
        words=lambda _key, language: language,
    )


@dataclass
class Answers:
    """The results of the questions of a period; seconds."""

    seconds: float = 0.0
    asked: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    took: list[float] = field(default_factory=list)
    retry_waits_seconds: list[float] = field(default_factory=list)
    in_the_time: int = 0

    def close(self, seconds: float) -> None:
        """End the time; what is answered later was not answered in it."""
        self.seconds = seconds
        self.in_the_time = self.outcomes["answered"]

    def p(self, share: float) -> float:
        """Return the time below which this share of the accepted was answered."""
        return share_below(self.took, share)

    @property
    def answered_a_second(self) -> float:
        """How many got a real answer, in this time, per second."""
        return self.in_the_time / self.seconds


class Askers:
    """Ask at random times at given rates, each question in a new conversation."""

    def __init__(self, broker: RedisBroker, *, seed: int) -> None:
        self._broker = broker
        self._random = random.Random(seed)
        self.asked = 0

    async def ask_for(self, seconds: float, rates: Mapping[str, float]) -> Answers:
        """Ask for so long at these questions a second of each tenant; wait for every answer."""
        return await self._ask_while(lambda since: since < seconds, rates)

    async def ask_until(self, done: asyncio.Event, rates: Mapping[str, float]) -> Answers:
        """Ask at these rates until something is done; wait for every answer."""
        return await self._ask_while(lambda _: not done.is_set(), rates)

    async def _ask_while(
        self, goes_on: Callable[[float], bool], rates: Mapping[str, float]
    ) -> Answers:
        desks = {tenant: desk_of(self._broker, tenant) for tenant in rates}
        answers = Answers()
        began = time.perf_counter()
        due = self._random.expovariate(sum(rates.values()))
        async with asyncio.TaskGroup() as tasks:
            while goes_on(due):
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


AGAIN = "endurance:again"
"""Counts what a handler was given that was not its first start."""
READY = "endurance:ready"
POISON = "Whoever searches for this dies."
STOP_SECONDS = 30.0
SPREAD = 0.1


@dataclass(frozen=True, slots=True)
class WorkerFleet:
    """How a worker process works; times are seconds.

    `waits`: how long each role's handler waits, give or take a tenth; `places`: on how many each
    role works at once in a process, `tight` those of single roles. With `quarantines` suspects run
    in separate processes.
    """

    url: str
    waits: Mapping[str, float] = field(default_factory=dict)
    places: int = 64
    tight: Mapping[str, int] = field(default_factory=dict)
    lease_seconds: float = 5.0
    ttl_seconds: float = 3600.0
    grace_seconds: float = 20.0
    pace: AdmissionPolicy = NO_PACE
    quarantines: bool = False

    def broker(self) -> RedisBroker:
        """Return a broker as every process of this fleet uses it."""
        return RedisBroker(
            connect(self.url),
            lease_seconds=self.lease_seconds,
            ttl_seconds=self.ttl_seconds,
            pace=self.pace,
            make_notice=make_poison_notice,
        )


class WaitingAgent(IdleAgent):
    """Wait, as for a model, then write the stage's fixed attributes."""

    def __init__(self, role: Role, seconds: float) -> None:
        super().__init__(role)
        self._seconds = seconds

    async def work(self, reads: Reads) -> HopOutcome[BaseModel]:
        """Return the fixed writes, after a while; poison kills who searches for it."""
        if reads.text == POISON and self.role is Role.SEARCH:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._seconds > 0:
            await asyncio.sleep(self._seconds * random.uniform(1 - SPREAD, 1 + SPREAD))
        return await super().work(reads)


class Watched:
    """Does what its handler does, and counts in Redis what is not a first start."""

    def __init__(self, handler: Handler, url: str) -> None:
        self.role = handler.role
        self._handler = handler
        self._client = connect(url)

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        """Handle it."""
        if delivery.count > 1 or delivery.starts > 1 or delivery.failures > 0:
            await self._client.incr(AGAIN)
        return await self._handler.handle(delivery, envelope)


def process_of(fleet: WorkerFleet) -> WorkerProcess:
    """Return the workers of one process."""
    memory = RedisMemory(connect(fleet.url), shards=1, ttl_seconds=int(fleet.ttl_seconds))
    manager = Manager(FLOWS, memory, NoTexts(), limits=Limits(), quality_threshold=0.7)
    specs = [
        WorkerSpec(_agent(fleet, role), fleet.tight.get(role.value, fleet.places))
        for role in WRITES
    ]
    if fleet.quarantines:
        make, roles = partial(make_handler, fleet), [role.value for role in WRITES]
        quarantine = Quarantine(make, roles, make_poison_notice, preload=[__name__])
        specs = [replace(one, handler=IsolatedHandler(one.handler, quarantine)) for one in specs]
    specs.insert(0, WorkerSpec(manager, 4 * fleet.places))
    return WorkerProcess(
        fleet.broker(),
        [replace(one, handler=Watched(one.handler, fleet.url)) for one in specs],
        renewal=LeaseRenewal(fleet.broker, lease_seconds=fleet.lease_seconds),
        meter=SilentMeter(),
        grace_seconds=fleet.grace_seconds,
    )


def _agent(fleet: WorkerFleet, role: Role) -> AgentHandler:
    agent: Agent[Reads, BaseModel] = WaitingAgent(role, fleet.waits.get(role.value, 0.0))
    return AgentHandler(agent, limit_seconds=30)


@asynccontextmanager
async def make_handler(fleet: WorkerFleet, role: str) -> AsyncIterator[Handler]:
    """Make the handler of a role for a suspect."""
    yield _agent(fleet, Role(role))


async def _work(fleet: WorkerFleet) -> None:
    collect_rarely()
    stop = asyncio.Event()
    async with stop_on_signals(stop), process_of(fleet).running():
        await connect(fleet.url).incr(READY)
        await stop.wait()


def work(fleet: WorkerFleet) -> None:
    """Work until SIGTERM."""
    with suppress(KeyboardInterrupt):
        asyncio.run(_work(fleet))


class Workers:
    """The worker processes that run now."""

    def __init__(self, fleet: WorkerFleet) -> None:
        self._fleet = fleet
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["benchmarks.speed.endurance.worker_fleet"])
        self._client = connect(fleet.url)
        self._started = 0
        self.running: list[ForkServerProcess] = []

    async def start(self) -> ForkServerProcess:
        """Start one more, and return it once it works."""
        # Only a process that is no daemon may have children.
        daemon = not self._fleet.quarantines
        process = self._context.Process(target=work, args=(self._fleet,), daemon=daemon)
        self._started += 1
        await asyncio.to_thread(process.start)
        while int(await self._client.get(READY) or 0) < self._started:
            if not process.is_alive():
                raise SystemExit(f"expected a worker that works, found exit {process.exitcode}")
            await asyncio.sleep(0.01)
        self.running.append(process)
        return process

    async def stop(self, process: ForkServerProcess, *, kill: bool = False) -> None:
        """Stop one with SIGTERM, or SIGKILL; returns once it is gone."""
        self.running.remove(process)
        if kill:
            process.kill()
        else:
            process.terminate()
        await asyncio.to_thread(process.join, STOP_SECONDS)
        if process.exitcode is None:
            process.kill()
            raise SystemExit(f"expected a worker that ends on SIGTERM within {STOP_SECONDS:g} s")
        process.close()

    async def replace_oldest(self, *, kill: bool = False) -> None:
        """Start a new one, then stop the oldest."""
        oldest = self.running[0]
        await self.start()
        await self.stop(oldest, kill=kill)

    async def replace_dead(self) -> int:
        """Start a new one for each that died; return how many."""
        dead = [process for process in self.running if not process.is_alive()]
        for process in dead:
            self.running.remove(process)
            process.close()
            await self.start()
        return len(dead)

    async def close(self) -> None:
        """Stop all."""
        for process in list(self.running):
            await self.stop(process)
        await self._client.aclose()
