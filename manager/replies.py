"""Builds the final reply of a message, its fallback reply, and its changes to the memory."""

from collections.abc import Sequence

from pydantic import JsonValue

from citations.addresses import addresses_of
from citations.links import Allowed, is_free_of_foreign_links, keep_links
from citations.sources import MOST_PAGES, list_labels, list_nearest_pages
from envelope.conversation import (
    BY_PERSON,
    HANDED_OVER,
    PERSON_REPLY,
    ClarificationReason,
    ConversationAct,
    Pause,
    Preferences,
    SuggestedAction,
    Turn,
)
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.swarm import TOPIC_CHANGE
from envelope.texts import Texts, primary_of
from envelope.verified import VERIFIED
from manager.flow import Counter, Ending
from manager.machine import NO_BETTER, Decision, End
from manager.pause_replies import PAUSE_ENDINGS, end_with_pause
from manager.state import BestAnswer, Json, State
from manager.unjudged import UNJUDGED_FIELDS, add_notices
from manager.way_report import describe_way, make_offer
from memory.conversation import Ended

DEADLINE = "deadline"
DEAD_LETTER = "dead_letter"
"""The termination reason of a question whose entry became a dead letter."""
BUDGETS = (
    "budget_model_calls",
    "budget_tool_calls",
    "budget_tokens",
    "budget_usd",
    "budget_tenant_usd",
)
"""The termination reasons of exhausted budgets."""
_OUT_OF_TIME = (DEADLINE, "total_time_limit")
_OUT_OF_ATTEMPTS = (
    "process_count_limit",
    "research_limit",
    "regenerate_limit",
    "round_limit",
    "iteration_limit",
    NO_BETTER,
    *BUDGETS,
)
_BEST_ANSWERS = {
    **dict.fromkeys(_OUT_OF_TIME, "limit_reached"),
    **dict.fromkeys(_OUT_OF_ATTEMPTS, "attempts_reached"),
    TOPIC_CHANGE: TOPIC_CHANGE,
}
_APOLOGIES = {
    **dict.fromkeys(_OUT_OF_TIME, "deadline"),
    **dict.fromkeys(("process_count_limit", *BUDGETS), "steps_reached"),
}
_REFUSALS = {
    "round_limit": "rounds_reached",
    "research_limit": "searches_reached",
    "iteration_limit": "searches_reached",
}
_FIXED_REFUSALS = {
    ClarificationReason.OUT_OF_SCOPE: "refused_out_of_scope",
    ClarificationReason.INSUFFICIENT_CONTEXT: "refused_insufficient_context",
    ClarificationReason.MODEL_FAILED: "apology",
    ClarificationReason.INTERNAL_FAULT: "apology",
}
_Reason = ClarificationReason
_TEXTS = {
    ConversationAct.GREETING: "push_start",
    ConversationAct.THANKS: "act_thanks",
    ConversationAct.FAREWELL: "act_farewell",
    ConversationAct.ACKNOWLEDGEMENT: "act_acknowledgement",
    ConversationAct.EXIT: "act_acknowledgement",
    ConversationAct.CAPABILITIES: "act_capabilities",
    ConversationAct.PERSON: "act_person",
    ConversationAct.STRAY_CHOICE: "push_expired",
    ConversationAct.NO_ANSWER_YET: "act_no_answer",
    ConversationAct.PREFERENCE: "act_preference",
}
_WHY = {
    _Reason.OUT_OF_SCOPE: "why_scope",
    _Reason.SCOPE_UNCLEAR: "why_scope",
    _Reason.INSUFFICIENT_CONTEXT: "why_missing",
    _Reason.QUALITY_INSUFFICIENT: "why_missing",
    _Reason.MODEL_FAILED: "why_fault",
    _Reason.INTERNAL_FAULT: "why_fault",
}
COURTESIES = frozenset(ConversationAct) - {ConversationAct.REPHRASE, ConversationAct.CORRECTION}
"""Conversation acts that are answered with a fixed text and not stored as turns."""
SEARCH = "search"
_IS_APPROVED = BestAnswer.is_approved.name
_FOR_MANAGER = frozenset({_IS_APPROVED, *UNJUDGED_FIELDS})
_LEAVE_NO_TURN = frozenset({Outcome.FAILED, Outcome.SUPERSEDED})
LANGUAGE_CONFIDENCE = 0.8
"""Minimum confidence of a detected language that is stored."""
Reply = dict[str, JsonValue]
_BY_COMMAND: dict[str, Reply] = {
    PERSON_REPLY: {"answered_by": BY_PERSON},
    HANDED_OVER: {"asks_for_person": True, "handed_over": True},
}


