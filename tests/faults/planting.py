"""Plants one fault in the runs of a process: in what is delivered, written or answered.

A fault of delivery changes the payload between the manager and the agent, as a lost merge, a wrong
frame or a damaged store would. A fault of writing changes what an agent returns, as an agent does
that claims what it did not do. The wrong model is a server that answers with another model.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from agents.agent import Agent
from agents.roster import SPECS
from broker.journal_events import JournalEvent
from broker.values import Delivery, Settlement
from envelope.envelope import Envelope
from envelope.evidence import EVIDENCE, HANDED_OVER, EvidenceForm
from envelope.outcome import Wrote
from envelope.run import OUTSIDE, Run
from llm.port import (
    I,
    ModelAnswer,
    ModelCall,
    ModelStep,
    O,
    Task,
    TextListener,
    ToolConversation,
    Usage,
    record,
)
from manager.evidence_checks import FaultKind
from manager.manager import ManagerAgent
from tests.support.quoting_model import QuotingModel
from worker.agent_handler import AgentHandler

REQUESTED = "small-model@example"
JOIN = "join"
"""Stands for the join of branches, at the place of a role."""
DATED, OTHER = "small-model-2026-05-01", "cheap-model"
Payload = dict[str, Any]


class NamedModel:
    """Searches and quotes under the name of a model, as a vendor's server does.

    `wrong_task` is the task for which another model answers.
    """

    name = REQUESTED

    def __init__(self) -> None:
        self._rules = QuotingModel()
        self.wrong_task = ""
        self.wrong_calls = 0

    async def ask(
        self,
        task: Task[I, O],
        inputs: I,
        run: Run = OUTSIDE,
        *,
        skip: int = 0,
        listener: TextListener | None = None,
    ) -> ModelAnswer[O]:
        reply = await self._rules.ask(task, inputs, skip=skip)
        self._record(task.name)
        return replace(reply, model=REQUESTED)

    async def converse(
        self, conversation: ToolConversation, run: Run = OUTSIDE, *, skip: int = 0
    ) -> ModelStep:
        result = await self._rules.converse(conversation, skip=skip)
        self._record(conversation.task)
        return result

    def _record(self, task: str) -> None:
        is_wrong = task == self.wrong_task
        self.wrong_calls += is_wrong
        answered = OTHER if is_wrong else DATED
        record(ModelCall(task, REQUESTED, Usage(), Decimal(0), 0.0, answered_by=answered))


@dataclass
class Planted:
    """One fault at one role; `count` is how often it was planted, `only_once` at most once."""

    kind: FaultKind
    role: str
    count: int = 0
    seen: list[Payload] = field(default_factory=list)

    def change_delivery(self, payload: Payload) -> Payload | None:
        """Return the payload with the fault; None where it cannot be planted here."""
        if self.kind is FaultKind.LOST_RESULT:
            return lose(payload, self._read)
        if self.kind is FaultKind.ALTERED_RESULT:
            return alter(payload, self._read)
        if self.kind is FaultKind.STALE_CONTEXT:
            return make_stale(payload, self._read, self.seen)
        return None

    def change_writes(self, writes: Payload) -> Payload | None:
        """Return the writes with the fault; None where it cannot be planted here."""
        if self.kind is FaultKind.INVENTED_SOURCE:
            return invent(writes)
        if self.kind is FaultKind.SKIPPED_WORK:
            return claim(writes)
        if self.kind is FaultKind.LOST_RESULT:
            return drop_result(writes)
        return None

    @property
    def _read(self) -> frozenset[str]:
        return frozenset(SPECS[self.role].load_class().reads.model_fields)


def lose(payload: Payload, read: frozenset[str]) -> Payload | None:
    """Lose one result of several, or the last passage that was found."""
    changed = deepcopy(payload)
    if "multi_tool_results" in read and changed.get("multi_tool_results"):
        changed["multi_tool_results"].popitem()
        return changed
    if "worker_outputs" in read and changed.get("worker_outputs"):
        changed["worker_outputs"].popitem()
        return changed
    handed = next((name for name in HANDED_OVER if name in read and changed.get(name)), None)
    if handed is not None:
        return {**changed, handed: None}
    for name in ("search_results", "source_references", "sources_used"):
        if name in read and changed.get(name):
            changed[name] = changed[name][:-1]
            return changed
    return None


_ALTERED = (
    "tool_call", "worker_task", "multi_tool_results", "worker_outputs", "swarm_plan",
    "search_context", "search_results", "response",
)  # fmt: skip


def alter(payload: Payload, read: frozenset[str]) -> Payload | None:
    """Change one digit or word of the evidence."""
    changed = deepcopy(payload)
    for name in _ALTERED:
        if name not in read or not changed.get(name):
            continue
        value = changed[name]
        if isinstance(value, str):
            changed[name] = f"not {value}"
        elif name == "tool_call":
            value["arguments"] = {**value["arguments"], "limit": 1}
        elif name == "worker_task":
            value["worker"]["objective"] = f"not {value['worker']['objective']}"
        elif name == "swarm_plan":
            value["workers"][0]["objective"] = "another objective"
        elif isinstance(value, dict):
            one = next(iter(value.values()))
            one["text"] = f"not {one.get('text')}"
        else:
            value[0]["title"] = "another title"
        return changed
    return None


def make_stale(payload: Payload, read: frozenset[str], seen: list[Payload]) -> Payload | None:
    """Deliver evidence as it was before: of an earlier hop, or of an earlier branch."""
    for name in EVIDENCE.keys() & read & payload.keys():
        is_whole = EVIDENCE[name][0] is EvidenceForm.WHOLE
        if name in ("tool_call", "worker_task"):
            others = (item[name] for item in seen if item.get(name) not in (None, payload[name]))
            other = next(others, None)
            if other is not None:
                return {**payload, name: other}
        elif is_whole and payload[name] and name != "canonical_question":
            before = next(
                (item.get(name) for item in seen if item.get(name) != payload[name]), None
            )
            return {**payload, name: before}
    return None


def invent(writes: Payload) -> Payload | None:
    """Name a source that nobody found."""
    for output in (writes.get("worker_outputs") or {}).values():
        if output.get("passages"):
            changed = deepcopy(writes)
            first = next(
                output for output in changed["worker_outputs"].values() if output.get("passages")
            )
            first["passages"][0]["citation"]["chunk_id"] = "invented#7"
            return changed
    for name in ("sources_used", "source_references"):
        if writes.get(name):
            first = {**writes[name][0], "chunk_id": "invented#7", "title": "An invented page"}
            return {**writes, name: [first, *writes[name][1:]]}
    return None


def claim(writes: Payload) -> Payload | None:
    """Claim the work of a model that was not asked, or a result of a call that was not made."""
    changed = deepcopy(writes)
    if changed.get("multi_tool_results") and changed.get("tool_executions"):
        changed["tool_executions"] = []
        return changed
    for holder, name in (
        (changed, "answer_model"),
        (changed.get("triage"), "decided_by"),
        (changed.get("routing"), "decided_by"),
        (changed.get("validation_result"), "judge"),
    ):
        if isinstance(holder, dict) and holder.get(name):
            holder[name] = "thorough-model@example"
            return changed
    return None


def drop_result(writes: Payload) -> Payload | None:
    """Make a call and lose its result."""
    if writes.get("multi_tool_results") and writes.get("tool_executions"):
        return {**writes, "multi_tool_results": {}}
    return None


def change_gathered(gathered: Payload, kind: FaultKind) -> Payload | None:
    """Return what a join received with a fault in the first result; None for other kinds."""
    changed = deepcopy(gathered)
    for result in changed.values():
        writes = result.get("writes", {})
        results = writes.get("multi_tool_results") or writes.get("worker_outputs")
        if not results:
            continue
        if kind is FaultKind.LOST_RESULT:
            results.clear()
            return changed
        if kind is FaultKind.ALTERED_RESULT:
            for item in results.values():
                item["text"] = f"not {item.get('text')}"
            return changed
        if kind is FaultKind.SKIPPED_WORK:
            result["evidence_log"] = []
            return changed
    return None


@contextmanager
def plant(planted: Planted) -> Iterator[None]:
    """Plant the fault in this process while inside, once a question."""
    if planted.role == JOIN:
        with _plant_at_joins(planted):
            yield
    else:
        with _plant_in_deliveries(planted), _plant_in_writes(planted):
            yield


@contextmanager
def _plant_in_deliveries(planted: Planted) -> Iterator[None]:
    handle = AgentHandler.handle

    async def handle_planted(
        self: AgentHandler, delivery: Delivery, envelope: Envelope
    ) -> Settlement:
        payload = dict(envelope.payload)
        if self.role.value == planted.role and not planted.count:
            changed = planted.change_delivery(payload)
            if changed is not None:
                planted.count += 1
                envelope = envelope.replace(payload=changed)
        planted.seen.append(payload)
        return await handle(self, delivery, envelope)

    AgentHandler.handle = handle_planted  # type: ignore[method-assign] # restored below
    try:
        yield
    finally:
        AgentHandler.handle = handle  # type: ignore[method-assign] # as above


@contextmanager
def _plant_in_writes(planted: Planted) -> Iterator[None]:
    kind = SPECS[planted.role].load_class()
    work: Any = kind.work

    async def work_planted(self: Agent[Any, Any], reads: Any) -> Any:
        outcome = await work(self, reads)
        if isinstance(outcome, Wrote) and not planted.count:
            named = outcome.writes.model_fields_set
            changed = planted.change_writes(outcome.writes.model_dump(mode="json", include=named))
            if changed is not None:
                planted.count += 1
                return Wrote(self.writes.model_validate(changed))
        return outcome

    kind.work = work_planted  # type: ignore[method-assign] # restored below
    try:
        yield
    finally:
        kind.work = work  # type: ignore[method-assign] # as above


@contextmanager
def _plant_at_joins(planted: Planted) -> Iterator[None]:
    decide = ManagerAgent.decide

    async def decide_planted(
        self: ManagerAgent,
        delivery: Delivery,
        envelope: Envelope,
        remaining_seconds: float,
        journal: Sequence[JournalEvent] = (),
    ) -> Settlement:
        if envelope.gathered and not planted.count:
            gathered = change_gathered(envelope.gathered, planted.kind)
            if gathered is not None:
                planted.count += 1
                envelope = envelope.with_gathered(gathered)
        return await decide(self, delivery, envelope, remaining_seconds, journal)

    ManagerAgent.decide = decide_planted  # type: ignore[method-assign] # restored below
    try:
        yield
    finally:
        ManagerAgent.decide = decide  # type: ignore[method-assign] # as above
