from dataclasses import replace

import pytest

from agents.search.search import Reads, SearchAgent, Writes
from envelope.conversation import ClarificationReason, QuestionTranslation, Turn
from envelope.outcome import Wrote
from envelope.place import Place
from envelope.sources import FoundPart, SearchResult
from knowledge.errors import IndexUnavailable
from knowledge.port import (
    CandidatePlace,
    ContextSection,
    Findings,
    FoundSpan,
    Hit,
    Quality,
    SearchRequest,
)


def hit(name: str, text: str = "Open Routing and press Add.", score: float = 1.0) -> Hit:
    return Hit(
        chunk_id=f"{name}#0",
        document_id=name,
        page=name,
        text=text,
        score=score,
        levels=("keywords",),
        place=Place(
            title=name,
            crumbs=("Guide", name),
            heading_path=("Adding",),
            anchor="adding",
            url=None,
            path=f"{name}.md",
            language="en",
        ),
    )


def place(label: str, score: float = 1.0, word_fit: float = 1.0) -> CandidatePlace:
    return CandidatePlace(label, (label,), label, None, score, word_fit)


def findings(
    *hits: Hit,
    quality: Quality = "good",
    answerability: float = 0.8,
    coverage: float = 0.9,
    places: tuple[CandidatePlace, ...] = (),
) -> Findings:
    return Findings(
        hits=hits,
        context=tuple(
            ContextSection(hit, hit.text, (hit.chunk_id,), (FoundSpan(rank, 0, len(hit.text)),))
            for rank, hit in enumerate(hits)
        ),
        quality=quality,
        answerability=answerability,
        coverage=coverage,
        places=places,
        total=60 if hits else 0,
    )


class Finding:
    """A searcher that finds the same every time, and keeps what it was asked."""

    def __init__(self, found: Findings | None) -> None:
        self._found = found
        self.requests: list[SearchRequest] = []

    async def search(self, request: SearchRequest) -> Findings:
        self.requests.append(request)
        if self._found is None:
            raise IndexUnavailable("the index cannot be opened")
        return self._found


async def search_with(
    searcher: Finding,
    reads: Reads | None = None,
    *,
    max_context_length: int = 4000,
    uses_model: bool = True,
) -> Writes:
    agent = SearchAgent(
        searcher=searcher, max_context_length=max_context_length, limit=10, uses_model=uses_model
    )
    outcome = await agent.work(
        Reads(canonical_question="How do I add a rule?") if reads is None else reads
    )
    assert isinstance(outcome, Wrote)
    return outcome.writes


async def test_every_result_says_where_its_text_stands_in_the_context() -> None:
    texts = ("Open Routing.", "Press Add — then Save.", "规则 is a rule.")

    writes = await search_with(
        Finding(findings(*(hit(f"p{n}", text) for n, text in enumerate(texts))))
    )

    spans = [result.span for result in writes.search_results]
    assert [writes.search_context[span[0] : span[1]] for span in spans if span] == list(texts)
    assert writes.search_stats.total_results == 60
    assert writes.search_stats.used_results == 3


async def test_a_first_search_may_fill_the_whole_context() -> None:
    searcher = Finding(findings(hit("a")))

    await search_with(searcher, max_context_length=600)

    assert searcher.requests[0].context_tokens == 600


async def test_good_findings_ask_nothing_back() -> None:
    writes = await search_with(Finding(findings(hit("a"), quality="excellent")))

    assert writes.search_quality == "excellent"
    assert not writes.needs_clarification


ALIKE = (place("Rate plans", 9.0), place("Routing", 7.5), place("Rate plans", 7.0))


