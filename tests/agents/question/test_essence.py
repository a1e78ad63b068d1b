from typing import Any

import pytest

from agents.question.essence import EssenceAgent, Reads, Writes
from envelope.conversation import (
    ClarificationReason,
    ConversationAct,
    Pause,
    Preferences,
    QuestionTranslation,
    Turn,
    Understanding,
)
from envelope.outcome import Wrote
from llm.errors import ModelUnavailable
from llm.tasks.question import EssenceInputs, EssenceOutput
from tests.support.scripted_model import ScriptedModel

OPTIONS = ("Monthly limit", "Throughput", "Sub-users")
PLACES = (("Rate plans", "Monthly limit"), ("Routing", "Throughput"), ("Accounts", "Sub-users"))
QUESTION = "How do I add a routing rule?"
BOTH = ("How do I add a user?", "How do I add a webhook?")
Act = ConversationAct


def user(text: str, meant: str | None = None) -> Turn:
    return Turn(speaker="user", text=text, meant=meant)


def desk(text: str, outcome: str | None = "answered", reason: str | None = None) -> Turn:
    return Turn(speaker="assistant", text=text, outcome=outcome, reason=reason)


TALK = (user(QUESTION), desk("Open Routing > Rules."))


def pause(*options: str, **parts: Any) -> Pause:
    question = "How do I set the limit?"
    given: dict[str, Any] = {
        "pause_id": "p",
        "original_question": question,
        "original_text": question,
        "reason": ClarificationReason.AMBIGUOUS_QUERY,
        "asked": "Which one do you mean?",
        "options": options,
    }
    return Pause.model_validate(given | parts)


def make_understanding(
    question: str, context_type: str = "new_topic", **parts: Any
) -> Understanding:
    given = {"canonical_question": question, "context_type": context_type, "verdict": "within"}
    return Understanding.model_validate(given | parts)


async def essence(
    text: str, *history: Turn, model: ScriptedModel | None = None, **reads: Any
) -> Writes:
    outcome = await EssenceAgent(model=model).work(Reads(text=text, history=history, **reads))
    assert isinstance(outcome, Wrote)
    return outcome.writes


async def test_a_chosen_option_is_merged_with_the_question_and_leads_to_its_place() -> None:
    writes = await essence("2", open_pause=pause(*OPTIONS, places=PLACES))

    assert writes.canonical_question == "How do I set the limit? (Throughput)"
    assert writes.chosen_place == ("Routing", "Throughput")
    assert (writes.context_type, writes.clarification_result) == ("clarification", "search_again")
    assert writes.related_history == ("How do I set the limit?",)
    assert writes.assumption == ""


async def test_a_skip_goes_on_with_a_stated_assumption_and_its_place() -> None:
    writes = await essence("Answer anyway", open_pause=pause(*OPTIONS, places=PLACES))

    assert writes.assumption == "Monthly limit"
    assert writes.canonical_question == "How do I set the limit? (Monthly limit)"
    assert writes.chosen_place == ("Rate plans", "Monthly limit")


async def test_a_stop_word_ends_the_open_question_without_a_model() -> None:
    model = ScriptedModel([])

    writes = await essence("cancel", open_pause=pause(*OPTIONS), model=model)

    assert writes.clarification_result == "exit"
    assert model.calls == []


async def test_one_of_several_questions_is_asked_alone_and_the_others_stay_offered() -> None:
    several = pause(*BOTH, "What is a route?", reason=ClarificationReason.MULTIPLE_TOPICS)

    writes = await essence("1", open_pause=several)

    assert (writes.canonical_question, writes.related_history) == (BOTH[0], ())
    assert writes.remaining_questions == (BOTH[1], "What is a route?")


async def test_the_result_of_the_combined_call_is_used_without_another_call() -> None:
    model = ScriptedModel([])
    understanding = make_understanding("How do I test a routing rule?", "follow_up")

    writes = await essence("And how do I test it?", *TALK, understanding=understanding, model=model)

    assert writes.canonical_question == "How do I test a routing rule?"
    assert (writes.related_history, writes.decided_by) == ((QUESTION,), "combined_call")
    assert model.calls == []


async def test_a_question_that_a_model_resolved_is_the_related_one_of_the_next_turn() -> None:
    before = user("And the Developer?", meant="What can the Developer role do?")
    understanding = make_understanding("What can the Owner role do?", "follow_up")

    writes = await essence(
        "And the Owner?", before, desk("It can do all."), understanding=understanding
    )

    assert writes.related_history == ("What can the Developer role do?",)


