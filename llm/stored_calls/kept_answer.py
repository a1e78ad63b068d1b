"""The form in which an answer is kept outside of the process: JSON."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from pydantic import BaseModel, TypeAdapter, ValidationError

from llm.conversations.port import ModelStep
from llm.port import ModelAnswer, ModelCall, O, Usage


class _StoredAnswer(BaseModel, frozen=True):
    """An answer, its output as JSON inside the JSON, and the calls that were made for it."""

    output: str
    model: str
    usage: Usage
    cost_usd: Decimal | None
    milliseconds: float
    calls: tuple[ModelCall, ...] = ()


class _StoredStep(BaseModel, frozen=True):
    """A step of a conversation, and the calls that were made for it."""

    step: ModelStep
    calls: tuple[ModelCall, ...] = ()


_KEPT = TypeAdapter(_StoredAnswer)
_KEPT_STEP = TypeAdapter(_StoredStep)


def encode_step(step: ModelStep, calls: Sequence[ModelCall] = ()) -> bytes:
    """Return the bytes of a step to keep."""
    return _KEPT_STEP.dump_json(_StoredStep(step=step, calls=tuple(calls)))


def decode_step(frame: bytes) -> tuple[ModelStep, Sequence[ModelCall]] | None:
    """Return a step and its calls, marked as kept; None when they are of another version."""
    try:
        kept = _KEPT_STEP.validate_json(frame)
    except ValidationError:
        return None
    calls = [replace(call, from_store=True) for call in kept.calls]
    return replace(kept.step, from_store=True), calls


def encode(answer: ModelAnswer[O], calls: Sequence[ModelCall] = ()) -> bytes:
    """Return the bytes to keep."""
    kept = _StoredAnswer(
        output=answer.output.model_dump_json(),
        model=answer.model,
        usage=answer.usage,
        cost_usd=answer.cost_usd,
        milliseconds=answer.milliseconds,
        calls=tuple(calls),
    )
    return _KEPT.dump_json(kept)


def decode(frame: bytes, output: type[O]) -> tuple[ModelAnswer[O], Sequence[ModelCall]] | None:
    """Return the answer and its calls, marked as kept; None when they are of another version."""
    try:
        kept = _KEPT.validate_json(frame)
        read = output.model_validate_json(kept.output)
    except ValidationError:
        return None
    answer = ModelAnswer(
        read, kept.model, kept.usage, kept.cost_usd, kept.milliseconds, from_store=True
    )
    return answer, [replace(call, from_store=True) for call in kept.calls]
