"""Runs an agent on an envelope: typed reads in, typed writes merged, handed back to the manager."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError

from agents.agent import Agent
from broker.journal_events import EncodedEvent, JournalEvent
from broker.keys import stream_key
from broker.port import Delivery, Fields, FrameSend, Retry, Settlement
from envelope.encoding import brief, to_json
from envelope.envelope import Envelope, Hop, decode
from envelope.errors import ContractError, DecodeError
from envelope.outcome import GaveUp, RetryAfter, Wrote
from envelope.payload import CATALOGUE
from memory.errors import MemoryUnavailableError, QuestionEndedError
from worker.errors import HandlerTimeoutError, RunFailedError
from worker.inline_manager import MANAGER, InlineManager, to_manager
from worker.model_usage import add_model_usage
from worker.timeouts import run_with_timeout

RESERVE_SECONDS = 0.5
"""Left of a question's time for handing back."""
LEAST_SECONDS = 0.01
SAID_AS_IT_IS = frozenset({str, bool, int, float, type(None)})
"""Values of these types are the same in JSON: no writes have serializers of their own (tested)."""

AnyAgent = Agent[Any, Any]


Calls = Callable[[], tuple[JournalEvent, ...]]
CallRecorder = Callable[[Envelope, str, int, float], AbstractContextManager[Calls]]
"""Collects the model calls made inside the block: for envelope, stage, attempt and seconds left."""


_NO_CALLS = nullcontext[Calls](tuple)


def no_calls(
    _envelope: Envelope, _stage: str, _attempt: int, _seconds: float
) -> AbstractContextManager[Calls]:
    """Collect nothing: for agents that ask no model."""
    return _NO_CALLS


OnWritten = Callable[[str, Fields], None]
"""Is told what a role wrote, to count the fallbacks in it."""


def ignore_writes(_role: str, _writes: Fields) -> None:
    """Count nothing."""


class AgentHandler:
    """The handler of one agent; `limit_seconds` bounds one run of it.

    With a `manager` in the process it is decided on the spot where the envelope goes next.
    """

    def __init__(
        self,
        agent: AnyAgent,
        *,
        limit_seconds: float,
        recorded: CallRecorder = no_calls,
        on_written: OnWritten = ignore_writes,
        manager: InlineManager | None = None,
    ) -> None:
        self.role = agent.role
        self._name = agent.role.value
        self._agent = agent
        self._manager = manager
        self._limit_seconds = limit_seconds
        self._recorded = recorded
        self._on_written = on_written
        self._reads = frozenset(agent.reads.model_fields)
        self._may_write = frozenset(
            attribute.name for attribute in CATALOGUE if agent.role in attribute.written_by
        )

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        """Return the settlement of one run; raises `RunFailedError` when the agent raises."""
        started = time.perf_counter()
        reads = self._read(envelope)
        attempt = envelope.payload.get("attempt")
        attempt = attempt if isinstance(attempt, int) else 0
        limit = min(
            self._limit_seconds, max(delivery.remaining_seconds - RESERVE_SECONDS, LEAST_SECONDS)
        )
        with self._recorded(envelope, self._name, attempt, limit) as calls:
            try:
                outcome = await run_with_timeout(self._agent.work(reads), limit)
            except (MemoryUnavailableError, QuestionEndedError):
                # No failure of the agent: the worker waits for Redis, or drops what has ended.
                raise
            except TimeoutError as error:
                late = HandlerTimeoutError(f"{self._name} took longer than {limit:.1f} seconds")
                raise RunFailedError(late, calls()) from error
            except Exception as error:
                raise RunFailedError(error, calls()) from error
        seconds = time.perf_counter() - started
        if isinstance(outcome, RetryAfter) and outcome.seconds < delivery.remaining_seconds:
            frame = envelope.replace(total_processing_time=envelope.total_processing_time + seconds)
            return Retry(frame.encode(), brief(outcome.reason), outcome.seconds, calls())
        writes, hop = self._judge(outcome)
        self._on_written(self._name, writes)
        made = calls()
        journal = (*made, self._encode_run(hop, writes, seconds))
        written = {**writes, **add_model_usage(envelope.payload, made)} if made else writes
        handed = reply_to_manager(delivery, envelope, hop, written, seconds)
        if self._manager is None:
            return to_manager(handed, journal)
        return await self._manager.decide(delivery, handed, journal, seconds)

    def _read(self, envelope: Envelope) -> BaseModel:
        payload = envelope.payload
        known = {name: payload[name] for name in self._reads if payload.get(name) is not None}
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
                written = _encode_writes(writes)
                if not self._may_write.issuperset(written):
                    foreign = ", ".join(sorted(set(written) - self._may_write))
                    raise ContractError(f"{role} wrote what is not its own: {foreign}")
                return written, Hop.that_wrote(role, tuple(written))
            case GaveUp(reason=reason):
                return {}, Hop(role=role, status="gave_up", reason=brief(reason))
            case RetryAfter(reason=reason):
                return {}, Hop(role=role, status="gave_up", reason=brief(f"no time left: {reason}"))
            case _:
                found = type(outcome).__name__
                expected = f"Wrote, RetryAfter or GaveUp of {role}"
                raise ContractError(f"expected {expected}, found {found!r}")

    def _encode_run(self, hop: Hop, writes: Fields, seconds: float) -> EncodedEvent:
        """Return the journal event of a run; raises `ContractError` when JSON cannot express it."""
        fields: Fields = {
            "role": self._name,
            "status": "completed" if hop.status == "wrote" else hop.status,
            "writes": writes,
            "milliseconds": int(seconds * 100_000) / 100,
        }
        if hop.reason:
            fields["reason"] = hop.reason
        try:
            return EncodedEvent("agent_run", to_json(fields))
        except ValueError as error:
            raise ContractError(f"{self._name} wrote what JSON cannot say: {error}") from error


def _encode_writes(writes: BaseModel) -> dict[str, JsonValue]:
    """Return the attributes that were set, as JSON says them; what was not set is left out."""
    known, values = writes.model_fields_set, writes.__dict__
    if len(known) == len(values):
        written = values.copy()
    else:
        written = {name: value for name, value in values.items() if name in known}
    if len(written) == len(known) and SAID_AS_IT_IS.issuperset(map(type, written.values())):
        return written
    return writes.model_dump(mode="json", include=set(known))


def reply_to_manager(
    delivery: Delivery,
    envelope: Envelope,
    hop: Hop,
    writes: dict[str, JsonValue],
    seconds: float,
) -> Envelope:
    """Return the envelope for the manager; `target_role` is the manager's and stays as it is."""
    return envelope.replace(
        payload={**envelope.payload, **writes},
        hop=hop,
        retries=0,
        update_ts=time.time(),
        process_count=envelope.process_count + 1,
        total_processing_time=envelope.total_processing_time + seconds,
        sender_role=hop.role,
        target_list=stream_key(MANAGER, delivery.shard),
    )


def make_poison_notice(delivery: Delivery, error: str) -> FrameSend | None:
    """Return the manager's frame for an entry that killed its workers; None for its own."""
    if delivery.role == MANAGER:
        return None
    try:
        envelope = decode(delivery.whole())
    except DecodeError:
        # The last resort of the record answers for it.
        return None
    hop = Hop(role=delivery.role, status="failed", reason=error)
    return FrameSend(MANAGER, reply_to_manager(delivery, envelope, hop, {}, 0.0).encode())