def end_reply(
    envelope: Envelope, decision: Decision, end: End, texts: Texts, topic: str = ""
) -> Reply:
    """Return the final reply."""
    state = State(envelope.payload)
    language, reason = language_of(state), decision.termination_reason
    match end.ending:
        case Ending.BEST:
            reply = _end_with_best(envelope, state, texts, language, reason)
        case Ending.ACT:
            reply = {"outcome": "answered", "text": act_text(state, texts, language, topic)}
            if state.conversation_act is ConversationAct.PERSON:
                reply["asks_for_person"] = True
        case Ending.EXIT:
            reply = {"outcome": "answered", "text": texts.text("exit", language)}
        case ending if ending in PAUSE_ENDINGS:
            reply = end_with_pause(ending, state, texts, language)
        case _:
            reply = _agent_reply(state, decision, end, texts, language)
            reply = _with_limit(reply, state, texts, language, reason)
    return _with_system(reply, envelope, state, language, reason)


def add_contact(
    reply: Reply, contact: str, texts: Texts, language: str, *, is_unmatched: bool = False
) -> Reply:
    """Add the contact to a refusal, and to the reply to a user who asks for a person.

    The contact is also added to passages if the search found no clear match, because without a
    model it is unknown whether the user asks for a person.
    """
    is_wanted = reply.get("asks_for_person") or reply["outcome"] == Outcome.REFUSED
    has_poor_passages = is_unmatched and reply.get("answered_by") == SEARCH
    if not contact or not (is_wanted or has_poor_passages):
        return reply
    line = texts.text("contact_line", language, contact=contact)
    return reply | {"text": f"{reply['text']}\n\n{line}", "contact": contact}


def make_last_resort(envelope: Envelope, texts: Texts) -> tuple[Reply | None, Reply]:
    """Return the fallback reply for a question that has not ended by its deadline, and the fields
    that differ in the fallback reply for a dead letter.

    Both replies contain the best answer so far, or an error message. While the language of the user
    is unknown and there is no answer, the reply is None, and the gateway uses a text in the
    language of the request.
    """
    state = State(envelope.payload)
    language = _find_language(state)
    if language is None and state.best_answer is None:
        return None, {}
    language = language or "en"
    nearest = _list_nearest_pages(state) if state.best_answer is None else ()
    late, dead = (
        _end_with_best(envelope, state, texts, language, reason, nearest)
        for reason in (DEADLINE, DEAD_LETTER)
    )
    changes: Reply = {"text": dead["text"], "termination_reason": DEAD_LETTER}
    return _with_system(late, envelope, state, language, DEADLINE), changes


def name_best_answer_text(termination_reason: str) -> str:
    """Return the key of the note above an answer that is sent without having been approved."""
    return _BEST_ANSWERS.get(termination_reason, "fault_reached")


def name_apology(termination_reason: str) -> str:
    """Return the key of the error message for a message without an answer."""
    return _APOLOGIES.get(termination_reason, "apology")


def name_fixed_text(reason: ClarificationReason | None) -> str:
    """Return the key of the fixed text that replaces the text of the clarification agent."""
    return "clarify_again" if reason is None else _FIXED_REFUSALS.get(reason, "clarify_again")


def act_text(state: State, texts: Texts, language: str, topic: str) -> str:
    """Return the fixed text for the conversation act of the message."""
    act = state.conversation_act
    key = _why_key(state) if act is ConversationAct.WHY else None
    if key is None:
        key = _TEXTS.get(act or ConversationAct.NO_ANSWER_YET, "act_no_answer")
    return texts.text(key, language, topic=topic)


