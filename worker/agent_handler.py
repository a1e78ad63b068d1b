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
"""Roles whose failures the manager cannot route. Their questions are answered with the fallback
reply that is stored for each question.
"""
RESERVE_SECONDS = 0.5
"""Seconds of a question's remaining time that are reserved for returning the envelope."""
SECONDS_TO_SEND = 1.0
"""`Run.deadline` is set this long before the time limit, so that an agent can still return a
partial result after a slow model call. It is at most a tenth of the limit.
"""
LEAST_SECONDS = 0.01
LONGEST_WAIT_SHARE = 0.5
"""The maximum delay of a retry, as a share of the remaining time. The retry itself and the
following steps need the rest.
"""

AnyAgent = Agent[Any, Any]
Assistant = tuple[str, str]
"""A tenant ID and an assistant ID."""
UNSERVED: object = GaveUp(
    "this process does not serve the assistant of the question; add the assistant to ASSISTANTS"
)
"""The outcome for an assistant that this process does not serve."""

Calls = Callable[[], tuple[JournalEvent, ...]]
CallRecorder = Callable[[Run], AbstractContextManager[Calls]]
"""Returns a context manager that records the model calls of a run."""


def no_events() -> tuple[JournalEvent, ...]:
    """Return no events."""
    return ()


_NO_CALLS = nullcontext[Calls](no_events)
OnWritten = Callable[[str, Fields], None]
"""Called with the role and its writes after each run, for metrics."""
ReadIndexVersion = Callable[[Assistant], Awaitable[str]]
"""Returns the index version of an assistant, or "" if it has no index."""

OpenDrafts = Callable[[Delivery], DraftPublisher]
"""Returns a draft publisher for the run of a delivery."""


def no_calls(_run: Run) -> AbstractContextManager[Calls]:
    """Record nothing; for agents that make no model calls."""
    return _NO_CALLS


def ignore_writes(_role: str, _writes: Fields) -> None:
    """Ignore the writes."""


class AgentHandler:
    """Handles the deliveries of one role by running its agent for up to `limit_seconds`.

    `assistants` maps each assistant that this process serves to its agent; if it is None, `agent`
    serves every assistant. `read_index` is set for roles that record the index version as evidence.
    Without `open_drafts`, no drafts are published. Every result goes to the manager, which alone
    chooses the next role.
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

        The steps: find the agent of the assistant, run it within the time limit while recording its
        model calls, validate its writes, and return the envelope to the manager with the journal
        events.
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
        """Return the result of the agent, and a function that returns the recorded model calls."""
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
                # Not a failure of the agent: the worker waits for Redis, or drops the entry of an
                # ended question.
                raise
            except TimeoutError as error:
                if limit < self._limit_seconds:
                    # A retry would exceed the deadline, so its model calls would be wasted.
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
                # `exclude_unset` would also drop unset fields of nested models, such as the kind of
                # an option.
                written = writes.model_dump(mode="json", include=writes.model_fields_set)
                if not self._may_write.issuperset(written):
                    foreign = ", ".join(sorted(set(written) - self._may_write))
                    raise ContractError(f"{role} wrote attributes of other roles: {foreign}")
                return written, Hop(role=role, status="wrote", wrote=tuple(written))
            case GaveUp(reason=reason):
                return {}, Hop(role=role, status="gave_up", reason=brief(reason))
            case _:
                kind = type(outcome).__name__
                raise ContractError(
                    f"expected Wrote, RetryAfter or GaveUp of {role}, found {kind!r}"
                )

    def _encode_run(self, branch: str, hop: Hop, writes: Fields, seconds: float) -> EncodedEvent:
        """Return the journal event of a run; raises `ContractError` if it is not valid JSON."""
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
            problem = f"{self._name} wrote values that cannot be encoded as JSON: {error}"
            raise ContractError(problem) from error


def reply_to_manager(
    delivery: Delivery,
    envelope: Envelope,
    hop: Hop,
    writes: dict[str, JsonValue],
    seconds: float,
) -> Envelope:
    """Return the envelope for the manager, with the writes merged into its payload.

    `target_role` stays the same, because only the manager sets it.
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
    """Return the envelope of an entry, with the branch results of a join; raises `DecodeError`."""
    envelope = decode(delivery.whole())
    return envelope.with_gathered(from_json(delivery.gathered)) if delivery.gathered else envelope


def make_poison_notice(delivery: Delivery, error: str) -> FrameSend | None:
    """Return a frame that tells the manager about an entry that killed its workers.

    Returns None if the manager does not route failures of this entry's role, or if the entry cannot
    be decoded. Also sets `delivery.branch`, so that burying the entry ends its branch instead of
    the question.
    """
    try:
        envelope = decode(delivery.whole())
    except DecodeError:
        # The broker sends the fallback reply of the question record.
        return None
    delivery.branch = envelope.branch
    if delivery.role in UNROUTED:
        return None
    hop = Hop(role=delivery.role, status="failed", reason=error)
    return FrameSend(MANAGER, reply_to_manager(delivery, envelope, hop, {}, 0.0).encode())


def _summarise_calls(payload: Mapping[str, JsonValue], made: Sequence[JournalEvent]) -> Fields:
    return {**add_model_usage(payload, made), **find_exhausted_budget(made)} if made else {}


def _end_waiting(outcome: RetryAfter[BaseModel]) -> object:
    """Return the outcome of an agent that has no time left for a retry."""
    if outcome.otherwise is None:
        return GaveUp(f"no time left: {outcome.reason}")
    return outcome.otherwise


def _list_models(made: Sequence[JournalEvent]) -> Iterator[tuple[str, str]]:
    """Yield the requested model of each successful call, and the model that answered if it was a
    different one.
    """
    for call in made:
        if isinstance(call, JournalEntry) and call.kind == "model_call":
            model, answered = str(call.fields.get("model")), call.fields.get("answered_by")
            if "@" in model and "error" not in call.fields:
                yield model, str(answered or "")
