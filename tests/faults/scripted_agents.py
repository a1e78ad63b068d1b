"""Agents that do what the text of a question says, a model that is billed, and a ledger of both.

A text is `<what> <number>`: an agent knows nothing but its reads, so whichever process works on a
question does the same with it.
"""

import asyncio
import os
import random
import signal
import time
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from agents.agent import Agent
from broker.lease_renewer import LeaseRenewal, MakeBroker
from broker.values import Delivery, Retry, Settlement
from envelope.envelope import Envelope
from envelope.memory_access import MemoryRead
from envelope.outcome import RetryAfter, Wrote
from envelope.question import Question
from envelope.role import Role
from envelope.run import OUTSIDE, Run
from llm.port import I, Model, ModelAnswer, O, Task, TextListener, Usage
from llm.stored_model import CallKey, CallStore
from memory.errors import MemoryUnavailableError
from tests.faults.ledger import Ledger
from tests.support.branching_flow import ToolCall
from tests.support.swarm_agents import Act
from tests.support.worker_harness import WRITES, Writes
from worker.port import Handler, PrefetchesMemory
from worker.worker import LEASE_LOST

ASKING = (Role.ESSENCE, Role.RESPONSE, Role.QUALITY)
"""The roles that ask a model, once per run."""
KEEPS_TURNS = 6
"""So few that a conversation of four questions outgrows its history."""
LONGEST_CALL_SECONDS = 0.004
FLAKY_SHARE = 0.3
WAIT_SECONDS = 0.05
SLOW_SECONDS = 600.0
LONG_TEXT = "in English " * 200
"""So long that frames are kept from then on, and travel in part."""

CHANGES: dict[tuple[Role, str], dict[str, object]] = {
    (Role.ESSENCE, "leave"): {"decided_by": "own_call"},
    (Role.GUARDRAILS, "outside"): {"within_scope": False},
    (Role.GUARDRAILS, "unclear"): {
        "needs_clarification": True,
        "clarification_reason": "missing_details",
    },
    (Role.COMMAND, "forget"): {"forget": "all"},
    (Role.COMMAND, "note"): {"remember_preferences": {"style": "shorter"}},
}
"""What a role writes besides what it always writes, by what the text says."""
DOUBTS: dict[str, object] = {"quality_score": 0.4, "quality_decision": "research"}


class Reads(BaseModel):
    """What the agents look at."""

    model_config = ConfigDict(frozen=True)

    text: str
    attempt: int = 0

    @property
    def what(self) -> str:
        """What this question is there for."""
        return self.text.split(maxsplit=1)[0]


class Asked(BaseModel):
    """What the model is asked."""

    text: str


class Said(BaseModel):
    """What the model says."""

    text: str


@dataclass(slots=True)
class Bill:
    """A model that takes a moment and is paid for every call."""

    ledger: Ledger
    name: str = "billed"

    async def ask(
        self,
        task: Task[I, O],
        inputs: I,
        run: Run = OUTSIDE,
        *,
        skip: int = 0,
        listener: TextListener | None = None,
    ) -> ModelAnswer[O]:
        self.ledger.note("billed", call=_call(task.name, run))
        await asyncio.sleep(random.uniform(0.0, LONGEST_CALL_SECONDS))  # noqa: TID251 - the agent or model works for this long
        said = task.output.model_validate(inputs.model_dump())
        return ModelAnswer(said, self.name, Usage(1, 1), None, 1.0)


@dataclass(frozen=True, slots=True)
class NotingCalls:
    """The store of paid calls, and a note of who looks into it and of what it has now."""

    calls: CallStore
    ledger: Ledger

    async def get(self, key: CallKey) -> bytes | None:
        self.ledger.note("looked", call=_name_of(key))
        return await self.calls.get(key)

    async def put(self, key: CallKey, answer: bytes) -> None:
        await self.calls.put(key, answer)
        self.ledger.note("stored", call=_name_of(key))


class FollowingAgent(Agent[Reads, Writes]):
    """Does what the text says, then writes what its role always writes."""

    reads = Reads
    writes = Writes

    def __init__(self, role: Role, model: Model, *, takes_seconds: float) -> None:
        self.role = role  # type: ignore[misc] # one class plays every role
        self._model = model
        self._takes_seconds = takes_seconds
        self._task = Task(role.value, Asked, Said)

    async def work(self, reads: Reads) -> Any:
        if self.role in ASKING:
            await self._model.ask(self._task, Asked(text=reads.text), self.run)
        if self.role is Role.SEARCH and reads.what == "wait" and random.random() < FLAKY_SHARE:
            return RetryAfter(WAIT_SECONDS, "not yet")
        if self.role is Role.SEARCH:
            await self._act(reads.what)
        return Wrote(Writes.model_validate(self._writes(reads)))

    async def _act(self, what: str) -> None:
        match what:
            case "flaky" if random.random() < FLAKY_SHARE:
                raise ValueError("this one fails now and then")
            case "poison":
                os.kill(os.getpid(), signal.SIGKILL)
            case "block":
                time.sleep(self._takes_seconds)  # noqa: ASYNC251, TID251 - blocks the event loop
            case "slow":
                await asyncio.sleep(SLOW_SECONDS)  # noqa: TID251 - the agent or model works for this long
            case "long":
                await asyncio.sleep(self._takes_seconds)  # noqa: TID251 - the agent or model works for this long

    def _writes(self, reads: Reads) -> dict[str, object]:
        if self.role is Role.RESPONSE:
            return {"response": reads.text}
        if self.role is Role.TRANSLATION:
            return {**WRITES[self.role], "text_eng": LONG_TEXT}
        again = self.role is Role.QUALITY and reads.what == "again" and reads.attempt == 0
        changes = DOUBTS if again else CHANGES.get((self.role, reads.what), {})
        return {**WRITES[self.role], **changes}


