from typing import Literal

import pytest

from agents.question.clarification import ClarificationAgent, Reads, Writes, find_fault
from config.texts import load_texts
from envelope.conversation import ClarificationOption, ClarificationReason, SuggestedAction
from envelope.outcome import Wrote
from envelope.sources import SearchResult
from gateway.chat.marked_text import parse_marked
from knowledge.language.detector import ScriptAndNgramDetector
from knowledge.port import MATCHES_NOTHING
from llm.errors import ModelUnavailable
from llm.port import Model
from llm.tasks.question import ClarifyInputs, ClarifyOutput
from tests.citations.shapes import IDS, SHAPES, Shape, leads_elsewhere
from tests.support.scripted_model import ScriptedModel

TEXTS = load_texts()
DETECTOR = ScriptAndNgramDetector()
DOMAIN = "Bluebird SMS"
HOSTILE_ADDRESSES = ("javascript:alert(1)", "//evil.test/a", "https://docs.example@evil.test/")
Reason = ClarificationReason


def result(number: int, *crumbs: str, title: str = "") -> SearchResult:
    return SearchResult(
        chunk_id=f"c{number}",
        document_id=f"d{number}",
        title=title or f"Page {number}",
        crumbs=crumbs,
        url=f"https://example.org/{number}",
        score=1.0 / number,
        levels=("keywords",),
    )


def page(number: int, *crumbs: str) -> SuggestedAction:
    return SuggestedAction(
        label=f"Page {number}",
        value=f"Page {number}",
        kind="source",
        url=f"https://example.org/{number}",
        crumbs=crumbs,
        chunk_id=f"c{number}",
    )


RESULTS = (result(1, "Accounts", "Limits"), result(2, "Rates", "Limits"), result(3, "API"))


async def word_question(reads: Reads, model: Model | None = None) -> Writes:
    agent = ClarificationAgent(model=model, texts=TEXTS, topic=DOMAIN, detector=DETECTOR)
    outcome = await agent.work(reads)
    assert isinstance(outcome, Wrote)
    return outcome.writes


@pytest.mark.parametrize("language", TEXTS.languages)
@pytest.mark.parametrize("reason", list(Reason))
async def test_every_reason_is_worded_in_every_language(reason: Reason, language: str) -> None:
    clarification = await word_question(
        Reads(clarification_reason=reason, language=language, canonical_question="limits?")
    )

    assert clarification.response
    assert "{" not in clarification.response
    assert clarification.clarification_fallback == ""
    assert (language == "en") == (
        clarification.response
        == (
            await word_question(
                Reads(clarification_reason=reason, language="en", canonical_question="limits?")
            )
        ).response
    )


async def test_options_are_the_places_that_the_search_found() -> None:
    clarification = await word_question(
        Reads(clarification_reason=Reason.AMBIGUOUS_QUERY, search_results=RESULTS, language="de")
    )

    assert clarification.clarification_type == "ambiguity"
    assert [(action.kind, action.value) for action in clarification.suggested_actions] == [
        ("option", "Limits (Accounts)"),
        ("option", "Limits (Rates)"),
        ("option", "API"),
        ("skip", "Trotzdem antworten"),
        ("exit", "Abbrechen"),
    ]
    assert clarification.suggested_actions[1].crumbs == ("Rates", "Limits")
    assert "2. Limits (Rates)" in clarification.response


async def test_options_that_the_search_named_win() -> None:
    clarification = await word_question(
        Reads(
            clarification_reason=Reason.AMBIGUOUS_QUERY,
            clarification_options=tuple(
                ClarificationOption(label=label) for label in ("Sending", "Receiving", "Sending")
            ),
            search_results=RESULTS,
        )
    )

    options = [
        action.value for action in clarification.suggested_actions if action.kind == "option"
    ]
    assert options == ["Sending", "Receiving"]


async def test_one_place_alone_is_no_choice() -> None:
    clarification = await word_question(
        Reads(clarification_reason=Reason.MISSING_DETAILS, search_results=RESULTS[:1])
    )

    assert [action.kind for action in clarification.suggested_actions] == ["skip", "exit"]


