"""Runs an agent on an envelope: passes its typed reads, merges its typed writes, and returns the
envelope to the manager. `AgentHandler.handle` lists the steps of a run.
"""

import asyncio
import time
from collections.abc import (
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import from_json

from agents.agent import Agent
from agents.roster import SPECS
from broker.journal_events import EncodedEvent, JournalEvent
from broker.keys import stream_key
from broker.values import Delivery, Fields, Forward, FrameSend, JournalEntry, Retry, Settlement
from envelope.encoding import brief, to_json
from envelope.envelope import ContractError, DecodeError, Envelope, Hop, decode
from envelope.evidence import find_evidence_names, record_evidence
from envelope.outcome import GaveUp, RetryAfter, Wrote
from envelope.payload import MERGE_RULES, SYSTEM_ATTRIBUTES, merge_writes
from envelope.question import Question
from envelope.role import INGESTING, Role
from envelope.run import DraftPublisher, Run
from memory.errors import MemoryUnavailableError, QuestionEndedError
from worker.errors import HandlerTimeoutError, RunFailedError
from worker.model_usage import add_model_usage, find_exhausted_budget

MANAGER = Role.MANAGER.value
UNROUTED = frozenset({MANAGER, *INGESTING})
"""Roles whose failures no manager can route: the question ends with the reply that it keeps."""
RESERVE_SECONDS = 0.5
"""The part of a question's time that is left for returning the envelope."""
SECONDS_TO_SEND = 1.0
"""The time that an agent has after a model call that took too long, to send what it has; a tenth of
a shorter limit."""
LEAST_SECONDS = 0.01
LONGEST_WAIT_SHARE = 0.5
"""The longest wait for another attempt, as a share of the time that is left: the attempt and the
steps after it need the rest."""

AnyAgent = Agent[Any, Any]
Assistant = tuple[str, str]
"""Tenant and assistant."""
UNSERVED: object = GaveUp(
    "this process does not serve the assistant of the question: name it in ASSISTANTS"
)
"""The outcome for an assistant whose documents this process does not have."""

Calls = Callable[[], tuple[JournalEvent, ...]]
CallRecorder = Callable[[Run], AbstractContextManager[Calls]]
"""Collects the model calls that are made inside the block for a run."""


def no_events() -> tuple[JournalEvent, ...]:
    """Return no model calls."""
    return ()


_NO_CALLS = nullcontext[Calls](no_events)
OnWritten = Callable[[str, Fields], None]
"""Receives what a role wrote, and counts the fallbacks in it."""
ReadIndexVersion = Callable[[Assistant], Awaitable[str]]
"""Returns the version of the index of an assistant; "" if there is none."""

OpenDrafts = Callable[[Delivery], DraftPublisher]
"""Returns the publisher of drafts for one run."""


def no_calls(_run: Run) -> AbstractContextManager[Calls]:
    """Collect nothing: for agents that ask no model."""
    return _NO_CALLS


def ignore_writes(_role: str, _writes: Fields) -> None:
    """Count nothing."""


class AgentHandler:
    """The handler of one role; `limit_seconds` bounds one run of its agent.

    `assistants` holds the agent of each assistant that this process serves; None: `agent` works
    for every assistant. `read_index` is for a role whose index version is evidence. Without
    `open_drafts` no drafts are shown. A run always returns over the stream of the manager, which
    alone decides the next role.
    """

    def __init__(
        self,
        agent: AnyAgent,
        *,
        limit_seconds: float,
        assistants: Mapping[Assistant, AnyAgent] | None = None,
        recorded: CallRecorder = no_calls,
        on_written: OnWritten = ignore_writes,
        read_index: ReadIndexVersion | None = None,
        open_drafts: OpenDrafts | None = None,
    ) -> None:
        self.role = agent.role
        self._name = agent.role.value
        self._agent = agent
        self._assistants = assistants
        self._limit_seconds = limit_seconds
        self._recorded = recorded
        self._on_written = on_written
        self._system_reads = SYSTEM_ATTRIBUTES.intersection(agent.reads.model_fields)
        self._reads = frozenset(agent.reads.model_fields) - self._system_reads
        self._evidence = find_evidence_names(self._reads)
        self._read_index = read_index
        self._open_drafts = open_drafts
        self._may_write = SPECS[self._name].writes

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        """Return the settlement of one run; raises `RunFailedError` when the agent raises.

        These are all steps of a run, in their order: the agent of the assistant, its work within
        the time limit and with its model calls recorded, the check of what it wrote, the envelope
        for the manager's stream, and the journal.
        """
        started = time.perf_counter()
        agent = self._find_agent(delivery.question)
        index = ""
        if self._read_index is not None:
            index = await self._read_index((delivery.question.tenant, delivery.question.assistant))
        if agent is None:
            outcome, calls = UNSERVED, no_events
        else:
            outcome, calls = await self._run(agent, delivery, envelope)
        seconds = time.perf_counter() - started
        if isinstance(outcome, RetryAfter):
            if outcome.seconds < delivery.remaining_seconds * LONGEST_WAIT_SHARE:
                spent = envelope.total_processing_time + seconds
                frame = envelope.replace(total_processing_time=spent)
                return Retry(frame.encode(), brief(outcome.reason), outcome.seconds, calls())
            outcome = _end_waiting(outcome)
        writes, hop = self._judge(outcome)
        self._on_written(self._name, writes)
        made = calls()
        journal = (*made, self._encode_run(envelope.branch, hop, writes, seconds))
        models = _list_models(made) if made else ()
        evidence = record_evidence(envelope, self._name, self._evidence, writes, models, index)
        written = {**writes, **_summarise_calls(envelope.payload, made), **evidence}
        handed = reply_to_manager(delivery, envelope, hop, written, seconds)
        return Forward(sends=(FrameSend(MANAGER, decoded=handed),), journal=journal)

    def _find_agent(self, question: Question) -> AnyAgent | None:
        """Return the agent of the question's assistant; None if this process does not serve it."""
        if self._assistants is None:
            return self._agent
        return self._assistants.get((question.tenant, question.assistant))

    async def _run(
        self, agent: AnyAgent, delivery: Delivery, envelope: Envelope
    ) -> tuple[object, Calls]:
        """Return the outcome of the agent's work, and a function that returns its model calls."""
        reads = self._read(envelope)
        attempt = envelope.payload.get("attempt")
        attempt = attempt if isinstance(attempt, int) else 0
        limit = min(
            self._limit_seconds, max(delivery.remaining_seconds - RESERVE_SECONDS, LEAST_SECONDS)
        )
        run = Run(
            delivery.question,
            self._name,
            attempt,
            envelope.branch,
            deadline=asyncio.get_running_loop().time() + limit - min(SECONDS_TO_SEND, limit / 10),
            drafts=None if self._open_drafts is None else self._open_drafts(delivery),
        )
        with self._recorded(run) as calls:
            try:
                async with asyncio.timeout(limit):
                    return await agent.in_run(run).work(reads), calls
            except (MemoryUnavailableError, QuestionEndedError):
                # This is not a failure of the agent: the worker waits for Redis, or drops an ended
                # question.
                raise
            except TimeoutError as error:
                if limit < self._limit_seconds:
                    # Another attempt would exceed the deadline, so no model call must be paid for
                    # it.
                    return GaveUp(f"{self._name} took longer than the time that was left"), calls
                late = HandlerTimeoutError(f"{self._name} took longer than {limit:.1f} seconds")
                raise RunFailedError(late, calls()) from error
            except Exception as error:
                raise RunFailedError(error, calls()) from error

    def _read(self, envelope: Envelope) -> BaseModel:
        payload = envelope.payload
        known = {name: payload[name] for name in self._reads if payload.get(name) is not None}
        known |= {name: getattr(envelope, name) for name in self._system_reads}
        try:
            reads: BaseModel = self._agent.reads.model_validate(known)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise ContractError(
                f"{self._name} expected {'.'.join(map(str, first['loc']))!r} in the payload: "
                f"{first['msg']}"
            ) from error
        return reads

    def _judge(self, outcome: object) -> tuple[dict[str, JsonValue], Hop]:
        role = self._name
        match outcome:
            case Wrote(writes=writes) if isinstance(writes, self._agent.writes):
                # Whole: an option of a question back keeps its kind, although nobody set it.
                written = writes.model_dump(mode="json", include=writes.model_fields_set)
                if not self._may_write.issuperset(written):
                    foreign = ", ".join(sorted(set(written) - self._may_write))
                    raise ContractError(f"{role} wrote attributes of other roles: {foreign}")
                return written, Hop(role=role, status="wrote", wrote=tuple(written))
            case GaveUp(reason=reason):
                return {}, Hop(role=role, status="gave_up", reason=brief(reason))
            case _:
                found = type(outcome).__name__
                expected = f"Wrote, RetryAfter or GaveUp of {role}"
                raise ContractError(f"expected {expected}, found {found!r}")

    def _encode_run(self, branch: str, hop: Hop, writes: Fields, seconds: float) -> EncodedEvent:
        """Return the journal event of a run; raises `ContractError` when JSON cannot express it."""
        fields: Fields = {
            "role": self._name,
            "status": "completed" if hop.status == "wrote" else hop.status,
            "writes": writes,
            "milliseconds": int(seconds * 100_000) / 100,
        }
        if hop.reason:
            fields["reason"] = hop.reason
        if branch:
            fields["branch"] = branch
        try:
            return EncodedEvent("agent_run", to_json(fields))
        except ValueError as error:
            problem = f"{self._name} wrote values that JSON cannot express: {error}"
            raise ContractError(problem) from error


def reply_to_manager(
    delivery: Delivery,
    envelope: Envelope,
    hop: Hop,
    writes: dict[str, JsonValue],
    seconds: float,
) -> Envelope:
    """Return the envelope for the manager; `target_role` does not change, because only the manager
    sets it.
    """
    return envelope.replace(
        payload=merge_writes(envelope.payload, writes, MERGE_RULES),
        hop=hop,
        retries=0,
        update_ts=time.time(),
        process_count=envelope.process_count + 1,
        total_processing_time=envelope.total_processing_time + seconds,
        sender_role=hop.role,
        target_list=stream_key(MANAGER, delivery.shard),
    )


def open_envelope(delivery: Delivery) -> Envelope:
    """Return the envelope of an entry, with the results that a join sent; raises `DecodeError`."""
    envelope = decode(delivery.whole())
    return envelope.with_gathered(from_json(delivery.gathered)) if delivery.gathered else envelope


def make_poison_notice(delivery: Delivery, error: str) -> FrameSend | None:
    """Return the manager's frame for an entry that killed its workers; None if none routes it.

    The delivery learns its branch, so that its burial ends the branch and not the question.
    """
    try:
        envelope = decode(delivery.whole())
    except DecodeError:
        # The reply that the question record keeps for this case is sent.
        return None
    delivery.branch = envelope.branch
    if delivery.role in UNROUTED:
        return None
    hop = Hop(role=delivery.role, status="failed", reason=error)
    return FrameSend(MANAGER, reply_to_manager(delivery, envelope, hop, {}, 0.0).encode())


def _summarise_calls(payload: Mapping[str, JsonValue], made: Sequence[JournalEvent]) -> Fields:
    return {**add_model_usage(payload, made), **find_exhausted_budget(made)} if made else {}


def _end_waiting(outcome: RetryAfter[BaseModel]) -> object:
    """Return what an agent that has no time to wait leaves."""
    if outcome.otherwise is None:
        return GaveUp(f"no time left: {outcome.reason}")
    return outcome.otherwise


def _list_models(made: Sequence[JournalEvent]) -> Iterator[tuple[str, str]]:
    """Yield the model of each call that was answered, and the name of another one that answered."""
    for call in made:
        if isinstance(call, JournalEntry) and call.kind == "model_call":
            model, answered = str(call.fields.get("model")), call.fields.get("answered_by")
            if "@" in model and "error" not in call.fields:
                yield model, str(answered or "")