async def act_as_tool(call: ToolCall) -> Any:
    """Do in a branch what the text says: wait for a moment, fail now and then, ask for a retry."""
    await asyncio.sleep(random.uniform(0.0, LONGEST_CALL_SECONDS))  # noqa: TID251 - the agent or model works for this long
    if call.what == "flaky" and random.random() < FLAKY_SHARE:
        raise ValueError("this one fails now and then")
    if call.what == "wait" and random.random() < FLAKY_SHARE:
        return RetryAfter(WAIT_SECONDS, "not yet")
    return None


class NotingHandler:
    """Runs its handler, and notes every start and what became of it."""

    def __init__(self, handler: Handler, ledger: Ledger) -> None:
        self.role = handler.role
        self._handler = handler
        self._ledger = ledger

    def prefetch_memory(self, question: Question) -> MemoryRead | None:
        """Return what is to be read for the handler."""
        return (
            self._handler.prefetch_memory(question)
            if isinstance(self._handler, PrefetchesMemory)
            else None
        )

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        run = {
            "name": envelope.message_id,
            "role": self.role.value,
            "hop": f"{envelope.branch} {envelope.process_count}.{envelope.retries}".strip(),
            "entry": delivery.entry_id,
            "count": delivery.count,
        }
        self._ledger.note("started", **run)
        if self.role is Role.MANAGER and envelope.hop is None and delivery.decoded is not None:
            # It never travelled: this process let it in.
            self._ledger.note("handed over", name=envelope.message_id)
        try:
            settlement = await self._handler.handle(delivery, envelope)
        except asyncio.CancelledError:
            self._ledger.note("cancelled", **run)
            raise
        except MemoryUnavailableError:
            # The worker keeps the entry, and starts its handler again once Redis answers.
            self._ledger.note("set back", **run)
            raise
        if isinstance(settlement, Retry):
            self._ledger.note("put off", **run)
        return settlement


@dataclass(frozen=True, slots=True)
class NotingMeter:
    """Notes the counts that only faults raise; see `worker.port.WorkerMeter`."""

    ledger: Ledger

    def count_hop(self, role: str, outcome: str, seconds: float) -> None:
        if outcome == LEASE_LOST:
            self.ledger.note("refused", role=role)

    def count_lost(self, role: str) -> None:
        self.ledger.note("lost", role=role)

    def count_redelivery(self, role: str) -> None:
        self.ledger.note("redelivered", role=role)

    def count_fallback(self, role: str, reason: str) -> None:
        self.ledger.note("fallback", role=role, what=reason)

    def count_failure(self, role: str, error: str) -> None:
        self.ledger.note("failed", role=role, what=error)


class NotingRenewal(LeaseRenewal):
    """Renews leases, and notes who was handed an entry that somebody had before."""

    def __init__(self, make_broker: MakeBroker, ledger: Ledger, *, lease_seconds: float) -> None:
        super().__init__(make_broker, lease_seconds=lease_seconds)
        self._ledger = ledger

    def hold(self, delivery: Delivery) -> None:
        if delivery.starts > 1:
            name, role = delivery.question.message_id, delivery.role
            self._ledger.note("held", name=name, role=role, starts=delivery.starts)
        super().hold(delivery)


def _call(task: str, run: Run) -> str:
    place = f"{task}@{run.branch}" if run.branch else task
    return f"{run.find_question().message_id}/{place}/{run.attempt}"


def _name_of(key: CallKey) -> str:
    return f"{key.question.message_id}/{key.stage}/{key.attempt}"


@dataclass(frozen=True, slots=True)
class SwarmScript:
    """The swarm of each question; times in seconds.

    `raising` and `hanging` are ids of workers. With `holds` the process keeps whatever worker it
    takes. The others take `takes_seconds`, and are paid at the end. Rounds end after
    `join_seconds`, None: with three quarters of the remaining time.
    """

    workers: int = 8
    parallel: int = 8
    retries: int = 3
    raising: tuple[str, ...] = ()
    hanging: tuple[str, ...] = ()
    holds: bool = False
    takes_seconds: float = 0.0
    join_seconds: float | None = None


class PaidWork(BaseModel):
    """What a worker asks the model, and what the model says."""

    worker: str


def make_act(script: SwarmScript, model: Model, ledger: Ledger) -> Act:
    """Return what a worker does; the ledger has a line when it begins and when it is done."""

    async def act(name: str, _began: int, run: Run) -> Any:
        where = {"worker": name, "name": run.find_question().message_id}
        ledger.note("work begun", **where)
        if script.holds or name in script.hanging:
            await asyncio.Event().wait()
        if name in script.raising:
            raise ValueError("this one fails always")
        await asyncio.sleep(script.takes_seconds)  # noqa: TID251 - the agent or model works for this long
        task = Task(f"work {name}", PaidWork, PaidWork)
        await model.ask(task, PaidWork(worker=name), run)
        ledger.note("work done", **where)
        return None

    return act