async def test_a_refusal_for_scope_names_the_domain_and_offers_nothing() -> None:
    clarification = await word_question(
        Reads(clarification_reason=Reason.OUT_OF_SCOPE, search_results=RESULTS, language="fr")
    )

    assert DOMAIN in clarification.response
    assert clarification.suggested_actions == ()
    assert clarification.clarification_type == "scope"


async def test_a_refusal_for_missing_context_names_the_question_and_the_nearest_pages() -> None:
    twice = (*RESULTS[:2], RESULTS[0].model_copy(update={"chunk_id": "c9"}))

    clarification = await word_question(
        Reads(
            clarification_reason=Reason.INSUFFICIENT_CONTEXT,
            canonical_question="How loud is the pager?",
            search_results=twice,
        )
    )

    assert "How loud is the pager?" in clarification.response
    assert clarification.suggested_actions == (
        page(1, "Accounts", "Limits"),
        page(2, "Rates", "Limits"),
    )


async def test_a_question_is_quoted_in_the_words_of_the_person() -> None:
    asked = Reads(
        clarification_reason=Reason.INSUFFICIENT_CONTEXT,
        canonical_question="How loud is the pager?",
        text="Wie laut ist der Pager?",
        language="de",
    )

    typed = await word_question(asked)
    chosen = await word_question(
        asked.model_copy(update={"text": "2", "context_type": "clarification"})
    )

    assert "Wie laut ist der Pager?" in typed.response
    assert "How loud is the pager?" in chosen.response


async def test_near_pages_with_the_same_title_are_told_apart_by_what_is_above_them() -> None:
    title = {"title": "Fees"}
    pages = [
        result(number, year).model_copy(update=title) for number, year in ((1, "2024"), (2, "2025"))
    ]

    clarification = await word_question(
        Reads(
            clarification_reason=Reason.INSUFFICIENT_CONTEXT,
            canonical_question="limits?",
            search_results=tuple(page.model_copy(update={"title": "Fees"}) for page in pages),
        )
    )

    assert clarification.response.endswith("- Fees (2024)\n- Fees (2025)")


async def test_without_clarifications_the_closest_locations_are_named() -> None:
    options = tuple(
        ClarificationOption(label=text, crumbs=("Guide", text)) for text in ("A1", "B2")
    )

    clarification = await word_question(
        Reads(
            clarification_reason=Reason.INSUFFICIENT_CONTEXT,
            canonical_question="limits?",
            clarification_options=options,
        )
    )

    assert [(action.kind, action.label) for action in clarification.suggested_actions] == [
        ("source", "A1"), ("source", "B2"),
    ]  # fmt: skip
    assert clarification.response.endswith("- A1\n- B2")


@pytest.mark.parametrize("stage", ["guardrails", "search"])
async def test_an_unjudged_search_result_is_not_called_unanswered_or_out_of_scope(
    stage: str,
) -> None:
    unmatched = Reads(
        clarification_reason=Reason.INSUFFICIENT_CONTEXT,
        canonical_question="Who won?",
        asking_stage=stage,
    )

    clarification = await word_question(unmatched)

    assert clarification.response == " ".join(
        (
            TEXTS.text("decline_unmatched", "en", question="Who won?", topic=DOMAIN),
            TEXTS.text("search_alone", "en"),
        )
    )


@pytest.mark.parametrize("stage", ["guardrails", "search"])
async def test_an_unclear_question_that_is_asked_back_no_more_is_not_called_unmatched(
    stage: str,
) -> None:
    unclear = Reads(
        clarification_reason=Reason.INSUFFICIENT_CONTEXT,
        clarification_message="It does not say what is to be created.",
        canonical_question="How do I create one?",
        asking_stage=stage,
    )

    clarification = await word_question(unclear)

    assert clarification.response == TEXTS.text("decline_unclear", "en")


@pytest.mark.parametrize("language", TEXTS.languages)
def test_a_refusal_refers_to_the_passages_and_not_to_the_documents(language: str) -> None:
    said = TEXTS.text("decline_missing", language, topic=DOMAIN, question="How loud?")

    # Only where there is no document at all does a refusal say so of the desk's documents.
    assert "How loud?" in said
    assert DOMAIN not in said
    assert "loud" in TEXTS.text("decline_empty", language, question="How loud?")


