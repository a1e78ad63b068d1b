"""Derives the event of a hop from the attributes that its agent wrote.

Each `classify_` function belongs to stages in `manager/flows`; its second argument is the quality
threshold.
"""

from envelope.conversation import ClarificationReason, ConversationAct
from envelope.envelope import Hop
from envelope.role import Role
from envelope.swarm import LedgerStep, PlanStep
from envelope.tool_loop import Intent
from manager.flow import Stage, StageEvent
from manager.state import State

# Hot path: in Python 3.11, access to an enum member takes four times as long as to a variable.
_MANAGER, _DONE, _FAILED = Role.MANAGER, StageEvent.DONE, StageEvent.FAILED
_PAUSE_STATES = {
    "over": StageEvent.PAUSE_OVER,
    "unanswered": StageEvent.PAUSE_UNANSWERED,
    "foreign": StageEvent.PAUSE_FOREIGN,
}
_JUDGEMENTS = {"research": StageEvent.RESEARCH, "regenerate": StageEvent.REGENERATE}
_OUTSIDE = frozenset({None, ClarificationReason.OUT_OF_SCOPE})
_SEARCH_QUALITIES = frozenset({"excellent", "good", "poor"})
_SEARCH_REASONS: dict[ClarificationReason | None, StageEvent] = {
    ClarificationReason.AMBIGUOUS_QUERY: StageEvent.MANY,
    ClarificationReason.INSUFFICIENT_CONTEXT: StageEvent.NOTHING,
    ClarificationReason.MODEL_FAILED: StageEvent.NOTHING,
}
_WAY_EVENTS = {
    "search": StageEvent.SEARCHES,
    "tools": StageEvent.USES_TOOLS,
    "specialists": StageEvent.USES_SPECIALISTS,
    "swarm": StageEvent.USES_SWARM,
}
ACT_EVENTS: dict[ConversationAct, StageEvent] = {
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
"""The events of conversation acts that are not answered from the documents in the usual way."""
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
    LedgerStep.NOTHING_NEW: StageEvent.NOTHING_NEW,
}


def classify_result(
    stage: Stage, hop: Hop | None, state: State, *, quality_threshold: float
) -> StageEvent:
    """Return the event of a hop.

    Only the attributes that this hop wrote are read, not the attributes that earlier hops wrote. A
    stage of the manager has no hop and reads the whole payload.
    """
    if stage.role is _MANAGER:
        return stage.classify(state, quality_threshold)
    if hop is None or hop.role != stage.role or hop.status != "wrote":
        return _FAILED
    return stage.classify(state.written(hop.wrote), quality_threshold)


def classify_start(state: State, _threshold: float) -> StageEvent:
    """Return whether the message is a command, a question, or a reply to a pause."""
    ended = state.pause_state
    if ended is not None:
        return _PAUSE_STATES[ended]
    if state.reply_reading == "asked":
        return StageEvent.READS_REPLY
    return StageEvent.QUESTION if state.command is None else StageEvent.COMMAND


def classify_done(writes: State, _threshold: float) -> StageEvent:
    """Return whether the hop needs a clarification, wrote any attributes, or did neither."""
    if writes.needs_clarification:
        return StageEvent.ASKS
    return _DONE if writes.json else _FAILED


def classify_essence(writes: State, _threshold: float) -> StageEvent:
    """Return whether the message is a question, a conversation act, or an exit."""
    if writes.clarification_result == "exit":
        return StageEvent.EXIT
    if writes.needs_clarification:
        return StageEvent.ASKS
    act = writes.conversation_act
    if act is not None and act in ACT_EVENTS:
        return ACT_EVENTS[act]
    return _DONE if writes.canonical_question else _FAILED


def classify_guardrails(writes: State, _threshold: float) -> StageEvent:
    """Return whether there is a verified answer or, if not, whether the question is in scope."""
    if writes.verified_answer:
        return StageEvent.VERIFIED
    within = writes.within_scope
    if within is False and writes.clarification_reason in _OUTSIDE:
        return StageEvent.OUTSIDE
    if writes.needs_clarification:
        return StageEvent.ASKS
    return StageEvent.WITHIN if within else _FAILED


def classify_search(writes: State, _threshold: float) -> StageEvent:
    """Return whether the search has results, of any quality."""
    asks = writes.needs_clarification
    if asks or writes.search_error:
        otherwise = StageEvent.ASKS if asks else StageEvent.NOTHING
        return _SEARCH_REASONS.get(writes.clarification_reason, otherwise)
    return StageEvent.FOUND if writes.search_quality in _SEARCH_QUALITIES else _FAILED


def classify_response(writes: State, _threshold: float) -> StageEvent:
    """Return whether an answer was written."""
    if writes.generation_error:
        return StageEvent.GENERATION_ERROR
    if writes.needs_clarification:
        return StageEvent.ASKS
    return _DONE if writes.response else _FAILED


def classify_answer_of_search(writes: State, threshold: float) -> StageEvent:
    """Return whether an answer was written, or another search is needed."""
    if writes.searches_again:
        return StageEvent.RESEARCH
    return classify_response(writes, threshold)


