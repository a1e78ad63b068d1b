"""Derives the event of a hop from the attributes that the agent wrote."""

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from envelope.conversation import REFUSALS, ClarificationReason, ConversationAct
from envelope.envelope import Hop
from manager.flow import Stage, StageEvent

Writes = Mapping[str, JsonValue]

# Every hop uses these: in Python 3.11 an enum member costs four times as much as a variable.
_START, _QUALITY = Stage.START, Stage.QUALITY
_DONE, _FAILED = StageEvent.DONE, StageEvent.FAILED


def classify_result(
    stage: Stage, hop: Hop | None, payload: Writes, *, quality_threshold: float
) -> StageEvent:
    """Return the event of this hop: failed, exit, needs clarification, or one of the stage.

    Reads only the attributes that this hop wrote and ignores attributes of earlier hops. The stage
    `start` has no hop; it reads the payload as the gateway accepted it.
    """
    if stage is _START:
        return StageEvent.COMMAND if payload.get("command") is not None else StageEvent.QUESTION
    if hop is None or hop.role != stage or hop.status != "wrote":
        return _FAILED
    writes = {name: payload[name] for name in hop.wrote if name in payload}
    if stage is _QUALITY:
        return _quality(writes, quality_threshold)
    return _OWN.get(stage, _classify_done)(writes)


def _classify_done(writes: Writes) -> StageEvent:
    if _asks(writes):
        return StageEvent.ASKS
    return _DONE if writes else _FAILED


def _asks(writes: Writes) -> bool:
    return writes.get("needs_clarification") is True


def _essence(writes: Writes) -> StageEvent:
    if writes.get("clarification_result") == "exit":
        return StageEvent.EXIT
    if _asks(writes):
        return StageEvent.ASKS
    act = _ACTS.get(str(writes.get("conversation_act")))
    if act is not None:
        return act
    return _DONE if writes.get("canonical_question") else _FAILED


def _guardrails(writes: Writes) -> StageEvent:
    if writes.get("within_scope") is False and _reason(writes) in {None, *REFUSALS}:
        return StageEvent.OUTSIDE
    if _asks(writes):
        return StageEvent.ASKS
    return StageEvent.WITHIN if writes.get("within_scope") is True else StageEvent.FAILED


def _search(writes: Writes) -> StageEvent:
    poor = writes.get("search_quality") == "poor" or bool(writes.get("search_error"))
    if _asks(writes) or poor:
        return _SEARCH_REASONS.get(
            _reason(writes), StageEvent.ASKS if _asks(writes) else StageEvent.NOTHING
        )
    return (
        StageEvent.FOUND
        if writes.get("search_quality") in {"excellent", "good"}
        else StageEvent.FAILED
    )


def _response(writes: Writes) -> StageEvent:
    if writes.get("generation_error"):
        return StageEvent.GENERATION_ERROR
    if _asks(writes):
        return StageEvent.ASKS
    return StageEvent.DONE if writes.get("response") else StageEvent.FAILED


def _quality(writes: Writes, threshold: float) -> StageEvent:
    if _asks(writes):
        return StageEvent.ASKS
    score, decision = writes.get("quality_score"), writes.get("quality_decision")
    if decision == "approve":
        good = isinstance(score, int | float) and score >= threshold and _is_grounded(writes)
        return StageEvent.APPROVED if good else StageEvent.LOW
    return {"research": StageEvent.RESEARCH, "regenerate": StageEvent.REGENERATE}.get(
        str(decision), StageEvent.FAILED
    )


def _is_grounded(writes: Writes) -> bool:
    result = writes.get("validation_result")
    return not isinstance(result, dict) or result.get("grounded") is not False


def _reply(writes: Writes) -> StageEvent:
    return StageEvent.DONE if writes.get("response") else StageEvent.FAILED


def _reason(writes: Writes) -> ClarificationReason | None:
    value = writes.get("clarification_reason")
    return ClarificationReason(value) if value in set(ClarificationReason) else None


_SEARCH_REASONS: dict[ClarificationReason | None, StageEvent] = {
    ClarificationReason.AMBIGUOUS_QUERY: StageEvent.MANY,
    ClarificationReason.INSUFFICIENT_CONTEXT: StageEvent.NOTHING,
}
_ACTS: dict[str, StageEvent] = {
    ConversationAct.WHY: StageEvent.WHY,
    ConversationAct.REPHRASE: StageEvent.REPHRASE,
    ConversationAct.CORRECTION: StageEvent.CORRECTION,
    **dict.fromkeys(
        (
            ConversationAct.GREETING,
            ConversationAct.THANKS,
            ConversationAct.FAREWELL,
            ConversationAct.ACKNOWLEDGEMENT,
        ),
        StageEvent.COURTESY,
    ),
    ConversationAct.CAPABILITIES: StageEvent.CAPABILITIES,
    ConversationAct.STRAY_CHOICE: StageEvent.NO_QUESTION,
    ConversationAct.NO_ANSWER_YET: StageEvent.NO_QUESTION,
}
_DONE_OR_FAILED = frozenset({_DONE, _FAILED})
_CLASSIFIERS: dict[Stage, tuple[Callable[[Writes], StageEvent], frozenset[StageEvent]]] = {
    Stage.ESSENCE: (
        _essence,
        _DONE_OR_FAILED | {StageEvent.EXIT, StageEvent.ASKS, *_ACTS.values()},
    ),
    Stage.GUARDRAILS: (
        _guardrails,
        frozenset({StageEvent.WITHIN, StageEvent.OUTSIDE, StageEvent.ASKS, _FAILED}),
    ),
    Stage.SEARCH: (
        _search,
        frozenset(
            {StageEvent.FOUND, StageEvent.MANY, StageEvent.NOTHING, StageEvent.ASKS, _FAILED}
        ),
    ),
    Stage.RESPONSE: (_response, _DONE_OR_FAILED | {StageEvent.GENERATION_ERROR, StageEvent.ASKS}),
    Stage.CLARIFICATION: (_reply, _DONE_OR_FAILED),
    Stage.COMMAND: (_reply, _DONE_OR_FAILED),
}
"""Stages that read their own attributes, with every outcome that they can have.

Any other stage asks, or is done when its agent wrote something, else it failed.
"""
_OWN = {stage: classify for stage, (classify, _) in _CLASSIFIERS.items()}

POSSIBLE: dict[Stage, frozenset[StageEvent]] = {
    **dict.fromkeys(Stage, _DONE_OR_FAILED | {StageEvent.ASKS}),
    **{stage: outcomes for stage, (_, outcomes) in _CLASSIFIERS.items()},
    Stage.START: frozenset({StageEvent.COMMAND, StageEvent.QUESTION, _FAILED}),
    Stage.QUALITY: frozenset(
        {
            StageEvent.APPROVED,
            StageEvent.LOW,
            StageEvent.RESEARCH,
            StageEvent.REGENERATE,
            StageEvent.ASKS,
            _FAILED,
        }
    ),
}
"""Every outcome a stage can have; the flow table must answer each."""