@pytest.mark.parametrize(
    ("worded", "above"),
    [
        ("I found nothing about that. These pages come nearest:", ""),
        ("I found nothing about that.", TEXTS.text("nearest_pages", "en")),
    ],
)
async def test_the_nearest_pages_stand_under_one_line_that_leads_to_them(
    worded: str, above: str
) -> None:
    model = ScriptedModel([ClarifyOutput(text=worded)])
    reads = Reads(clarification_reason=Reason.INSUFFICIENT_CONTEXT, search_results=RESULTS[:1])

    clarification = await word_question(reads, model)

    assert clarification.response.split("\n") == [worded, *filter(None, [above]), "- Page 1"]


async def test_a_fault_of_the_desk_is_reported_with_its_id_and_no_model_words_it() -> None:
    model = ScriptedModel([])

    clarification = await word_question(
        Reads(
            clarification_reason=Reason.INTERNAL_FAULT,
            message_reference="m-77",
            search_results=RESULTS,
            language="de",
        ),
        model,
    )

    assert (
        "Der Fehler liegt bei uns" in clarification.response
        or "der Fehler liegt bei uns" in clarification.response
    )
    assert "m-77" in clarification.response
    assert [action.kind for action in clarification.suggested_actions] == ["source"] * 3


async def test_a_question_in_another_language_than_the_documents_gets_the_language_to_ask_in() -> (
    None
):
    clarification = await word_question(
        Reads(
            clarification_reason=Reason.NO_TRANSLATION,
            document_languages=("en", "de"),
            language="fr",
        )
    )

    assert TEXTS.text("language_de", "fr") in clarification.response
    assert TEXTS.text("language_en", "fr") in clarification.response
    assert clarification.suggested_actions == ()


@pytest.mark.parametrize("reason", [Reason.OUT_OF_SCOPE, Reason.INSUFFICIENT_CONTEXT])
async def test_a_refusal_says_which_documents_were_not_compared_with_the_question(
    reason: Reason,
) -> None:
    asked = Reads(clarification_reason=reason, language="ru")

    every = await word_question(asked)
    some = await word_question(asked.model_copy(update={"document_languages": ("en", "de")}))

    names = f"{TEXTS.text('language_en', 'ru')}, {TEXTS.text('language_de', 'ru')}"
    note = TEXTS.text("not_compared", "ru", document_languages=names)
    assert note in some.response
    assert some.response.startswith(every.response)


async def test_a_model_words_it_and_the_options_stay_ours() -> None:
    model = ScriptedModel([ClarifyOutput(text="Meinen Sie Konten oder Tarife?")])

    clarification = await word_question(
        Reads(clarification_reason=Reason.AMBIGUOUS_QUERY, search_results=RESULTS, language="de"),
        model,
    )

    asked = model.calls[0].inputs
    assert isinstance(asked, ClarifyInputs)
    assert asked.options == ("Limits (Accounts)", "Limits (Rates)", "API")
    assert clarification.response.startswith("Meinen Sie Konten oder Tarife?\n")
    assert "3. API" in clarification.response
    assert clarification.clarification_fallback == ""


async def test_signs_of_questions_and_titles_are_shown_as_they_are() -> None:
    options = tuple(
        ClarificationOption(label=label, is_worded=True) for label in ("*A* 2*3*4", "B")
    )
    reads = Reads(
        clarification_reason=Reason.AMBIGUOUS_QUERY,
        clarification_options=options,
        canonical_question="5*6*7?",
    )
    model = ScriptedModel([ClarifyOutput(text="Is it 5*6*7 or ~~8? Which one?")])

    shown = parse_marked((await word_question(reads, model)).response)

    assert shown.text == "Is it 5*6*7 or ~~8? Which one?\n\n1. *A* 2*3*4\n2. B"
    assert shown.marks == ()


