"""Agents that follow a script, and a desk at which they work."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic import BaseModel, ConfigDict

from agents.agent import Agent
from agents.roster import AGENTS
from broker.lease_renewer import InLoopRenewal, LeaseRenewal
from broker.redis_broker import RedisBroker
from envelope.conversation import Pause, Preferences, Turn
from envelope.outcome import Wrote
from envelope.role import Role
from envelope.run import Run
from gateway.desk import Desk
from manager.flow import Flow
from manager.flows import FLOWS, NEWEST
from manager.machine import Limits
from manager.manager import ManagerAgent
from memory.conversation import RedisMemory, RedisPeople
from tests.support.flow_path import plain_writes
from worker.agent_handler import AgentHandler, make_poison_notice
from worker.call_recording import HopCalls
from worker.drafts import RunDrafts
from worker.port import SilentMeter, WorkerMeter
from worker.process import WorkerProcess, WorkerSpec
from worker.shutdown import GracePeriod

WRITES: dict[Role, dict[str, object]] = {
    **{spec.role: plain_writes(spec.role) for spec in AGENTS},
    Role.LANG: {"language": "en", "confidence": 0.95},
    Role.TRANSLATION: {"text_eng": "How do I add a rule?"},
    Role.ESSENCE: {"canonical_question": "How do I add a rule?", "context_type": "new_topic"},
    Role.GUARDRAILS: {"within_scope": True},
    Role.SEARCH: {"search_quality": "good"},
    Role.RESPONSE: {"response": "Open Routing [1]."},
    Role.QUALITY: {"quality_score": 0.9, "quality_decision": "approve"},
    Role.CLARIFICATION: {"response": "Which one do you mean?", "suggested_actions": []},
    Role.COMMAND: {"response": "Done."},
}
"""What each agent writes when nothing else is scripted."""


class Reads(BaseModel):
    """What the scripts look at."""

    model_config = ConfigDict(frozen=True)

    text: str = ""
    history: tuple[Turn, ...] = ()
    open_pause: Pause | None = None
    preferences: Preferences = Preferences()
    attempt: int = 0
    quality_analysis: str = ""
    shows_drafts: bool = False
    clarification_reason: str | None = None
    clarification_message: str = ""
    asking_stage: str = ""


class Writes(BaseModel):
    """Whatever the script says."""

    model_config = ConfigDict(extra="allow", frozen=True)


Act = Callable[["Reads"], Any]


class ScriptedAgent(Agent[Reads, Writes]):
    """Does what its script says, once each, then writes what its role always writes."""

    reads = Reads
    writes = Writes

    def __init__(self, role: Role, script: "Script") -> None:
        self.role = role  # type: ignore[misc] # one class plays every role
        self._script = script

    async def work(self, reads: Reads) -> Any:
        self._script.seen[self.role].append(reads.model_dump())
        self._script.runs[self.role] = self.run
        acts = self._script.acts[self.role]
        act = acts.pop(0) if acts else {}
        if callable(act):
            act = act(reads)
        if asyncio.iscoroutine(act):
            act = await act
        if isinstance(act, Exception):
            raise act
        if isinstance(act, dict):
            return Wrote(Writes.model_validate({**WRITES[self.role], **act}))
        return act


@dataclass(frozen=True)
class HeldAct:
    """What a role does once it may go on; `reached` is set as soon as it is there."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    goes_on: asyncio.Event = field(default_factory=asyncio.Event)


class Script:
    """What each role does, in order; and what it saw."""

    def __init__(self) -> None:
        self.acts: defaultdict[Role, list[Any]] = defaultdict(list)
        self.seen: defaultdict[Role, list[dict[str, Any]]] = defaultdict(list)
        self.runs: dict[Role, Run] = {}
        """The last run of each role."""

    def next(self, role: Role, *acts: Any) -> None:
        """Queue acts: writes to add, an exception, an outcome, or a function of the reads."""
        self.acts[role].extend(acts)

    def hold(self, role: Role, **writes: Any) -> HeldAct:
        """Let a role wait when it is reached, and write this when it may go on."""
        held = HeldAct()

        async def wait() -> dict[str, Any]:
            held.reached.set()
            await held.goes_on.wait()
            return writes

        self.next(role, lambda _reads: wait())
        return held

    def ask_back(
        self, role: Role = Role.GUARDRAILS, *, asked: str = "", **clarification: Any
    ) -> None:
        """Let the next question be asked back by a role, in words and with options."""
        asks = {"needs_clarification": True, "clarification_reason": "ambiguous_query"}
        self.next(role, {**asks, "canonical_question": asked} if asked else asks)
        if clarification:
            self.next(Role.CLARIFICATION, clarification)


