"""What a question ends with, and what is remembered of it."""

import pytest
from pydantic import JsonValue

from config.texts import load_texts
from envelope.conversation import ClarificationReason, ConversationAct, Preferences
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.sources import SearchResult
from envelope.texts import Texts
from gateway.answer import safe_reply
from manager import replies
from manager.flow import Ending
from manager.machine import Decision, End
from manager.replies import COURTESIES, act_text
from manager.state import State
from tests.support.worker_harness import FixedTexts

Payload = dict[str, JsonValue]
BEST: Payload = {"text": "the best", "sources": [], "quality_score": 0.6, "outcome": "answered"}


def envelope(**payload: JsonValue) -> Envelope:
    return Envelope(
        tenant="acme", assistant="docs", channel="test", conversation_id="c", message_id="m",
        create_ts=0, update_ts=0, deadline_ts=60, payload={"text": "How?", **payload},
    )  # fmt: skip


def make_judged_payload(score: float, *, grounded: bool = True, **more: JsonValue) -> Payload:
    return {
        "response": "new",
        "quality_score": score,
        "validation_result": {"grounded": grounded},
        **more,
    }


def make_last_resort(asked: Envelope, texts: Texts) -> Payload | None:
    return replies.make_last_resort(asked, texts)[0]


def make_result(number: int) -> Payload:
    result = SearchResult(
        chunk_id=f"c{number}", document_id=f"d{number}", title=f"Page {number}",
        path=f"{number}.md", score=0.5, levels=(),
    )  # fmt: skip
    return result.model_dump(mode="json")


def test_the_better_scored_answer_is_kept() -> None:
    worse, better = (
        replies.best_answer(State(make_judged_payload(0.5, best_answer=BEST))),
        make_judged_payload(0.7, best_answer=BEST),
    )

    assert worse == BEST
    assert (replies.best_answer(State(better)) or {})["text"] == "new"


def test_an_approved_best_answer_is_sent_unchanged_and_not_replaced_by_an_unapproved_one() -> None:
    validation: Payload = {"grounded": True, "approved": True}
    approved = make_judged_payload(0.8) | {"validation_result": validation}
    end, decision = End(Ending.BEST, Outcome.ANSWERED), Decision("row", (), {}, None)

    best = replies.best_answer(State(approved), 0.7)
    later = replies.best_answer(State(make_judged_payload(0.9, best_answer=best)), 0.7)
    reply = replies.end_reply(envelope(best_answer=later), decision, end, FixedTexts())
    below = replies.best_answer(State(approved), 0.85)
    noted = replies.end_reply(envelope(best_answer=below), decision, end, FixedTexts())

    assert (reply["text"], "is_approved" in reply) == ("new", False)
    assert noted["text"] == "fault_reached/en\n\nnew"


def test_an_ungrounded_answer_never_becomes_the_best() -> None:
    assert replies.best_answer(State(make_judged_payload(0.99, grounded=False))) is None
    assert (
        replies.best_answer(State(make_judged_payload(0.99, grounded=False, best_answer=BEST)))
        == BEST
    )


def test_the_last_resort_is_the_best_answer_so_far() -> None:
    reply = make_last_resort(envelope(best_answer=BEST, language="de"), FixedTexts())

    assert reply is not None
    assert (reply["outcome"], reply["text"]) == ("answered", "limit_reached/de\n\nthe best")
    assert reply["termination_reason"] == "deadline"


def test_the_last_resort_explains_the_timeout_in_the_users_language() -> None:
    known = make_last_resort(envelope(language="de"), FixedTexts())
    guessed = make_last_resort(envelope(preferences={"language": "uk"}), FixedTexts())

    assert known is not None
    assert guessed is not None
    assert (known["outcome"], known["text"]) == ("failed", "deadline/de\n\nreference/de")
    assert guessed["text"] == "deadline/uk\n\nreference/uk"


def test_a_reply_says_whether_a_model_or_the_search_answered() -> None:
    passages: Payload = {"notice": "No model.", "shown": []}
    searched = envelope(
        response="No model.", answered_by="search", fallback_reason="no_model", passages=passages
    )
    written = envelope(response="Yes.", answered_by="model", answer_model="gpt", passages=None)
    end, decision = End(Ending.ANSWER, Outcome.ANSWERED), Decision("row", (), {}, None)

    by_search = replies.end_reply(searched, decision, end, FixedTexts())
    by_model = replies.end_reply(written, decision, end, FixedTexts())

    assert (by_search["answered_by"], by_search["fallback_reason"]) == ("search", "no_model")
    assert (by_search["passages"], by_search["model"]) == (passages, None)
    assert (by_model["answered_by"], by_model["model"]) == ("model", "gpt")
    assert "passages" not in by_model