async def test_without_a_model_a_short_question_that_fits_two_pages_alike_is_asked_back() -> None:
    result = findings(hit("a"), quality="excellent", places=ALIKE)
    short = Reads(canonical_question="How do I add one?")

    asked = await search_with(Finding(result), short, uses_model=False)
    judged = await search_with(Finding(result), short, uses_model=True)

    assert asked.clarification_reason is ClarificationReason.AMBIGUOUS_QUERY
    assert [option.label for option in asked.clarification_options] == ["Rate plans", "Routing"]
    assert not judged.needs_clarification


@pytest.mark.parametrize(
    ("reads", "places"),
    [
        (Reads(canonical_question="How do I add a routing rule?"), ALIKE),
        (Reads(canonical_question="How do I add one?", assumption="Routing"), ALIKE),
        (Reads(canonical_question="And price?", related_history=("What is a rule?",)), ALIKE),
        (Reads(canonical_question="Add rule"), (place("Rules", 9.0), place("Routing", 6.7))),
        (Reads(canonical_question="Add rule"), (place("Rules", 9.0), place("Routing", 9.0, 0.5))),
        (Reads(canonical_question="Add rule"), (place("Rules", 9.0),)),
    ],
    ids=["long", "skipped before", "follow-up", "a better page", "fewer of its words", "one page"],
)
async def test_without_a_model_any_other_question_is_not_asked_back(
    reads: Reads, places: tuple[CandidatePlace, ...]
) -> None:
    result = findings(hit("a"), quality="poor", answerability=0.1, places=places)

    writes = await search_with(Finding(result), reads, uses_model=False)

    assert not writes.needs_clarification
    assert writes.search_quality == "poor"


@pytest.mark.parametrize("coverage", [0.5, 0.0], ids=["weak", "like nothing"])
async def test_with_a_model_whatever_is_found_goes_to_the_writer(coverage: float) -> None:
    result = findings(hit("a"), quality="poor", answerability=0.1, coverage=coverage)

    writes = await search_with(Finding(result))

    assert not writes.needs_clarification
    assert writes.search_quality == "poor"
    assert writes.search_context


@pytest.mark.parametrize(
    ("found", "uses_model"),
    [
        (findings(quality="poor", answerability=0.1), True),
        (findings(quality="poor", answerability=0.1), False),
        (findings(hit("a"), quality="poor", answerability=0.0, coverage=0.02, places=ALIKE), False),
    ],
    ids=["nothing, with a model", "nothing", "another subject"],
)
async def test_a_question_about_which_nothing_was_found_is_declined_and_not_asked(
    found: Findings, uses_model: bool
) -> None:
    writes = await search_with(Finding(found), uses_model=uses_model)

    assert writes.clarification_reason is ClarificationReason.INSUFFICIENT_CONTEXT
    assert writes.search_quality == "poor"
    assert [option.label for option in writes.clarification_options] == list(
        dict.fromkeys(place.label for place in found.places)
    )


async def test_words_alone_decline_nothing() -> None:
    result = findings(hit("a"), quality="poor", answerability=0.0, coverage=0.02)
    by_words = replace(result, fallbacks=("calibration",))

    writes = await search_with(Finding(by_words), uses_model=False)

    assert not writes.needs_clarification


async def test_without_a_model_a_follow_up_is_searched_with_the_question_before_it() -> None:
    searcher = Finding(findings(hit("a")))
    reads = Reads(
        canonical_question="And to Germany?",
        history=(
            Turn(speaker="user", text="What is a rule?"),
            Turn(speaker="user", text="How much is an SMS to France?"),
            Turn(speaker="assistant", text="4 cents."),
        ),
    )

    await search_with(searcher, reads, uses_model=False)
    await search_with(searcher, reads, uses_model=True)

    assert [request.related for request in searcher.requests] == [
        ("How much is an SMS to France?",),
        (),
    ]


async def test_an_index_that_is_away_is_said_and_never_raised() -> None:
    writes = await search_with(Finding(None))

    assert writes.search_quality == "poor"
    assert writes.search_error == "the index cannot be opened"
    assert writes.clarification_reason is ClarificationReason.INTERNAL_FAULT