class FixedTexts:
    """Fixed texts that name themselves."""

    languages = ("en",)

    def text(self, key: str, language: str, **values: str) -> str:
        return f"{key}/{language}"


class WorkerHarness:
    """A desk with all of its workers on one Redis."""

    def __init__(
        self, make_client: Callable[[], Any], *, played: bool, lease_seconds: float = 5.0
    ) -> None:
        self._renewal = InLoopRenewal if played else LeaseRenewal
        self._make_client = make_client
        self.lease_seconds = lease_seconds
        self.script = Script()
        self.client = make_client()
        self.broker = self.make_broker()
        self.memory = RedisMemory(self.client, shards=1)
        self.limits = Limits()
        self.flows: Mapping[str, Flow] = dict(FLOWS)
        self.further_agents: list[Agent[Any, Any]] = []

    def make_broker(self, **options: Any) -> RedisBroker:
        made: dict[str, Any] = {
            "lease_seconds": self.lease_seconds,
            "backoff_seconds": 0.02,
            "make_notice": make_poison_notice,
        }
        return RedisBroker(self._make_client(), **{**made, **options})

    def desk(
        self,
        *,
        deadline_seconds: float = 20.0,
        result_list: str = "",
        flow: str = NEWEST["search"],
        keep_seconds: float | None = None,
    ) -> Desk:
        return Desk(
            self.broker.producer,
            self.broker.replies,
            tenant="acme",
            assistant="docs",
            channel="http",
            deadline_seconds=deadline_seconds,
            words=lambda key, language: f"{key}/{language}",
            result_list=result_list,
            flow=flow,
            keep_seconds=keep_seconds,
        )

    def manager(self, kind: type[ManagerAgent] = ManagerAgent) -> ManagerAgent:
        return kind(
            self.flows,
            self.memory,
            FixedTexts(),
            limits=self.limits,
            quality_threshold=0.7,
            people=RedisPeople(self.client, lambda _question: 3600),
        )

    def process(
        self,
        *,
        slots: int = 8,
        limit_seconds: float = 10.0,
        manager: ManagerAgent | None = None,
        meter: WorkerMeter | None = None,
        grace_seconds: float = 2.0,
        report_waiting: Callable[[], None] = lambda: None,
    ) -> WorkerProcess:
        further = {agent.role for agent in self.further_agents}
        agents: list[Agent[Any, Any]] = [
            ScriptedAgent(role, self.script) for role in WRITES if role not in further
        ]
        agents += self.further_agents
        manager = manager or self.manager()
        meter = meter or SilentMeter()
        specs = [WorkerSpec(manager, slots)]
        specs += [
            WorkerSpec(
                AgentHandler(
                    agent,
                    limit_seconds=limit_seconds,
                    recorded=HopCalls(None),
                    open_drafts=partial(RunDrafts, self.broker.drafts, lambda _role, _reason: None),
                ),
                slots,
            )
            for agent in agents
        ]
        return WorkerProcess(
            self.broker,
            specs,
            renewal=self._renewal(self.make_broker, lease_seconds=self.lease_seconds),
            meter=meter,
            grace=GracePeriod(grace_seconds),
            report_waiting=report_waiting,
        )

    @asynccontextmanager
    async def open(self, **options: Any) -> AsyncIterator[Desk]:
        """Work while inside."""
        async with self.process(**options).running():
            yield self.desk()

    async def close(self) -> None:
        await self.broker.close()
        await self.client.aclose()
