"""Derives the event of a hop from the attributes that the agent wrote.

Each function serves stages of `manager/flows`; its number is the quality threshold.
"""

from envelope.conversation import ClarificationReason, ConversationAct
from envelope.envelope import Hop
from envelope.role import Role
from envelope.swarm import LedgerStep, PlanStep
from envelope.tool_loop import LoopEnd
from manager.flow import Stage, StageEvent, Writes

# Every hop uses these: in Python 3.11 an enum member costs four times as much as a variable.
_MANAGER, _DONE, _FAILED = Role.MANAGER, StageEvent.DONE, StageEvent.FAILED


def classify_result(
    stage: Stage, hop: Hop | None, payload: Writes, *, quality_threshold: float
) -> StageEvent:
    """Return the event of this hop: failed, exit, needs clarification, or one of the stage.

    Reads only the attributes that this hop wrote and ignores attributes of earlier hops. The stage
    `start` has no hop; it reads the payload as the gateway accepted it.
    """
    if stage.role is _MANAGER:
        return stage.classify(payload, quality_threshold)
    if hop is None or hop.role != stage.role or hop.status != "wrote":
        return _FAILED
    writes = {name: payload[name] for name in hop.wrote if name in payload}
    return stage.classify(writes, quality_threshold)


_PAUSE_STATES = {
    "over": StageEvent.PAUSE_OVER,
    "unanswered": StageEvent.PAUSE_UNANSWERED,
    "foreign": StageEvent.PAUSE_FOREIGN,
}


def classify_start(payload: Writes, _threshold: float) -> StageEvent:
    """Return whether the message is a command, a reply to a pause that ends it, or a question."""
    state = payload.get("pause_state")
    if state is not None:
        return _PAUSE_STATES[str(state)]
    return StageEvent.COMMAND if payload.get("command") is not None else StageEvent.QUESTION


