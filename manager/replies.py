"""Builds the final reply of a message, its last resort, and the changes of the memory."""

from collections.abc import Mapping

from pydantic import JsonValue

from citations.sources import MOST_PAGES, list_labels, list_nearest_pages
from envelope.conversation import (
    ClarificationReason,
    ConversationAct,
    Pause,
    Preferences,
    SuggestedAction,
    Turn,
)
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.sources import SearchResult
from envelope.swarm import TOPIC_CHANGE
from envelope.texts import Texts, primary_of
from envelope.verified import VERIFIED
from manager.flow import Ending
from manager.machine import NO_BETTER, Decision, End, count_rounds
from manager.pause_replies import PAUSE_ENDINGS, end_with_pause, find_new_pause, read_language
from manager.way_report import describe_way, find_remaining, make_offer
from memory.conversation import Ended

DEAD_LETTER = "dead_letter"
"""The termination reason of a question that no process could work on."""
BUDGETS = (
    "budget_model_calls",
    "budget_tool_calls",
    "budget_tokens",
    "budget_usd",
    "budget_tenant_usd",
)
"""The termination reasons of exhausted budgets."""
_OUT_OF_TIME = ("deadline", "total_time_limit")
_OUT_OF_ATTEMPTS = (
    "process_count_limit",
    "research_limit",
    "regenerate_limit",
    "round_limit",
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
_REFUSALS = {"round_limit": "rounds_reached", "research_limit": "searches_reached"}
_FIXED_REFUSALS = {
    ClarificationReason.OUT_OF_SCOPE: "refused_out_of_scope",
    ClarificationReason.INSUFFICIENT_CONTEXT: "refused_insufficient_context",
    ClarificationReason.INTERNAL_FAULT: "apology",
}


def name_best_answer_text(termination_reason: str) -> str:
    """Return the key of the text above an answer that was sent without an approval."""
    return _BEST_ANSWERS.get(termination_reason, "fault_reached")


def name_apology(termination_reason: str) -> str:
    """Return the key of the text of an end without an answer."""
    return _APOLOGIES.get(termination_reason, "apology")


def name_fixed_text(reason: ClarificationReason | None) -> str:
    """Return the key of the text that replaces an agent's own words for a reason."""
    return "clarify_again" if reason is None else _FIXED_REFUSALS.get(reason, "clarify_again")


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
    _Reason.INTERNAL_FAULT: "why_fault",
}
COURTESIES = frozenset(ConversationAct) - {ConversationAct.REPHRASE, ConversationAct.CORRECTION}
"""Acts that a fixed text answers; they are not stored as turns."""


def find_act(payload: Mapping[str, JsonValue]) -> ConversationAct | None:
    """Return the act of the message, if it has one."""
    value = payload.get("conversation_act")
    return ConversationAct(value) if value in set(ConversationAct) else None


def act_text(payload: Mapping[str, JsonValue], texts: Texts, language: str, topic: str) -> str:
    """Return the fixed text for the act of the message."""
    act = find_act(payload)
    key = _why_key(payload.get("history")) if act is ConversationAct.WHY else None
    if key is None:
        key = _TEXTS.get(act or ConversationAct.NO_ANSWER_YET, "act_no_answer")
    return texts.text(key, language, topic=topic)


def _why_key(history: JsonValue) -> str | None:
    """Return the text that explains the last turn; None if there is none."""
    last = history[-1] if isinstance(history, list) and history else None
    reason = last.get("reason") if isinstance(last, dict) else None
    if reason not in set(_Reason):
        return None
    return _WHY.get(_Reason(str(reason)), "why_asked")


Reply = dict[str, JsonValue]
SEARCH = "search"
_IS_APPROVED = "is_approved"
"""A best answer with it needs no note above it: the judge approved it."""
_LEAVE_NO_TURN = frozenset({Outcome.FAILED, Outcome.SUPERSEDED})
LANGUAGE_CONFIDENCE = 0.8
"""The least confidence with which a detected language is stored."""


def end_reply(
    envelope: Envelope, decision: Decision, end: End, texts: Texts, topic: str = ""
) -> Reply:
    """Return the final reply; the best answer replaces an answer that was not approved."""
    payload = envelope.payload
    best = payload.get("best_answer")
    if end.ending is Ending.BEST and isinstance(best, dict):
        reply = _best(best, envelope, decision.termination_reason, texts)
    elif end.ending is Ending.BEST:
        reply = _apology(envelope, texts, decision.termination_reason)
    elif end.ending is Ending.ACT:
        text = act_text(payload, texts, language_of(payload), topic)
        reply = {"outcome": "answered", "text": text}
        if find_act(payload) is ConversationAct.PERSON:
            reply["asks_for_person"] = True
    elif end.ending in PAUSE_ENDINGS:
        reply = end_with_pause(end.ending, payload, texts, language_of(payload))
    elif end.ending is Ending.EXIT:
        reply = {"outcome": "answered", "text": texts.text("exit", language_of(payload))}
    else:
        reply = _with_limit(_own_words(payload, decision, end, texts), payload, decision, texts)
    return _with_system(reply, envelope, decision.termination_reason)