def second_attempt(context: str = "Open Routing.") -> Reads:
    first = SearchResult(
        chunk_id="a#0", document_id="a", title="a", score=1, levels=(), span=(0, len(context)),
        found=(FoundPart(rank=0, start=0, end=4),),
    )  # fmt: skip
    return Reads(
        canonical_question="How do I add a rule?",
        attempt=1,
        search_context=context,
        search_results=(first,),
        tried_chunks=("z#0", "a#0"),
        quality_analysis='Nothing is said about "time windows".',
    )


async def test_a_further_attempt_searches_the_missing_terms_alone_and_leaves_out_what_it_has() -> (
    None
):
    searcher = Finding(findings(hit("c")))

    writes = await search_with(searcher, second_attempt())

    term, question = searcher.requests
    assert term.question == "time windows"
    assert (term.text, term.related) == ("", ())
    assert question.question == "How do I add a rule?"
    assert set(term.exclude) == {"z#0", "a#0"}
    assert set(question.exclude) == {"z#0", "a#0", "c#0"}
    assert writes.tried_chunks == ("z#0", "a#0", "c#0")


class FindingByQuestion(Finding):
    """Finds something for the term alone, and something else for every other question."""

    async def search(self, request: SearchRequest) -> Findings:
        self.requests.append(request)
        alone = request.question == "time windows"
        return findings(hit("c", "Time windows.") if alone else hit("d", "More.", score=9.0))


async def test_a_further_attempt_adds_what_the_terms_found_first_and_moves_nothing() -> None:
    writes = await search_with(FindingByQuestion(None), second_attempt())

    assert writes.search_context == "Open Routing.\n\nTime windows.\n\nMore."
    assert [(result.chunk_id, result.span) for result in writes.search_results] == [
        ("a#0", (0, 13)),
        ("c#0", (15, 28)),
        ("d#0", (30, 35)),
    ]
    assert [part.rank for result in writes.search_results for part in result.found] == [0, 1, 2]


async def test_a_further_attempt_adds_a_dozen_sources_and_counts_the_others() -> None:
    many = findings(*(hit(f"h{number}", score=float(number)) for number in range(30)))

    writes = await search_with(Finding(many), second_attempt())

    assert len(writes.search_results) == 1 + 12
    assert writes.search_results[1].chunk_id == "h29#0"
    assert writes.search_stats.left_out == 2 * 30 - 12


@pytest.mark.parametrize(
    ("found", "fallbacks"),
    [(findings(quality="poor", answerability=0.0), ()), (None, ("repeated_search",))],
    ids=["nothing found", "index away"],
)
async def test_a_further_attempt_that_finds_nothing_keeps_the_sources_it_has(
    found: Findings | None, fallbacks: tuple[str, ...]
) -> None:
    writes = await search_with(Finding(found), second_attempt())

    assert writes.search_context == "Open Routing."
    assert [result.chunk_id for result in writes.search_results] == ["a#0"]
    assert writes.search_quality == "good"
    assert not writes.needs_clarification
    assert not writes.search_error
    assert writes.search_stats.fallbacks == fallbacks


async def test_further_attempts_never_make_the_context_larger_than_twice_its_limit() -> None:
    searcher = Finding(findings(hit("c")))

    for tokens, room in ((600, 300), (1100, 100), (1300, 0)):
        reads = second_attempt("a" * 4 * tokens).model_copy(update={"quality_analysis": ""})
        await search_with(searcher, reads, max_context_length=600)
        assert searcher.requests[-1].context_tokens == room