@pytest.mark.parametrize(
    ("best", "key"), [(None, "apology/de\n\nreference/de"), (BEST, "fault_reached/de\n\nthe best")]
)
def test_a_dead_letter_reports_a_fault_and_not_a_lack_of_time(best: Payload, key: str) -> None:
    asked = envelope(best_answer=best, language="de")

    _, changes = replies.make_last_resort(asked, FixedTexts())

    assert changes == {"text": key, "termination_reason": "dead_letter"}
    assert replies.make_last_resort(envelope(), FixedTexts()) == (None, {})


def test_an_end_without_an_answer_lists_the_pages_that_were_found() -> None:
    results: list[JsonValue] = [make_result(number) for number in (1, 1, 2)]
    asked = envelope(language="de", search_results=results)

    reply = make_last_resort(asked, FixedTexts())

    assert reply is not None
    pages = "nearest_pages/de\n- Page 1\n- Page 2"
    assert reply["text"] == f"deadline/de\n\nreference/de\n\n{pages}"
    actions = reply["suggested_actions"]
    assert isinstance(actions, list)
    assert [action["path"] for action in actions if isinstance(action, dict)] == ["1.md", "2.md"]


def test_the_channels_apology_stays_the_last_resort_until_the_users_language_is_known() -> None:
    assert make_last_resort(envelope(), FixedTexts()) is None
    assert make_last_resort(envelope(preferences={"language": None}), FixedTexts()) is None


def test_choosing_a_language_is_confirmed_in_it() -> None:
    chosen = envelope(
        command="set_language",
        response="Ab jetzt auf Deutsch.",
        preferences={"language": "en"},
        remember_preferences={"language": "de", "explicit": True},
    )

    reply = replies.end_reply(chosen, Decision("r", (), {}), End(Ending.REPLY, None), FixedTexts())

    assert reply["language"] == "de"


@pytest.mark.parametrize(
    ("text", "understood", "shown"),
    [
        ("And 7?", "Log in at [our page](https://evil.test/a)?", "Log in at our page?"),
        ("And 7?", "What is at https://evil.test/a?", "What is at [address removed]?"),
        ("And 7?", "Does <img src=//evil.test/a> work?", "Does  work?"),
        ("Is http://localhost:3000/a up?", "Is http://localhost:3000/a running?", None),
        ("And 7?", "What does `a[7] < 3` mean for acme.com [1]?", None),
    ],
)
def test_the_understood_question_has_no_addresses_that_the_user_did_not_type(
    text: str, understood: str, shown: str | None
) -> None:
    asked = envelope(text=text, canonical_question=understood, response="sorry")
    end = End(Ending.REPLY, Outcome.REFUSED)

    reply = replies.end_reply(asked, Decision("r", (), {}), end, FixedTexts())

    assert reply["question"] == (understood if shown is None else shown)


def test_a_clarification_leaves_a_pause_with_its_options_and_the_next_round() -> None:
    asked = envelope(
        canonical_question="How do I set up a webhook?",
        clarification_reason="ambiguous_query",
        counters={"round": 1},
    )
    reply: replies.Reply = {
        "outcome": "clarification",
        "text": "Which one?",
        "suggested_actions": [
            {"label": "A", "value": "A", "kind": "option"},
            {"label": "Skip", "value": "Skip", "kind": "skip"},
        ],
    }

    pause = replies.remember(asked, reply).pause

    assert pause is not None
    assert (pause.round, pause.options) == (2, ("A",))
    assert pause.reason is ClarificationReason.AMBIGUOUS_QUERY


@pytest.mark.parametrize("outcome", ["answered", "refused"])
def test_any_other_end_closes_the_open_pause(outcome: str) -> None:
    ended = replies.remember(envelope(open_pause={"pause_id": "p"}), reply(outcome))

    assert (ended.pause, ended.close_pause) == (None, True)


def test_a_side_question_leaves_the_clarification_open() -> None:
    aside = envelope(open_pause={"pause_id": "p"}, leaves_open=True)

    ended = replies.remember(aside, reply("answered"))

    assert (len(ended.turns), ended.pause, ended.close_pause) == (2, None, False)


def test_a_failure_leaves_the_pause_and_the_history_as_they_were() -> None:
    ended = replies.remember(envelope(open_pause={"pause_id": "p"}), reply("failed"))

    assert (ended.turns, ended.close_pause) == ((), False)


@pytest.mark.parametrize(
    ("preferences", "confidence", "remembered"),
    [
        ({"language": "en"}, 0.95, Preferences(language="de")),
        ({"language": "en"}, 0.5, None),
        ({"language": "en", "explicit": True}, 0.95, None),
        ({"language": "de"}, 0.95, None),
    ],
)
def test_a_language_detected_clearly_is_remembered_unless_one_was_chosen(
    preferences: Payload, confidence: float, remembered: Preferences | None
) -> None:
    ending = envelope(language="de", confidence=confidence, preferences=preferences)

    assert replies.remember(ending, reply("answered")).preferences == remembered


def reply(outcome: str) -> replies.Reply:
    return {"outcome": outcome, "text": "text"}