def last_resort(
    envelope: Envelope, texts: Texts, termination_reason: str = "deadline"
) -> Reply | None:
    """Return the reply for the case that no process ends the question: the best answer so far, or
    an apology.

    Both name the true reason: the deadline, or a fault if the question is a dead letter. Returns
    None while the language of the user is unknown: the gateway's text then applies, in the language
    of the request.
    """
    reply = _last_answer(envelope, texts, termination_reason)
    return None if reply is None else _with_system(reply, envelope, termination_reason)


def dead_letter_changes(envelope: Envelope, texts: Texts) -> Reply:
    """Return the fields in which the reply of a dead letter differs from that of the deadline."""
    reply = _last_answer(envelope, texts, DEAD_LETTER)
    return {} if reply is None else {"text": reply["text"], "termination_reason": DEAD_LETTER}


def _last_answer(envelope: Envelope, texts: Texts, termination_reason: str) -> Reply | None:
    best = envelope.payload.get("best_answer")
    if isinstance(best, dict):
        return _best(best, envelope, termination_reason, texts)
    if _find_language(envelope.payload) is None:
        return None
    return _apology(envelope, texts, termination_reason)


def best_answer(payload: "Mapping[str, JsonValue]", threshold: float = 0.0) -> Reply | None:
    """Return the better answer, the latest one or the best one so far: an approved one, else the
    one with the higher score.

    An answer that was judged ungrounded is ignored. One below `threshold` is not approved.
    """
    before = payload.get("best_answer")
    before = before if isinstance(before, dict) else None
    score, result = payload.get("quality_score"), payload.get("validation_result")
    ungrounded = isinstance(result, dict) and result.get("grounded") is False
    if not isinstance(score, int | float) or ungrounded or not payload.get("response"):
        return before
    is_approved = isinstance(result, dict) and result.get("approved") is True and score >= threshold
    if before is not None and _rank(before) >= (is_approved, score):
        return before
    return _answer(payload) | ({_IS_APPROVED: True} if is_approved else {})


def _rank(best: Reply) -> tuple[bool, float]:
    score = best.get("quality_score")
    return _IS_APPROVED in best, float(score) if isinstance(score, int | float) else -1.0


def remember(envelope: Envelope, reply: Reply) -> Ended:
    """Return the changes of the memory at the end of this message."""
    payload = envelope.payload
    if payload.get("command") is not None:
        return _remember_command(payload)
    outcome = Outcome(str(reply["outcome"]))
    if is_aside(payload):
        return _remember_aside(payload, outcome, envelope.total_processing_time)
    asks = outcome is Outcome.CLARIFICATION
    pause = new_pause(envelope, reply) if asks else make_offer(envelope, reply)
    if payload.get("keeps_pause"):
        # A conversation has one open pause, and the present one waits for somebody else.
        pause = None
    answered = payload.get("open_pause") is not None and outcome is not Outcome.FAILED
    if payload.get("client_keeps_history"):
        return Ended(pause=pause, brief=True)
    return Ended(
        turns=_turns(envelope, reply) if outcome not in _LEAVE_NO_TURN else (),
        preferences=_make_preferences(payload),
        pause=pause,
        close_pause=answered or payload.get("closes_pause") is True,
        statistics={
            "questions": 1,
            f"outcome_{outcome.value}": 1,
            "processing_seconds": round(envelope.total_processing_time, 4),
        },
    )


def is_aside(payload: "Mapping[str, JsonValue]") -> bool:
    """Return whether the message asked nothing: later questions must not refer to it."""
    return find_act(payload) in COURTESIES or payload.get("clarification_result") == "exit"


def _remember_aside(payload: "Mapping[str, JsonValue]", outcome: Outcome, seconds: float) -> Ended:
    """Return the end of an aside: no turn is stored, and only an exit closes a pause."""
    leaves = payload.get("clarification_result") == "exit" and not payload.get("keeps_pause")
    if payload.get("client_keeps_history"):
        return Ended(close_pause=leaves, brief=True)
    return Ended(
        preferences=find_choice(payload),
        close_pause=leaves,
        statistics={
            "questions": 1,
            f"outcome_{outcome.value}": 1,
            "processing_seconds": round(seconds, 4),
        },
    )


