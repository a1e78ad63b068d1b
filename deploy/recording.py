"""Carries the model calls of a hop into its journal and into the metrics."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from broker.port import JournalEntry
from envelope.envelope import Envelope
from llm.call_scope import call_scope
from llm.port import ModelCall
from llm.recording import recorded_calls
from worker.agent_handler import Calls

if TYPE_CHECKING:
    from worker.metrics import PrometheusMeter


class HopCalls:
    """A call recorder: see `worker.agent_handler.CallRecorder`."""

    def __init__(self, meter: "PrometheusMeter | None") -> None:
        self._meter = meter

    @contextmanager
    def __call__(
        self, envelope: Envelope, stage: str, attempt: int, seconds: float
    ) -> Iterator[Calls]:
        """Record what is asked inside the block, on behalf of this hop."""
        scope = call_scope(
            envelope.question, stage=stage, attempt=attempt, remaining_seconds=seconds
        )
        with recorded_calls() as calls, scope:
            yield lambda: tuple(journaled(call) for call in calls)
        if self._meter is not None:
            for call in calls:
                if not call.from_store:
                    self._meter.called(call.model, call.task, call.cost_usd)


def journaled(call: ModelCall) -> JournalEntry:
    """Return a model call as the journal keeps it; an unknown cost stays None."""
    fields: dict[str, str | int | float | bool | None] = {
        "task": call.task,
        "model": call.model,
        "input_tokens": call.usage.input_tokens,
        "output_tokens": call.usage.output_tokens,
        "cached_input_tokens": call.usage.cached_input_tokens,
        "cost_usd": None if call.cost_usd is None else str(call.cost_usd),
        "milliseconds": round(call.milliseconds, 2),
        "prompt_hash": call.prompt_hash,
    }
    if call.error is not None:
        fields["error"] = call.error
    if call.from_store:
        fields["from_store"] = True
    return JournalEntry("model_call", dict(fields))