async def test_a_refusal_says_why_no_model_interpreted_the_question() -> None:
    clarification = await word_question(
        Reads(
            clarification_reason=Reason.MODEL_FAILED,
            canonical_question="How long is the notice period?",
            asking_stage="guardrails",
            document_languages=("de",),
            model_failure="too_slow",
        ),
        ScriptedModel([ClarifyOutput(text="Nothing was found.")]),
    )

    assert clarification.response == (
        "Your question could not be interpreted: the model took too long. Its words alone were "
        "searched, and nothing in the documents clearly matches them: “How long is the notice "
        "period?”. Please ask again later."
    )


async def test_a_refusal_of_a_writer_that_failed_says_so_and_lists_no_unrelated_pages() -> None:
    clarification = await word_question(
        Reads(
            clarification_reason=Reason.MODEL_FAILED,
            clarification_message=MATCHES_NOTHING,
            canonical_question="How do I bake bread?",
            asking_stage="response",
            search_quality="poor",
            search_results=(result(1, "Accounts"),),
            model_failure="unavailable",
        )
    )

    assert clarification.response.startswith(
        "No answer was written: the model was not available. The search found nothing in the "
        "documents that clearly matches this: “How do I bake bread?”."
    )
    assert clarification.suggested_actions == ()


async def test_a_refusal_says_why_the_question_was_not_translated() -> None:
    clarification = await word_question(
        Reads(
            clarification_reason=Reason.INSUFFICIENT_CONTEXT,
            asking_stage="response",
            clarification_message="the notice period",
            document_languages=("de",),
            model_failure="unavailable",
        )
    )

    assert clarification.response.endswith(
        "Your question could not be interpreted: the model was not available. Documents in "
        "these languages could not be compared with your question: German. To search them, ask "
        "in one of these languages."
    )


@pytest.mark.parametrize(("decided_by", "is_said"), [("rules", True), ("own_call", False)])
async def test_a_question_of_rules_says_that_a_model_failed_and_one_of_a_model_does_not(
    decided_by: Literal["rules", "own_call"], is_said: bool
) -> None:
    clarification = await word_question(
        Reads(
            clarification_reason=Reason.SCOPE_UNCLEAR,
            asking_stage="guardrails",
            decided_by=decided_by,
            model_failure="unreadable",
        )
    )

    assert clarification.response.startswith("Which part of this topic is your question about")
    assert ("the reply of the model could not be read" in clarification.response) == is_said


async def test_when_the_model_fails_the_fixed_text_is_said_and_the_reason_is_kept() -> None:
    model = ScriptedModel([ModelUnavailable("the vendor is away")])

    clarification = await word_question(
        Reads(clarification_reason=Reason.MISSING_DETAILS, language="uk"), model
    )

    assert clarification.response == TEXTS.text("ask_details", "uk")
    assert clarification.clarification_fallback == "ModelUnavailable: the vendor is away"


@pytest.mark.parametrize("reason", [Reason.AMBIGUOUS_QUERY, Reason.OUT_OF_SCOPE])
@pytest.mark.parametrize("language", ["de", "ko"])
async def test_a_wording_in_another_language_is_replaced_by_the_fixed_text(
    reason: Reason, language: str
) -> None:
    reads = Reads(clarification_reason=reason, language=language, canonical_question="limits?")
    model = ScriptedModel([ClarifyOutput(text="There are several limits. Which one is meant?")])

    clarification = await word_question(reads, model)

    assert clarification.response == (await word_question(reads)).response
    assert clarification.clarification_fallback == (
        f"the model's wording: it is in 'en', expected '{language}'"
    )


async def test_a_wording_in_another_language_is_kept_where_no_text_is_fixed() -> None:
    reads = Reads(clarification_reason=Reason.MISSING_DETAILS, language="sv")
    model = ScriptedModel([ClarifyOutput(text="There are several limits. Which one is meant?")])

    clarification = await word_question(reads, model)

    assert clarification.response.startswith("There are several limits.")
    assert "kept: it is in 'en', expected 'sv'" in clarification.clarification_fallback


async def test_a_language_without_texts_is_answered_in_english_and_says_so() -> None:
    clarification = await word_question(
        Reads(clarification_reason=Reason.MISSING_DETAILS, language="sv")
    )

    assert clarification.response == TEXTS.text("ask_details", "en")
    assert "'sv'" in clarification.clarification_fallback