async def test_several_questions_are_kept_as_parts_and_nothing_is_asked() -> None:
    whole = "How do I add a user, and a webhook?"

    writes = await essence(whole, understanding=make_understanding(whole, questions=BOTH))

    assert (writes.canonical_question, writes.question_parts) == (whole, BOTH)


async def test_only_usable_translations_are_searched_for() -> None:
    given = [("DE-at", " Wie? "), ("German", "Wie?"), ("fr", " ")]
    translations = tuple(
        QuestionTranslation(language=language, question=text) for language, text in given
    )

    writes = await essence(
        QUESTION, understanding=make_understanding(QUESTION, translations=translations)
    )

    assert writes.question_translations == (QuestionTranslation(language="de", question="Wie?"),)


@pytest.mark.parametrize("context_type", ["follow_up", "clarification"])
async def test_a_first_turn_leans_on_nothing_whatever_a_model_says(context_type: str) -> None:
    writes = await essence(QUESTION, understanding=make_understanding(QUESTION, context_type))

    assert (writes.context_type, writes.related_history) == ("new_topic", ())
    assert "clarification_result" not in writes.model_fields_set


async def test_a_reply_in_the_users_words_goes_on_with_the_original_question() -> None:
    understanding = make_understanding(
        "How do I set the monthly limit of a trial customer?", "clarification"
    )

    writes = await essence(
        "for trial customers", open_pause=pause(*OPTIONS), understanding=understanding
    )

    assert writes.clarification_result == "search_again"
    assert writes.related_history == ("How do I set the limit?",)


async def test_a_model_may_read_that_the_user_gives_up_or_wants_an_assumption() -> None:
    left = make_understanding("never", "clarification", wants_exit=True)
    assumed = make_understanding("How?", "clarification", assumption="You mean the monthly limit.")

    gave_up = await essence("hat sich erledigt", open_pause=pause(*OPTIONS), understanding=left)
    went_on = await essence("you choose", open_pause=pause(*OPTIONS), understanding=assumed)

    assert gave_up.clarification_result == "exit"
    assert went_on.assumption == "You mean the monthly limit."


async def test_a_rephrased_answer_repeats_the_last_question_unchanged() -> None:
    understanding = make_understanding(
        "Write a poem.", "follow_up", act="rephrase", style="shorter"
    )

    writes = await essence("shorter", *TALK, understanding=understanding)

    assert (writes.conversation_act, writes.answer_style) == (Act.REPHRASE, "shorter")
    assert writes.canonical_question == QUESTION


@pytest.mark.parametrize(
    "history", [(), (user("Who won?"), desk("Sorry.", "refused", "out_of_scope"))]
)
async def test_without_an_answer_there_is_nothing_to_say_differently(
    history: tuple[Turn, ...],
) -> None:
    understanding = make_understanding("shorter", "follow_up", act="rephrase", style="shorter")

    writes = await essence("shorter", *history, understanding=understanding)

    assert writes.conversation_act is Act.NO_ANSWER_YET


async def test_a_refused_question_is_asked_again_in_another_language() -> None:
    understanding = make_understanding(
        "in German", "follow_up", act="rephrase", answer_language="de"
    )
    refused = (user(QUESTION), desk("Sorry.", "refused", "insufficient_context"))

    writes = await essence("in German", *refused, understanding=understanding)

    assert (writes.canonical_question, writes.language) == (QUESTION, "de")
    assert writes.conversation_act is None


async def test_why_after_a_refusal_is_answered_by_its_reason_and_after_an_answer_by_documents() -> (
    None
):
    understanding = make_understanding("Why?", "follow_up", act="why")
    refused = (user(QUESTION), desk("Sorry.", "refused", "out_of_scope"))

    explained = await essence("why?", *refused, understanding=understanding)
    asked = await essence("why?", *TALK, understanding=understanding)

    assert (explained.conversation_act, asked.conversation_act) == (Act.WHY, None)


async def test_turns_about_the_answer_leave_the_other_questions_open() -> None:
    offer = pause(*BOTH, is_offer=True, reason=ClarificationReason.MULTIPLE_TOPICS)
    follow_up = make_understanding("How do I remove a rule?", "follow_up")

    thanks = await essence("thanks", *TALK, open_pause=offer)
    goes_on = await essence("And remove it?", *TALK, open_pause=offer, understanding=follow_up)
    other = await essence(
        "x", *TALK, open_pause=offer, understanding=make_understanding("What is a route?")
    )

    assert thanks.remaining_questions == goes_on.remaining_questions == BOTH
    assert other.remaining_questions == ()


