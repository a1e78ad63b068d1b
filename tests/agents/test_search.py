import pytest

from agents.search import Reads, SearchAgent, Writes
from envelope.conversation import ClarificationReason, Turn
from envelope.outcome import Wrote
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
        title=name,
        text=text,
        crumbs=("Guide", name),
        heading_path=("Adding",),
        anchor="adding",
        url=None,
        path=f"{name}.md",
        language="en",
        score=score,
        levels=("keywords",),
    )


def place(label: str) -> CandidatePlace:
    return CandidatePlace(label=label, crumbs=(label,), document_id=label, url=None, score=1.0)


def findings(
    *hits: Hit,
    quality: Quality = "good",
    answerability: float = 0.8,
    ambiguity: float = 0.1,
    places: tuple[CandidatePlace, ...] = (),
) -> Findings:
    return Findings(
        hits=hits,
        context=tuple(
            ContextSection(one, one.text, (one.chunk_id,), (FoundSpan(rank, 0, len(one.text)),))
            for rank, one in enumerate(hits)
        ),
        quality=quality,
        answerability=answerability,
        coverage=0.9,
        ambiguity=ambiguity,
        places=places,
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
    searcher: Finding, reads: Reads | None = None, *, max_context_length: int = 4000
) -> Writes:
    agent = SearchAgent(searcher=searcher, max_context_length=max_context_length, limit=10)
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
    assert writes.search_stats.total_results == 3
    assert writes.search_stats.used_results == 3


async def test_a_first_search_may_fill_the_whole_context() -> None:
    searcher = Finding(findings(hit("a")))

    await search_with(searcher, max_context_length=600)

    assert searcher.requests[0].context_tokens == 600


async def test_good_findings_ask_nothing_back() -> None:
    writes = await search_with(Finding(findings(hit("a"), quality="excellent")))

    assert writes.search_quality == "excellent"
    assert not writes.needs_clarification


async def test_competing_places_become_the_options_of_a_question() -> None:
    competing = (place("Rate plans"), place("Routing"), place("Rate plans"))

    writes = await search_with(
        Finding(
            findings(hit("a"), quality="poor", answerability=0.2, ambiguity=0.6, places=competing)
        )
    )

    assert writes.needs_clarification
    assert writes.clarification_reason is ClarificationReason.AMBIGUOUS_QUERY
    assert [one.label for one in writes.clarification_options] == ["Rate plans", "Routing"]


async def test_nothing_found_is_declined_and_not_asked() -> None:
    writes = await search_with(Finding(findings(quality="poor", answerability=0.1, ambiguity=0.2)))

    assert writes.clarification_reason is ClarificationReason.INSUFFICIENT_CONTEXT
    assert writes.clarification_options == ()


async def test_a_user_who_skipped_the_question_is_not_asked_it_again() -> None:
    unclear = findings(hit("a"), quality="poor", answerability=0.2, ambiguity=0.6)
    reads = Reads(canonical_question="How do I add a rule?", assumption="Routing")

    writes = await search_with(Finding(unclear), reads)

    assert writes.clarification_reason is not ClarificationReason.AMBIGUOUS_QUERY
    assert not writes.needs_clarification


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


async def test_a_further_attempt_leaves_out_what_was_tried_and_looks_wider() -> None:
    searcher = Finding(findings(hit("c")))

    writes = await search_with(searcher, second_attempt())

    request = searcher.requests[0]
    assert set(request.exclude) == {"z#0", "a#0"}
    assert request.limit > 10
    assert "time windows" in request.question
    assert writes.tried_chunks == ("z#0", "a#0", "c#0")


async def test_a_further_attempt_adds_sources_and_moves_none_of_those_it_has() -> None:
    writes = await search_with(Finding(findings(hit("c", "Time windows."))), second_attempt())

    assert writes.search_context == "Open Routing.\n\nTime windows."
    assert [(one.chunk_id, one.span) for one in writes.search_results] == [
        ("a#0", (0, 13)),
        ("c#0", (15, 28)),
    ]
    assert [part.rank for one in writes.search_results for part in one.found] == [0, 1]


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
    assert [one.chunk_id for one in writes.search_results] == ["a#0"]
    assert writes.search_quality == "good"
    assert not writes.needs_clarification
    assert not writes.search_error
    assert writes.search_stats.fallbacks == fallbacks


async def test_further_attempts_never_make_the_context_larger_than_twice_its_limit() -> None:
    searcher = Finding(findings(hit("c")))

    for tokens, room in ((600, 300), (1100, 100), (1300, 0)):
        await search_with(searcher, second_attempt("a" * 4 * tokens), max_context_length=600)
        assert searcher.requests[-1].context_tokens == room


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


async def test_a_question_that_names_no_subject_is_asked_about_whatever_was_found() -> None:
    places = (place("Rate plans"), place("Routing"))
    found = findings(hit("a"), quality="excellent", answerability=0.9, places=places)
    vague = Reads(canonical_question="How do I set it up?", text="How do I set it up?")
    follow_up = vague.model_copy(update={"related_history": ("What is a rate plan?",)})

    asked = await search_with(Finding(found), vague)
    answered = await search_with(Finding(found), follow_up)

    assert asked.clarification_reason is ClarificationReason.AMBIGUOUS_QUERY
    assert [one.label for one in asked.clarification_options] == ["Rate plans", "Routing"]
    assert not answered.needs_clarification


async def test_the_number_of_an_option_is_no_wording_of_the_question() -> None:
    searcher = Finding(findings(hit("a")))

    await search_with(
        searcher, Reads(canonical_question="How do I set it up? - Rate plans", text="2")
    )

    assert searcher.requests[0].text == ""