@pytest.mark.parametrize(
    ("context", "canonical", "meant"),
    [
        ("follow_up", "What does error 7 mean?", "What does error 7 mean?"),
        ("follow_up", "How?", None),
        ("new_topic", "What does error 7 mean?", None),
    ],
)
def test_the_complete_question_of_a_follow_up_is_remembered(
    context: str, canonical: str, meant: str | None
) -> None:
    asked = envelope(context_type=context, canonical_question=canonical)

    assert replies.remember(asked, reply("answered")).turns[0].meant == meant


@pytest.mark.parametrize(
    ("reason", "rounds", "text"),
    [
        ("round_limit", 3, "rounds_reached/de\n\nsorry"),
        ("round_limit", 0, "sorry"),
        ("research_limit", 0, "searches_reached/de\n\nsorry"),
        ("", 0, "sorry"),
    ],
)
def test_a_refusal_at_a_limit_names_the_limit(reason: str, rounds: int, text: str) -> None:
    decision = Decision(
        "row", (), {}, ClarificationReason.INSUFFICIENT_CONTEXT, termination_reason=reason
    )
    end = End(Ending.REPLY, Outcome.REFUSED)

    asked = envelope(response="sorry", language="de", counters={"round": rounds})

    assert replies.end_reply(asked, decision, end, FixedTexts())["text"] == text


@pytest.mark.parametrize(
    ("reason", "key"),
    [
        ("deadline", "deadline"),
        ("total_time_limit", "deadline"),
        ("process_count_limit", "steps_reached"),
        ("search_failed", "apology"),
    ],
)
def test_an_end_without_an_answer_distinguishes_a_limit_from_a_fault(reason: str, key: str) -> None:
    decision = Decision("row", (), {}, None, termination_reason=reason)

    reply = replies.end_reply(
        envelope(language="de"), decision, End(Ending.BEST, None), FixedTexts()
    )

    assert reply["text"] == f"{key}/de\n\nreference/de"


TEXTS = load_texts()
DOMAIN = "Bluebird SMS"


def find_text(act: ConversationAct, language: str = "en", reason: str | None = None) -> str:
    last: Payload = {"speaker": "assistant", "text": "Sorry.", "reason": reason}
    payload: Payload = {"conversation_act": act.value, "history": [last] if reason else []}
    return act_text(State(payload), TEXTS, language, DOMAIN)


@pytest.mark.parametrize("language", TEXTS.languages)
@pytest.mark.parametrize("act", sorted(COURTESIES))
def test_every_act_has_a_text_in_every_language(act: ConversationAct, language: str) -> None:
    assert find_text(act, language)
    assert (language == "en") == (find_text(act, language) == find_text(act))


@pytest.mark.parametrize("language", TEXTS.languages)
@pytest.mark.parametrize(
    "ended", [{"outcome": "refused"}, {"outcome": "answered", "asks_for_person": True}]
)
def test_refusals_and_requests_for_a_person_include_the_contact(
    language: str, ended: replies.Reply
) -> None:
    contact = "help@acme.com, +1 555 0100 or https://acme.com/help?topic=desk"

    reply = replies.add_contact({**ended, "text": "No."}, contact, TEXTS, language)
    shown = str(safe_reply(reply)[0]["text"])

    assert shown.startswith("No.\n\n")
    assert shown.replace("`", "").endswith(contact)


@pytest.mark.parametrize(("is_unmatched", "has_line"), [(True, True), (False, False)])
def test_passages_that_match_poorly_include_the_contact(is_unmatched: bool, has_line: bool) -> None:
    passages: replies.Reply = {"outcome": "answered", "answered_by": "search", "text": "Passages."}

    reply = replies.add_contact(passages, "help@acme.com", TEXTS, "en", is_unmatched=is_unmatched)

    assert ("help@acme.com" in str(reply["text"])) == has_line


def test_an_answer_and_an_owner_without_a_contact_add_no_line() -> None:
    answered: replies.Reply = {"outcome": "answered", "text": "Yes."}
    refused: replies.Reply = {"outcome": "refused", "text": "No."}

    assert replies.add_contact(answered, "help@acme.com", TEXTS, "en") == answered
    assert replies.add_contact(refused, "", TEXTS, "en") == refused


def test_the_reply_about_capabilities_names_the_domain() -> None:
    assert DOMAIN in find_text(ConversationAct.CAPABILITIES)
    assert DOMAIN in find_text(ConversationAct.GREETING)


@pytest.mark.parametrize(
    ("reason", "key"),
    [
        (ClarificationReason.OUT_OF_SCOPE, "why_scope"),
        (ClarificationReason.INSUFFICIENT_CONTEXT, "why_missing"),
        (ClarificationReason.AMBIGUOUS_QUERY, "why_asked"),
        (ClarificationReason.INTERNAL_FAULT, "why_fault"),
    ],
)
def test_why_is_answered_by_the_reason_of_the_last_turn(
    reason: ClarificationReason, key: str
) -> None:
    expected = TEXTS.text(key, "en", topic=DOMAIN)

    assert find_text(ConversationAct.WHY, reason=reason.value) == expected