def classify_done(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether the hop asked back or wrote something."""
    if _asks(writes):
        return StageEvent.ASKS
    return _DONE if writes else _FAILED


def _asks(writes: Writes) -> bool:
    return writes.get("needs_clarification") is True


def classify_essence(writes: Writes, _threshold: float) -> StageEvent:
    """Return what the message is: a question, an act of conversation, or the end."""
    if writes.get("clarification_result") == "exit":
        return StageEvent.EXIT
    if _asks(writes):
        return StageEvent.ASKS
    act = ACT_EVENTS.get(str(writes.get("conversation_act")))
    if act is not None:
        return act
    return _DONE if writes.get("canonical_question") else _FAILED


def classify_guardrails(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether there is a verified answer, else whether the question is within scope."""
    if writes.get("verified_answer"):
        return StageEvent.VERIFIED
    if writes.get("within_scope") is False and _reason(writes) in _OUTSIDE:
        return StageEvent.OUTSIDE
    if _asks(writes):
        return StageEvent.ASKS
    return StageEvent.WITHIN if writes.get("within_scope") is True else StageEvent.FAILED


def classify_search(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether there are results to answer from, whatever their quality."""
    if _asks(writes) or writes.get("search_error"):
        return _SEARCH_REASONS.get(
            _reason(writes), StageEvent.ASKS if _asks(writes) else StageEvent.NOTHING
        )
    return (
        StageEvent.FOUND
        if writes.get("search_quality") in {"excellent", "good", "poor"}
        else StageEvent.FAILED
    )


def classify_response(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether an answer was written."""
    if writes.get("generation_error"):
        return StageEvent.GENERATION_ERROR
    if _asks(writes):
        return StageEvent.ASKS
    return StageEvent.DONE if writes.get("response") else StageEvent.FAILED


def classify_quality(writes: Writes, threshold: float) -> StageEvent:
    """Return what the judge decided; an approval below the threshold does not count as one."""
    if _asks(writes):
        return StageEvent.ASKS
    score, decision = writes.get("quality_score"), writes.get("quality_decision")
    if decision == "approve":
        # Null means that the answer was not judged; it is sent, because it says so itself.
        is_unjudged = "quality_score" in writes and score is None
        is_enough = is_unjudged or (isinstance(score, int | float) and score >= threshold)
        good = is_enough and _is_grounded(writes)
        return StageEvent.APPROVED if good else StageEvent.LOW
    return {"research": StageEvent.RESEARCH, "regenerate": StageEvent.REGENERATE}.get(
        str(decision), StageEvent.FAILED
    )


def _is_grounded(writes: Writes) -> bool:
    result = writes.get("validation_result")
    return not isinstance(result, dict) or result.get("grounded") is not False


def classify_reply(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether the agent wrote a reply."""
    return StageEvent.DONE if writes.get("response") else StageEvent.FAILED


def classify_triage(writes: Writes, _threshold: float) -> StageEvent:
    """Return which way was chosen."""
    triage = writes.get("triage")
    way = triage.get("way") if isinstance(triage, dict) else None
    if _asks(writes):
        return StageEvent.ASKS
    return _WAY_EVENTS.get(str(way), StageEvent.FAILED)


def classify_reason(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether the plan calls tools, and what follows their results."""
    if writes.get("intent") == "out_of_scope":
        return StageEvent.OUTSIDE
    if not writes.get("tool_calls"):
        ready = LOOP_END_EVENTS.get(str(writes.get("loop_end")), StageEvent.READY)
        return ready if "tool_calls" in writes else StageEvent.FAILED
    continues = writes.get("continues_planning") is True
    return StageEvent.CALLS_AND_PLANS if continues else StageEvent.CALLS


def classify_reflect(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether there is a source from which an answer can be written."""
    return StageEvent.FOUND if writes.get("source_references") else StageEvent.NOTHING


def classify_assess(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether the answer is good enough; a restored one was assessed before."""
    if _asks(writes):
        return StageEvent.ASKS
    if not writes.get("response"):
        return StageEvent.FAILED
    assessment = writes.get("assessment")
    lacks = isinstance(assessment, dict) and assessment.get("is_enough") is False
    return StageEvent.AGAIN if lacks else StageEvent.ENOUGH


def classify_shown(payload: Writes, _threshold: float) -> StageEvent:
    """Return whether another message of the same person is waiting."""
    return StageEvent.DONE if payload.get("text") else StageEvent.FAILED


def classify_shown_topic(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether the waiting message ends the work: a model found that it is about another
    topic or asks to stop.
    """
    if not writes.get("canonical_question"):
        return _FAILED
    if writes.get("conversation_act") == ConversationAct.EXIT:
        return StageEvent.OTHER_TOPIC
    is_judged = writes.get("decided_by") in {"combined_call", "own_call"}
    is_new = writes.get("context_type") == "new_topic" and not writes.get("conversation_act")
    return StageEvent.OTHER_TOPIC if is_judged and is_new else _DONE


def classify_begin(payload: Writes, _threshold: float) -> StageEvent:
    """Return whether a branch has a specialist to begin with."""
    return StageEvent.DONE if payload.get("agent_sequence") else StageEvent.FAILED


def classify_specialist(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether a specialist calls tools, divides its work, or is done."""
    if writes.get("tool_calls"):
        return StageEvent.CALLS
    if writes.get("part_plan"):
        return StageEvent.SPLITS
    return _DONE if writes else _FAILED


def classify_synthesis(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether an answer was written from the findings, or another round is wanted."""
    if _asks(writes):
        return StageEvent.ASKS
    if writes.get("further_round"):
        return StageEvent.AGAIN
    return _DONE if writes.get("response") else StageEvent.NOTHING


def _reason(writes: Writes) -> ClarificationReason | None:
    value = writes.get("clarification_reason")
    return ClarificationReason(value) if value in set(ClarificationReason) else None


_OUTSIDE = frozenset({None, ClarificationReason.OUT_OF_SCOPE})
_SEARCH_REASONS: dict[ClarificationReason | None, StageEvent] = {
    ClarificationReason.AMBIGUOUS_QUERY: StageEvent.MANY,
    ClarificationReason.INSUFFICIENT_CONTEXT: StageEvent.NOTHING,
}
_WAY_EVENTS = {
    "search": StageEvent.SEARCHES,
    "tools": StageEvent.USES_TOOLS,
    "specialists": StageEvent.USES_SPECIALISTS,
    "swarm": StageEvent.USES_SWARM,
}
LOOP_END_EVENTS: dict[str, StageEvent] = {
    LoopEnd.UNANSWERED: StageEvent.NONE_UNANSWERED,
    LoopEnd.ANSWERED: StageEvent.NONE_ANSWERED,
    LoopEnd.JUDGED: StageEvent.NONE_JUDGED,
}
"""The events of a round that plans no call after an answer was tried."""
ACT_EVENTS: dict[str, StageEvent] = {
    ConversationAct.WHY: StageEvent.WHY,
    ConversationAct.REPHRASE: StageEvent.REPHRASE,
    ConversationAct.CORRECTION: StageEvent.CORRECTION,
    **dict.fromkeys(
        (
            ConversationAct.GREETING,
            ConversationAct.THANKS,
            ConversationAct.FAREWELL,
            ConversationAct.ACKNOWLEDGEMENT,
            ConversationAct.EXIT,
            ConversationAct.PERSON,
            ConversationAct.PREFERENCE,
        ),
        StageEvent.COURTESY,
    ),
    ConversationAct.CAPABILITIES: StageEvent.CAPABILITIES,
    ConversationAct.STRAY_CHOICE: StageEvent.NO_QUESTION,
    ConversationAct.NO_ANSWER_YET: StageEvent.NO_QUESTION,
}
"""The events of the acts that the documents do not answer, or that begin elsewhere."""


_PLAN_EVENTS = {
    PlanStep.WORK: StageEvent.DONE,
    PlanStep.APPROVE: StageEvent.NEEDS_APPROVAL,
    PlanStep.SEARCH: StageEvent.SEARCHES,
}
_LEDGER_EVENTS = {
    LedgerStep.WORK: StageEvent.BEGINS,
    LedgerStep.ASK_INFORMATION: StageEvent.NEEDS_INPUT,
    LedgerStep.ASK_APPROVAL: StageEvent.NEEDS_APPROVAL,
    LedgerStep.REPLAN: StageEvent.AGAIN,
    LedgerStep.FINISH: StageEvent.DONE,
}


def classify_plan(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether workers begin, a person approves the plan first, or one search is enough."""
    step = str(writes.get("plan_step"))
    return next((_PLAN_EVENTS[one] for one in PlanStep if one == step), StageEvent.FAILED)


def classify_gather(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether facts are missing that only the user can give."""
    if "collected_info" not in writes:
        return StageEvent.FAILED
    return StageEvent.NEEDS_INPUT if writes.get("needs_input") else StageEvent.DONE


def classify_ledger(writes: Writes, _threshold: float) -> StageEvent:
    """Return what follows a round of the workers."""
    step = str(writes.get("ledger_step"))
    return next((_LEDGER_EVENTS[one] for one in LedgerStep if one == step), StageEvent.FAILED)


def classify_work(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether a worker calls tools or has ended, including to wait for the user."""
    if writes.get("tool_calls"):
        return StageEvent.CALLS
    return StageEvent.DONE if writes.get("worker_outputs") else StageEvent.FAILED


def classify_swarm_answer(writes: Writes, _threshold: float) -> StageEvent:
    """Return whether anything was found for an answer."""
    return StageEvent.DONE if writes.get("response") else StageEvent.NOTHING