def new_pause(envelope: Envelope, reply: Reply) -> Pause:
    """Return the pause of a clarification; its round is one higher than the previous round."""
    payload = envelope.payload
    found = find_new_pause(payload)
    if found is not None:
        return found
    actions = reply.get("suggested_actions")
    options = [
        SuggestedAction.model_validate(action)
        for action in (actions if isinstance(actions, list) else ())
        if isinstance(action, dict) and action.get("kind") == "option"
    ]
    best = payload.get("best_answer")
    return Pause(
        pause_id=envelope.message_id,
        original_question=str(payload.get("canonical_question") or payload.get("text") or ""),
        original_text=str(payload.get("text") or ""),
        reason=ClarificationReason(str(payload["clarification_reason"])),
        asked=str(reply["text"]),
        options=tuple(one.value for one in options),
        places=tuple(one.crumbs for one in options) if any(one.crumbs for one in options) else (),
        round=count_rounds(payload) + 1,
        best_answer=dict(best) if isinstance(best, dict) else None,
        groups=envelope.groups or None,
        remaining=find_remaining(payload),
        flow=envelope.flow,
    )


def _own_words(
    payload: "Mapping[str, JsonValue]", decision: Decision, end: End, texts: Texts
) -> Reply:
    outcome = end.outcome if end.outcome is not None else Outcome.FAILED
    if end.ending is Ending.ANSWER:
        return _answer(payload)
    if end.ending is Ending.FIXED:
        key = name_fixed_text(decision.reason)
        return {"outcome": outcome.value, "text": texts.text(key, language_of(payload))}
    return {
        "outcome": outcome.value,
        "text": str(payload.get("response") or ""),
        "suggested_actions": payload.get("suggested_actions") or [],
        "clarification_type": payload.get("clarification_type"),
        "clarification_reason": decision.reason.value if decision.reason is not None else None,
    }


def _answer(payload: "Mapping[str, JsonValue]") -> Reply:
    return {
        "outcome": Outcome.ANSWERED.value,
        "text": str(payload.get("response") or ""),
        "sources": payload.get("sources_used") or [],
        "quality_score": payload.get("quality_score"),
        "model": payload.get("answer_model") or None,
        **_describe_author(payload),
    }


def _describe_author(payload: "Mapping[str, JsonValue]") -> Reply:
    """Return the author of the answer (owner, model or search), with the found passages."""
    if payload.get("verified_answer"):
        return {"answered_by": VERIFIED}
    author = payload.get("answered_by")
    names = ("answered_by", *(("fallback_reason", "passages") if author == SEARCH else ()))
    return {name: payload.get(name) for name in names} if author else {}


def _best(best: Reply, envelope: Envelope, termination_reason: str, texts: Texts) -> Reply:
    """Return the best answer, below the reason for which the work ended before its approval."""
    if _IS_APPROVED in best:
        return {**best, "outcome": Outcome.ANSWERED.value}
    key = name_best_answer_text(termination_reason)
    note = texts.text(key, language_of(envelope.payload))
    text = f"{note}\n\n{best.get('text') or ''}"
    return {**best, "outcome": Outcome.ANSWERED.value, "text": text}


def _with_limit(
    reply: Reply, payload: "Mapping[str, JsonValue]", decision: Decision, texts: Texts
) -> Reply:
    """Return a refusal at a limit below the limit that ended the work on the question.

    Where `MAX_CLARIFICATION_ROUNDS` is 0, nobody was asked back, and no sentence says so.
    """
    key = _REFUSALS.get(decision.termination_reason)
    was_asked = key != "rounds_reached" or count_rounds(payload) > 0
    if key is None or not was_asked or reply["outcome"] != Outcome.REFUSED.value:
        return reply
    return {**reply, "text": f"{texts.text(key, language_of(payload))}\n\n{reply['text']}"}


def _apology(envelope: Envelope, texts: Texts, termination_reason: str = "") -> Reply:
    """Return an apology with the id by which the operator finds the question again.

    It lists the pages that the search had found: they may hold the answer.
    """
    language = language_of(envelope.payload)
    if termination_reason == TOPIC_CHANGE:
        text = texts.text(TOPIC_CHANGE, language)
        return {"outcome": Outcome.SUPERSEDED.value, "text": text}
    reference = texts.text("reference", language, reference=envelope.message_id)
    key = name_apology(termination_reason)
    pages = list_nearest_pages(_find_nearest(envelope.payload))
    text = f"{texts.text(key, language)}\n\n{reference}"
    if pages:
        text = f"{text}\n\n{list_labels(texts.text('nearest_pages', language), pages)}"
    actions: JsonValue = [page.model_dump(mode="json", exclude_none=True) for page in pages]
    return {"outcome": Outcome.FAILED.value, "text": text, "suggested_actions": actions}