def best_answer(state: State, threshold: float = 0.0) -> Json | None:
    """Return the better of the latest answer and the best one so far, or None.

    An approved answer is better; if neither is approved, the answer with the higher score is
    better. An answer that was judged ungrounded is ignored. One that scores below `threshold` is
    not approved.
    """
    before, score, validation = state.best_answer, state.quality_score, state.validation_result
    is_ungrounded = validation is not None and validation.grounded is False
    if before is not None and before.is_unjudged and (score is not None or is_ungrounded):
        before = None  # It has been judged since.
    kept = None if before is None else before.json
    if score is None or is_ungrounded or not state.response:
        return kept
    is_approved = validation is not None and validation.approved and score >= threshold
    if before is not None and _rank(before) >= (is_approved, score):
        return kept
    return describe_answer(state) | ({_IS_APPROVED: True} if is_approved else {})


def describe_answer(state: State) -> Reply:
    """Return the fields of an answer as it was written."""
    return {
        "outcome": Outcome.ANSWERED.value,
        "text": state.response,
        "sources": state.sources_used,
        "quality_score": state.quality_score,
        "model": state.answer_model or None,
        **_describe_author(state),
    }


def remember(envelope: Envelope, reply: Reply) -> Ended:
    """Return the changes to the memory when a message is completed."""
    state = State(envelope.payload)
    if state.command is not None:
        return _remember_command(state)
    outcome = Outcome(str(reply["outcome"]))
    if is_aside(state):
        return _remember_aside(state, outcome, envelope.total_processing_time)
    asks = outcome is Outcome.CLARIFICATION
    pause = new_pause(envelope, reply) if asks else make_offer(envelope, reply)
    if state.keeps_pause:
        # A conversation has at most one open pause, and the current one waits for another user.
        pause = None
    if state.client_keeps_history:
        return Ended(pause=pause, brief=True)
    # A pause that cannot be parsed is closed as well.
    is_met = bool(state.copy_filled(State.open_pause)) and not state.leaves_open
    is_answered = is_met and outcome is not Outcome.FAILED
    return Ended(
        turns=_turns(envelope, state, reply) if outcome not in _LEAVE_NO_TURN else (),
        preferences=_make_preferences(state),
        pause=pause,
        close_pause=is_answered or state.closes_pause,
        statistics=_count(outcome, envelope.total_processing_time),
    )


def is_aside(state: State) -> bool:
    """Return whether the message is not a question, so that later messages must not refer to it."""
    return state.conversation_act in COURTESIES or state.clarification_result == "exit"


def new_pause(envelope: Envelope, reply: Reply) -> Pause:
    """Return the pause of a clarification, with the next round number."""
    state = State(envelope.payload)
    if (begun := state.new_pause) is not None:
        return begun
    options = [action for action in State(reply).offered_actions if action.kind == "option"]
    best = state.best_answer
    return Pause(
        pause_id=envelope.message_id,
        original_question=state.canonical_question or state.text,
        original_text=state.text,
        reason=state.clarification_reason or ClarificationReason.MISSING_DETAILS,
        asked=str(reply["text"]),
        options=tuple(option.value for option in options),
        places=tuple(option.crumbs for option in options) if any(o.crumbs for o in options) else (),
        round=state.counters.get(Counter.ROUND, 0) + 1,
        created=envelope.create_ts,
        best_answer=None if best is None else {**best.json},
        groups=envelope.groups or None,
        remaining=state.remaining_questions,
        flow=envelope.flow,
    )


def language_of(state: State) -> str:
    """Return the language of the reply as a BCP 47 tag, or "en" if it is unknown."""
    return _find_language(state) or "en"


def _why_key(state: State) -> str | None:
    """Return the key of the text that explains the last turn, or None."""
    reason = state.history[-1].reason if state.history else None
    if reason not in set(_Reason):
        return None
    return _WHY.get(_Reason(reason), "why_asked")