async def test_a_message_is_searched_as_typed_and_by_its_questions_and_translations() -> None:
    searcher = Finding(findings(hit("a")))
    reads = Reads(
        canonical_question="How long is sick pay, and how much is it?",
        question_parts=("How long is sick pay?", "How much is sick pay?"),
        question_translations=(
            QuestionTranslation(language="de", question="Wie lange wird Krankengeld gezahlt?"),
        ),
        text="how long sick pay and how much is it",
        language="en",
        related_history=("What is sick pay?",),
    )

    await search_with(searcher, reads)

    assert [
        (request.question, request.text, request.language) for request in searcher.requests
    ] == [
        ("How long is sick pay, and how much is it?", "how long sick pay and how much is it", "en"),
        ("How long is sick pay?", "", "en"),
        ("How much is sick pay?", "", "en"),
        ("Wie lange wird Krankengeld gezahlt?", "", "de"),
    ]
    assert [len(request.related) for request in searcher.requests] == [1, 0, 0, 0]


@pytest.mark.parametrize(("place", "matches_nothing"), [((), True), (("Guide", "Rules"), False)])
async def test_unrelated_passages_are_marked_for_the_writer_unless_their_location_was_chosen(
    place: tuple[str, ...], matches_nothing: bool
) -> None:
    vague = Finding(findings(hit("Rules"), quality="poor", answerability=0.0, coverage=0.01))
    reads = Reads(canonical_question="How do I bake bread?", chosen_place=place)

    writes = await search_with(vague, reads)

    assert writes.clarification_reason is None
    assert writes.search_stats.matches_nothing is matches_nothing


async def test_a_question_that_no_model_interpreted_and_nothing_matches_is_its_failure() -> None:
    nothing = Finding(findings(quality="poor", answerability=0.0))
    reads = Reads(canonical_question="How long is it?", model_failure="too_slow")

    writes = await search_with(nothing, reads, uses_model=True)

    assert writes.clarification_reason is ClarificationReason.MODEL_FAILED


def unanswered(missing: str) -> Reads:
    changes = {"quality_analysis": "", "missing": missing, "searches_again": True}
    return second_attempt().model_copy(update=changes)


async def test_information_that_the_writer_missed_is_searched_and_the_answer_is_rewritten() -> None:
    searcher = FindingByQuestion(None)

    writes = await search_with(searcher, unanswered("time windows"))

    assert [result.chunk_id for result in writes.search_results] == ["a#0", "c#0", "d#0"]
    assert (writes.needs_clarification, writes.clarification_reason) == (False, None)


async def test_a_question_without_further_sources_is_declined_without_another_call() -> None:
    nothing = findings(quality="poor", answerability=0.0)

    writes = await search_with(Finding(nothing), unanswered("the price of a rule"))

    assert writes.clarification_reason is ClarificationReason.INSUFFICIENT_CONTEXT
    assert writes.clarification_message == "the price of a rule"


async def test_a_first_attempt_asks_for_the_question_with_its_conversation() -> None:
    searcher = Finding(findings(hit("a")))
    reads = Reads(
        canonical_question="And for resellers?",
        text="And for resellers?",
        language="en",
        related_history=("How do I add a rule?",),
        history=(
            Turn(speaker="user", text="How do I add a rule?"),
            Turn(speaker="assistant", text="Open Routing."),
        ),
    )

    await search_with(searcher, reads)

    request = searcher.requests[0]
    assert request.question == "And for resellers?"
    assert request.related == ("How do I add a rule?",)
    assert request.previous_answer == "Open Routing."
    assert request.exclude == ()


async def test_a_new_topic_is_searched_without_the_answer_before_it() -> None:
    searcher = Finding(findings(hit("a")))
    reads = Reads(
        canonical_question="Where are the invoices?",
        history=(Turn(speaker="assistant", text="Open Routing."),),
    )

    await search_with(searcher, reads)

    assert searcher.requests[0].previous_answer == ""


async def test_the_number_of_an_option_is_no_wording_of_the_question() -> None:
    searcher = Finding(findings(hit("a")))

    await search_with(
        searcher, Reads(canonical_question="How do I set it up? - Rate plans", text="2")
    )

    assert searcher.requests[0].text == ""