def _find_nearest(payload: "Mapping[str, JsonValue]") -> tuple[SearchResult, ...]:
    """Return the first result of each of the nearest pages; only these are parsed."""
    results = payload.get("search_results")
    nearest: dict[str, dict[str, JsonValue]] = {}
    for result in results if isinstance(results, list) else ():
        if isinstance(result, dict) and len(nearest) < MOST_PAGES:
            nearest.setdefault(str(result.get("document_id")), result)
    return tuple(SearchResult.model_validate(result) for result in nearest.values())


def _with_system(reply: Reply, envelope: Envelope, termination_reason: str) -> Reply:
    return {
        "language": language_of(envelope.payload),
        "sources": [],
        "suggested_actions": [],
        **{name: value for name, value in reply.items() if name != _IS_APPROVED},
        "question": envelope.payload.get("canonical_question"),
        "termination_reason": termination_reason,
        "conversation_id": envelope.conversation_id,
        "message_id": envelope.message_id,
        "hops": envelope.process_count,
        "processing_seconds": round(envelope.total_processing_time, 4),
        **_model_usage(envelope.payload),
        **describe_way(envelope.payload, str(reply.get("outcome"))),
        **_describe_cancelled(envelope.payload),
    }


def _describe_cancelled(payload: "Mapping[str, JsonValue]") -> Reply:
    """Return the tasks of an earlier question that this one replaced; asides replace none."""
    tasks = payload.get("cancelled_tasks")
    return {"cancelled_tasks": tasks} if tasks and not is_aside(payload) else {}


def _model_usage(payload: "Mapping[str, JsonValue]") -> Reply:
    """Return the usage of the models; empty if none was asked."""
    usage = payload.get("model_usage")
    return {"model_usage": usage} if isinstance(usage, dict) else {}


def language_of(payload: "Mapping[str, JsonValue]") -> str:
    """Return the language of the reply and its texts, BCP 47; English if none is known."""
    return _find_language(payload) or "en"


def _find_language(payload: "Mapping[str, JsonValue]") -> str | None:
    chosen = payload.get("remember_preferences")
    language = chosen.get("language") if isinstance(chosen, dict) else read_language(payload)
    if isinstance(language, str) and language:
        return language
    preferences = payload.get("preferences")
    known = preferences.get("language") if isinstance(preferences, dict) else None
    return known if isinstance(known, str) and known else None


def _turns(envelope: Envelope, reply: Reply) -> tuple[Turn, ...]:
    payload, groups = envelope.payload, envelope.groups or None
    language = primary_of(language_of(payload))
    return (
        Turn(
            speaker="user",
            text=str(payload.get("reply_text") or payload.get("text") or ""),
            meant=_meant(payload),
            language=language,
            groups=groups,
        ),
        Turn(
            speaker="assistant",
            text=str(reply["text"]),
            language=language,
            outcome=str(reply["outcome"]),
            reason=_find_reason(reply),
            groups=groups,
        ),
    )


def _find_reason(reply: Reply) -> str | None:
    reason = reply.get("clarification_reason")
    return reason if isinstance(reason, str) else None


def _meant(payload: "Mapping[str, JsonValue]") -> str | None:
    """Return the complete question if the text only answers a clarification or is a follow-up."""
    answers = payload.get("clarification_result") == "search_again"
    whole = payload.get("canonical_question")
    goes_on = payload.get("context_type") == "follow_up" and whole not in {
        payload.get("text"),
        payload.get("text_eng"),
    }
    return str(whole) if whole and (answers or goes_on) else None


def find_choice(payload: "Mapping[str, JsonValue]") -> Preferences | None:
    """Return what the user chose with this message for all further answers."""
    chosen = payload.get("remember_preferences")
    return Preferences.model_validate(chosen) if chosen is not None else None


def _make_preferences(payload: "Mapping[str, JsonValue]") -> Preferences | None:
    if (chosen := find_choice(payload)) is not None:
        return chosen
    before = Preferences.model_validate(payload.get("preferences") or {})
    confidence = payload.get("confidence")
    sure = isinstance(confidence, int | float) and confidence >= LANGUAGE_CONFIDENCE
    language = read_language(payload)
    if before.explicit or not sure or not language or language == before.language:
        return None
    return Preferences(language=language, explicit=False)


def _remember_command(payload: "Mapping[str, JsonValue]") -> Ended:
    return Ended(
        preferences=find_choice(payload),
        statistics={} if payload.get("forget") else {"commands": 1},
        forget=str(payload.get("forget") or ""),
    )