async def test_text_of_documents_and_users_is_never_a_name_to_fill_in() -> None:
    clarification = await word_question(
        Reads(
            clarification_reason=Reason.INSUFFICIENT_CONTEXT,
            canonical_question="what is {topic} and {0}",
        )
    )

    assert "what is {topic} and {0}" in clarification.response


@pytest.mark.parametrize("shape", SHAPES, ids=IDS)
@pytest.mark.parametrize("reason", [Reason.AMBIGUOUS_QUERY, Reason.INSUFFICIENT_CONTEXT])
async def test_no_wording_option_or_page_leads_elsewhere(reason: Reason, shape: Shape) -> None:
    hostile = tuple(
        search_result.model_copy(
            update={"title": shape.text, "crumbs": (shape.text, str(n)), "url": url}
        )
        for n, (search_result, url) in enumerate(zip(RESULTS, HOSTILE_ADDRESSES, strict=True))
    )
    what = Reads(clarification_reason=reason, search_results=hostile, canonical_question=shape.text)

    clarification = await word_question(
        what, ScriptedModel([ClarifyOutput(text=f"{shape.text} Which one?")])
    )

    assert not leads_elsewhere(clarification.model_dump_json(exclude={"clarification_fallback"}))
    assert clarification.suggested_actions


INPUTS = ClarifyInputs(
    reason=ClarificationReason.AMBIGUOUS_QUERY,
    question="How do I set up `retry_after` for acme.com?",
    message="The question can be about several things.",
    options=("Accounts > Limits", "Rates > Limits"),
    language="en",
    topic="Bluebird SMS",
    fixed_text="Your question can mean several things.",
)


@pytest.mark.parametrize(
    "text",
    [
        "Do you mean the limits of accounts, or those of rates?",
        "Your question could be about several things. Which limits do you mean?",
        "Is it about retry_after for acme.com, or about something else?",
        "Meinen Sie Konten oder Tarife?",
        "您指的是帐户还是费率？",
        "هل تقصد الحسابات أم الأسعار؟",
    ],
)
def test_an_honest_question_passes(text: str) -> None:
    assert find_fault(text, INPUTS) == ""


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("Is it at https://evil.test/login?", "contains"),
        ("Is it at //evil.test?", "contains"),
        ("Is it at evil.test?", "contains"),
        ("Could you write to help@evil.test?", "contains"),
        ("Is it [this](javascript:x)?", "contains"),
        ("Is it ![this](https://evil.test/p)?", "contains"),
        ("Is it <a href=//evil.test>this</a>?", "contains"),
        ("Could you call +49 (900) 123-456?", "telephone number"),
        ("What is your password?", "secret"),
        ("Wie lautet Ihr Passwort?", "secret"),
        ("您的密码是什么？", "secret"),
        ("The desk asks or declines: <data name=", "repeats a prompt"),
        ("", "empty"),
    ],
)
def test_a_text_with_links_instructions_or_further_requests_is_rejected(
    text: str, fault: str
) -> None:
    assert fault in find_fault(text, INPUTS)


@pytest.mark.parametrize(
    "text",
    ["Which identity or contract is it?", "Welches Kreditlimit?", "どのエラーコードですか\uff1f"],
)
def test_a_word_that_begins_like_a_secret_may_be_used(text: str) -> None:
    assert find_fault(text, INPUTS) == ""


def test_a_secret_that_the_question_is_about_may_be_named() -> None:
    inputs = INPUTS.model_copy(update={"question": "How do I reset a password?"})

    assert find_fault("Do you mean the password of your account?", inputs) == ""


async def test_the_text_that_stands_for_the_wording_of_a_model_asks_where_there_are_options() -> (
    None
):
    model = ScriptedModel([ClarifyOutput(text="Which limits do you mean?")])
    reads = Reads(clarification_reason=Reason.AMBIGUOUS_QUERY, search_results=RESULTS)

    await word_question(reads, model)

    inputs = model.calls[0].inputs
    assert isinstance(inputs, ClarifyInputs)
    assert inputs.fixed_text.endswith("\nWhich of these do you mean?")