async def test_an_empty_question_of_a_model_leaves_the_turn_as_it_is() -> None:
    empty = EssenceOutput(canonical_question="  ", context_type="new_topic")

    writes = await essence("How do I pay?", model=ScriptedModel([empty]))

    assert (writes.canonical_question, writes.decided_by) == ("How do I pay?", "own_call")


async def test_a_model_reads_a_turn_behind_an_offer_as_if_nothing_was_asked() -> None:
    model = ScriptedModel([EssenceOutput(canonical_question="q", context_type="new_topic")])

    await essence("What is a route?", *TALK, open_pause=pause(*BOTH, is_offer=True), model=model)

    asked = model.calls[0].inputs
    assert isinstance(asked, EssenceInputs)
    assert asked.open_pause is None


async def test_without_a_model_a_first_question_stays_as_it_was_typed() -> None:
    writes = await essence("How do I add a rule?", text_eng="How do I add a rule?")

    assert (writes.canonical_question, writes.context_type) == ("How do I add a rule?", "new_topic")


@pytest.mark.parametrize("turn", ["And the Developer?", "How do I delete it?", "規則はどこですか"])
async def test_without_a_model_a_short_turn_is_searched_for_with_the_question_before(
    turn: str,
) -> None:
    writes = await essence(turn, *TALK)

    assert (writes.canonical_question, writes.related_history) == (turn, (QUESTION,))


async def test_without_a_model_a_longer_turn_is_searched_for_alone() -> None:
    turn = "Where can administrators download the monthly invoices with value added tax?"

    writes = await essence(turn, *TALK)

    assert (writes.context_type, writes.related_history) == ("new_topic", ())


async def test_without_a_model_words_after_an_open_question_are_searched_for_with_it() -> None:
    turn = "only for those of our customers who are still in their trial"

    writes = await essence(turn, open_pause=pause(*OPTIONS))

    assert (writes.canonical_question, writes.related_history) == (
        turn,
        ("How do I set the limit?",),
    )
    assert writes.clarification_result is None


@pytest.mark.parametrize(
    ("turn", "act"),
    [
        ("thank you!", Act.THANKS),
        ("hi", Act.GREETING),
        ("exit", Act.EXIT),
        ("help", Act.CAPABILITIES),
        ("3", Act.STRAY_CHOICE),
    ],
)
async def test_without_a_model_fixed_words_are_no_question(turn: str, act: Act) -> None:
    writes = await essence(turn)

    assert writes.conversation_act is act


async def test_a_number_after_a_numbered_answer_may_mean_its_step() -> None:
    writes = await essence("2", user(QUESTION), desk("1. Open it.\n2. Save it."))

    assert writes.conversation_act is None


async def test_a_turn_goes_on_as_typed_when_no_model_answers() -> None:
    model = ScriptedModel([ModelUnavailable("the vendor is away")])

    writes = await essence("And then?", *TALK, model=model)

    assert (writes.canonical_question, writes.related_history) == ("And then?", (QUESTION,))
    assert (writes.decided_by, writes.model_error) == (
        "rules",
        "ModelUnavailable: the vendor is away",
    )


@pytest.mark.parametrize(
    ("said", "chosen"),
    [
        ({"style": "shorter"}, Preferences(style="shorter")),
        ({"answer_language": "de"}, Preferences(language="de", explicit=True)),
        ({"style": "usual", "answer_language": "Deutsch"}, Preferences(style="usual")),
    ],
)
async def test_a_preference_for_all_further_answers_is_remembered(
    said: dict[str, Any], chosen: Preferences
) -> None:
    alone = make_understanding("-", "new_topic", act="preference", **said)
    with_question = make_understanding(QUESTION, "new_topic", from_now_on=True, **said)
    for_once = make_understanding(QUESTION, "new_topic", **said)

    kept = [
        await essence("?", understanding=understanding)
        for understanding in (alone, with_question, for_once)
    ]

    assert [writes.remember_preferences for writes in kept] == [chosen, chosen, None]
    assert [writes.conversation_act for writes in kept] == [Act.PREFERENCE, None, None]


async def test_a_wish_that_nothing_can_hold_is_a_question_like_others() -> None:
    understanding = make_understanding("Answer as a pirate.", "new_topic", act="preference")

    writes = await essence("Answer as a pirate from now on.", understanding=understanding)

    assert (writes.conversation_act, writes.remember_preferences) == (None, None)
