"""Judges one hop by what it wrote."""

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from envelope.conversation import REFUSALS, ClarificationReason
from envelope.envelope import Hop
from manager.flow import Did, Stage

Writes = Mapping[str, JsonValue]

# Every hop asks for these: a member by its name costs Python 3.11 four times what a variable does.
_START, _QUALITY = Stage.START, Stage.QUALITY
_DONE, _FAILED = Did.DONE, Did.FAILED

POSSIBLE: dict[Stage, frozenset[Did]] = {
    Stage.START: frozenset({Did.COMMAND, Did.QUESTION, Did.FAILED}),
    Stage.COMMAND: frozenset({Did.DONE, Did.FAILED}),
    Stage.LANG: frozenset({Did.DONE, Did.FAILED}),
    Stage.TRANSLATION: frozenset({Did.DONE, Did.FAILED}),
    Stage.ESSENCE: frozenset({Did.DONE, Did.EXIT, Did.ASKS, Did.FAILED}),
    Stage.GUARDRAILS: frozenset({Did.WITHIN, Did.OUTSIDE, Did.ASKS, Did.FAILED}),
    Stage.SEARCH: frozenset({Did.FOUND, Did.MANY, Did.NOTHING, Did.ASKS, Did.FAILED}),
    Stage.AUGMENTATION: frozenset({Did.DONE, Did.FAILED}),
    Stage.RESPONSE: frozenset({Did.DONE, Did.GENERATION_ERROR, Did.ASKS, Did.FAILED}),
    Stage.QUALITY: frozenset(
        {Did.APPROVED, Did.LOW, Did.RESEARCH, Did.REGENERATE, Did.ASKS, Did.FAILED}
    ),
    Stage.CLARIFICATION: frozenset({Did.DONE, Did.FAILED}),
}
"""Every outcome a stage can have; the flow table must answer each."""


def judge(stage: Stage, hop: Hop | None, payload: Writes, *, quality_threshold: float) -> Did:
    """Return how this hop ended: failed, exit, needs clarification, then the stage's own.

    Reads only the attributes that the hop itself wrote; an attribute that an earlier hop left
    in the payload is never looked at. `start` has no hop and reads what came in at the door.
    """
    if stage is _START:
        return Did.COMMAND if payload.get("command") is not None else Did.QUESTION
    if hop is None or hop.role != stage or hop.status != "wrote":
        return _FAILED
    writes = {name: payload[name] for name in hop.wrote if name in payload}
    if stage is _QUALITY:
        return _quality(writes, quality_threshold)
    return _OWN.get(stage, _done)(writes)


def _done(writes: Writes) -> Did:
    return _DONE if writes else _FAILED


def _asks(writes: Writes) -> bool:
    return writes.get("needs_clarification") is True


def _essence(writes: Writes) -> Did:
    if writes.get("clarification_result") == "exit":
        return Did.EXIT
    if _asks(writes):
        return Did.ASKS
    return _DONE if writes.get("canonical_question") else _FAILED


def _guardrails(writes: Writes) -> Did:
    if writes.get("within_scope") is False and _reason(writes) in {None, *REFUSALS}:
        return Did.OUTSIDE
    if _asks(writes):
        return Did.ASKS
    return Did.WITHIN if writes.get("within_scope") is True else Did.FAILED


def _search(writes: Writes) -> Did:
    poor = writes.get("search_quality") == "poor" or bool(writes.get("search_error"))
    if _asks(writes) or poor:
        return _SEARCH_REASONS.get(_reason(writes), Did.ASKS if _asks(writes) else Did.NOTHING)
    return Did.FOUND if writes.get("search_quality") in {"excellent", "good"} else Did.FAILED


def _response(writes: Writes) -> Did:
    if writes.get("generation_error"):
        return Did.GENERATION_ERROR
    if _asks(writes):
        return Did.ASKS
    return Did.DONE if writes.get("response") else Did.FAILED


def _quality(writes: Writes, threshold: float) -> Did:
    if _asks(writes):
        return Did.ASKS
    score, decision = writes.get("quality_score"), writes.get("quality_decision")
    if decision == "approve":
        good = isinstance(score, int | float) and score >= threshold and _grounded(writes)
        return Did.APPROVED if good else Did.LOW
    return {"research": Did.RESEARCH, "regenerate": Did.REGENERATE}.get(str(decision), Did.FAILED)


def _grounded(writes: Writes) -> bool:
    result = writes.get("validation_result")
    return not isinstance(result, dict) or result.get("grounded") is not False


def _reply(writes: Writes) -> Did:
    return Did.DONE if writes.get("response") else Did.FAILED


def _reason(writes: Writes) -> ClarificationReason | None:
    value = writes.get("clarification_reason")
    return ClarificationReason(value) if value in set(ClarificationReason) else None


_SEARCH_REASONS: dict[ClarificationReason | None, Did] = {
    ClarificationReason.AMBIGUOUS_QUERY: Did.MANY,
    ClarificationReason.INSUFFICIENT_CONTEXT: Did.NOTHING,
}
_OWN: dict[Stage, Callable[[Writes], Did]] = {
    Stage.ESSENCE: _essence,
    Stage.GUARDRAILS: _guardrails,
    Stage.SEARCH: _search,
    Stage.RESPONSE: _response,
    Stage.CLARIFICATION: _reply,
    Stage.COMMAND: _reply,
}