def _rank(best: BestAnswer) -> tuple[bool, float]:
    score = best.quality_score
    return best.is_approved, -1.0 if score is None else score


def _count(outcome: Outcome, seconds: float) -> dict[str, float]:
    """Return the increments of the conversation statistics for a question."""
    return {
        "questions": 1,
        f"outcome_{outcome.value}": 1,
        "processing_seconds": round(seconds, 4),
    }


def _remember_aside(state: State, outcome: Outcome, seconds: float) -> Ended:
    """Return the memory changes for an aside. Turns are not stored for asides, and only an exit
    closes a pause.
    """
    leaves = state.clarification_result == "exit" and not state.keeps_pause
    if state.client_keeps_history:
        return Ended(close_pause=leaves, brief=True)
    return Ended(
        preferences=state.remember_preferences,
        close_pause=leaves,
        statistics=_count(outcome, seconds),
    )


def _agent_reply(state: State, decision: Decision, end: End, texts: Texts, language: str) -> Reply:
    outcome = end.outcome if end.outcome is not None else Outcome.FAILED
    if end.ending is Ending.ANSWER:
        return describe_answer(state)
    if end.ending is Ending.FIXED:
        key = name_fixed_text(decision.reason)
        return {"outcome": outcome.value, "text": texts.text(key, language)}
    return {
        "outcome": outcome.value,
        "text": state.response,
        "suggested_actions": state.suggested_actions,
        "clarification_type": state.clarification_type or None,
        "clarification_reason": decision.reason.value if decision.reason is not None else None,
        **_BY_COMMAND.get(state.command or "", {}),
    }


def _describe_author(state: State) -> Reply:
    """Return the author of the answer (owner, model, or search), and the passages of a search."""
    if state.verified_answer:
        return {"answered_by": VERIFIED}
    author = state.answered_by
    if author != SEARCH:
        return {"answered_by": author} if author else {}
    return {
        "answered_by": author,
        "fallback_reason": state.fallback_reason or None,
        "passages": state.passages or None,
    }


def _end_with_best(
    envelope: Envelope,
    state: State,
    texts: Texts,
    language: str,
    termination_reason: str,
    nearest: Sequence[SuggestedAction] | None = None,
) -> Reply:
    """Return the best answer or, if there is none, an error message with the `nearest` pages.

    If the answer is not approved, a note above it states why the work ended.
    """
    best = state.best_answer
    if best is None:
        pages = _list_nearest_pages(state) if nearest is None else nearest
        return _apologise(envelope.message_id, texts, language, termination_reason, pages)
    if best.is_approved:
        return {**best.json, "outcome": Outcome.ANSWERED.value}
    key = name_best_answer_text(termination_reason)
    if best.is_unjudged and key == "attempts_reached":
        key = "steps_ended"
    text = f"{texts.text(key, language)}\n\n{add_notices(best, texts, language)}"
    return {**best.json, "outcome": Outcome.ANSWERED.value, "text": text}


def _with_limit(
    reply: Reply, state: State, texts: Texts, language: str, termination_reason: str
) -> Reply:
    """Return the reply. If a limit was reached, a refusal starts with a sentence about the limit.

    If `MAX_CLARIFICATION_ROUNDS` is 0, the user was never asked, so the sentence is omitted.
    """
    key = _REFUSALS.get(termination_reason)
    was_asked = key != "rounds_reached" or state.counters.get(Counter.ROUND, 0) > 0
    if key is None or not was_asked or reply["outcome"] != Outcome.REFUSED.value:
        return reply
    return {**reply, "text": f"{texts.text(key, language)}\n\n{reply['text']}"}


def _list_nearest_pages(state: State) -> Sequence[SuggestedAction]:
    return tuple(list_nearest_pages(state.list_nearest_results(MOST_PAGES)))