def classify_quality(writes: State, threshold: float) -> StageEvent:
    """Return the decision of the judge.

    An approval with a score below the threshold, or of an answer that the sources do not support,
    is `LOW`. An answer that was not judged is approved.
    """
    if writes.needs_clarification:
        return StageEvent.ASKS
    decision = writes.quality_decision
    if decision != "approve":
        return _JUDGEMENTS.get(decision, _FAILED)
    score, validation = writes.quality_score, writes.validation_result
    # Null means that the answer was not judged. It is sent with a note that states this.
    is_unjudged = score is None and State.quality_score in writes
    is_enough = is_unjudged or (score is not None and score >= threshold)
    is_grounded = validation is None or validation.grounded is not False
    return StageEvent.APPROVED if is_enough and is_grounded else StageEvent.LOW


def classify_reply(writes: State, _threshold: float) -> StageEvent:
    """Return whether the agent wrote a reply."""
    return _DONE if writes.response else _FAILED


def classify_reading(writes: State, _threshold: float) -> StageEvent:
    """Return whether the agent interpreted a message as a reply to an open pause."""
    return _DONE if writes.reply_reading is not None else _FAILED


def classify_triage(writes: State, _threshold: float) -> StageEvent:
    """Return the chosen way of answering."""
    if writes.needs_clarification:
        return StageEvent.ASKS
    triage = writes.triage
    return _FAILED if triage is None else _WAY_EVENTS.get(triage.way, _FAILED)


def classify_reason(writes: State, _threshold: float) -> StageEvent:
    """Return whether the plan contains tool calls, and what follows them."""
    if writes.intent == Intent.OUT_OF_SCOPE:
        return StageEvent.OUTSIDE
    if writes.tool_calls:
        return StageEvent.CALLS_AND_PLANS if writes.continues_planning else StageEvent.CALLS
    if writes.needs_clarification:
        return StageEvent.ASKS
    if State.tool_calls not in writes:
        return _FAILED
    return StageEvent.NOTHING_NEW if writes.is_loop_over else StageEvent.READY


def classify_reflect(writes: State, _threshold: float) -> StageEvent:
    """Return whether there is a source for an answer, and whether the last round added any."""
    if writes.needs_clarification:
        return StageEvent.ASKS
    if writes.is_loop_over:
        return StageEvent.NOTHING_NEW
    return StageEvent.FOUND if writes.source_references else StageEvent.NOTHING


def classify_assess(state: State, _threshold: float) -> StageEvent:
    """Return the event of a stage of the last release whose agent no longer exists; the event leads
    to the judge.
    """
    return StageEvent.ENOUGH if state.response else StageEvent.ASKS


def classify_shown(state: State, _threshold: float) -> StageEvent:
    """Return whether another message of the same user is waiting."""
    return _DONE if state.text else _FAILED


def classify_shown_topic(writes: State, _threshold: float) -> StageEvent:
    """Return whether the waiting message ends the work.

    It does if a model judged it to be about a different topic, or to be a request to stop.
    """
    if not writes.canonical_question:
        return _FAILED
    act = writes.conversation_act
    if act is ConversationAct.EXIT:
        return StageEvent.OTHER_TOPIC
    is_judged = writes.decided_by in {"combined_call", "own_call"}
    is_new = writes.context_type == "new_topic" and act is None
    return StageEvent.OTHER_TOPIC if is_judged and is_new else _DONE


def classify_begin(state: State, _threshold: float) -> StageEvent:
    """Return whether a specialist is left to run in a branch."""
    return _DONE if state.agent_sequence else _FAILED


def classify_specialist(writes: State, _threshold: float) -> StageEvent:
    """Return whether a specialist calls tools, splits its work, or is done."""
    if writes.tool_calls:
        return StageEvent.CALLS
    if writes.part_plan:
        return StageEvent.SPLITS
    return _DONE if writes.json else _FAILED


def classify_synthesis(writes: State, _threshold: float) -> StageEvent:
    """Return whether an answer was written from the findings, or another round is needed."""
    if writes.needs_clarification:
        return StageEvent.ASKS
    if writes.further_round is not None:
        return StageEvent.AGAIN
    if writes.is_loop_over:
        return StageEvent.NOTHING_NEW
    return _DONE if writes.response else StageEvent.NOTHING


def classify_plan(writes: State, _threshold: float) -> StageEvent:
    """Return whether workers start, the plan needs approval, or a single search is sufficient."""
    step = writes.plan_step
    return _FAILED if step is None else _PLAN_EVENTS[step]


def classify_gather(writes: State, _threshold: float) -> StageEvent:
    """Return whether facts are missing that only the user can provide."""
    if State.collected_info not in writes:
        return _FAILED
    return StageEvent.NEEDS_INPUT if writes.needs_input else _DONE


def classify_ledger(writes: State, _threshold: float) -> StageEvent:
    """Return the next step after a round of the workers."""
    step = writes.ledger_step
    return _FAILED if step is None else _LEDGER_EVENTS[step]


def classify_work(writes: State, _threshold: float) -> StageEvent:
    """Return whether a worker calls tools, is done, or waits for the user."""
    if writes.tool_calls:
        return StageEvent.CALLS
    return _DONE if writes.worker_outputs else _FAILED


def classify_swarm_answer(writes: State, _threshold: float) -> StageEvent:
    """Return whether the swarm has an answer."""
    return _DONE if writes.response else StageEvent.NOTHING