def _apologise(
    message_id: str,
    texts: Texts,
    language: str,
    termination_reason: str,
    pages: Sequence[SuggestedAction],
) -> Reply:
    """Return an error message with the message id, so that an operator can find the question.

    It lists the closest pages, which may contain the answer.
    """
    if termination_reason == TOPIC_CHANGE:
        text = texts.text(TOPIC_CHANGE, language)
        return {"outcome": Outcome.SUPERSEDED.value, "text": text}
    reference = texts.text("reference", language, reference=message_id)
    text = f"{texts.text(name_apology(termination_reason), language)}\n\n{reference}"
    if pages:
        text = f"{text}\n\n{list_labels(texts.text('nearest_pages', language), pages)}"
    actions: JsonValue = [page.model_dump(mode="json", exclude_none=True) for page in pages]
    return {"outcome": Outcome.FAILED.value, "text": text, "suggested_actions": actions}


def _with_system(
    reply: Reply, envelope: Envelope, state: State, language: str, termination_reason: str
) -> Reply:
    return {
        "language": language,
        "sources": [],
        "suggested_actions": [],
        **{name: value for name, value in reply.items() if name not in _FOR_MANAGER},
        "question": _describe_question(state) or None,
        "termination_reason": termination_reason,
        "conversation_id": envelope.conversation_id,
        "message_id": envelope.message_id,
        "hops": envelope.process_count,
        "processing_seconds": round(envelope.total_processing_time, 4),
        **state.copy(State.model_usage),
        **describe_way(state, str(reply.get("outcome"))),
        **_describe_cancelled(state),
    }


def _describe_question(state: State) -> str:
    """Return the question as the system understood it.

    A model may have written it, so links and addresses that the user did not type are removed.
    """
    question = state.canonical_question
    named, is_free = addresses_of(question), is_free_of_foreign_links(question, ())
    if is_free and not named:
        # Every hop creates a fallback reply, and searching a whole conversation takes milliseconds.
        return question
    turns = (turn.text for turn in state.history if turn.speaker == "user")
    typed = (state.text, state.reply_text, *turns)
    held = frozenset[str]().union(*map(addresses_of, typed))
    if is_free and named <= held:
        return question
    return keep_links(question, Allowed(held=held, any_host=True)).text


def _describe_cancelled(state: State) -> Reply:
    """Return the cancelled tasks of the question that was replaced by this message."""
    tasks = state.cancelled_tasks
    return {"cancelled_tasks": [*tasks]} if tasks and not is_aside(state) else {}


def _find_language(state: State) -> str | None:
    chosen = state.remember_preferences
    language = state.reply_language if chosen is None else chosen.language
    if language:
        return language
    preferences = state.preferences
    return None if preferences is None else preferences.language or None


def _turns(envelope: Envelope, state: State, reply: Reply) -> tuple[Turn, ...]:
    language, groups = primary_of(language_of(state)), envelope.groups or None
    reason = State(reply).clarification_reason
    return (
        Turn(
            speaker="user",
            text=state.reply_text or state.text,
            meant=_meant(state),
            language=language,
            groups=groups,
        ),
        Turn(
            speaker="assistant",
            text=str(reply["text"]),
            language=language,
            outcome=str(reply["outcome"]),
            reason=None if reason is None else reason.value,
            groups=groups,
        ),
    )


def _meant(state: State) -> str | None:
    """Return the standalone question if the text answers a clarification or is a follow-up."""
    whole = state.canonical_question
    is_answer = state.clarification_result == "search_again"
    goes_on = state.context_type == "follow_up" and whole not in {state.text, state.text_eng}
    return whole if whole and (is_answer or goes_on) else None


def _make_preferences(state: State) -> Preferences | None:
    if (chosen := state.remember_preferences) is not None:
        return chosen
    before = state.preferences or Preferences()
    language = state.reply_language
    is_sure = state.confidence >= LANGUAGE_CONFIDENCE
    if before.explicit or not is_sure or not language or language == before.language:
        return None
    return Preferences(language=language, explicit=False)


def _remember_command(state: State) -> Ended:
    return Ended(
        preferences=state.remember_preferences,
        statistics={} if state.forget else {"commands": 1},
        forget=state.forget,
    )
