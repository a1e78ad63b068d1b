"""The context of an answer: whole sections of the best chunks, within a number of tokens."""

from collections.abc import Sequence
from random import Random

import pytest

from knowledge.document import Document
from knowledge.index.port import Index
from knowledge.port import ContextSection, Findings, Hit, SearchRequest
from knowledge.search import composer
from knowledge.search.searcher import LevelSearcher
from knowledge.sections import count_tokens
from tests.knowledge.searching.conftest import WordEmbedder, document, put

STEPS = document(
    "steps",
    (("Add a rule",), "Adding a rule takes four steps.\n1. Open Routing.\n2. Press Add."),
    (("Add a rule",), "2. Press Add.\n3. Choose a carrier.\n4. Save the rule."),
    (("Add a rule",), "The rule is active at once."),
    (("Prices",), "A rule costs nothing."),
    title="Routing rules",
)
OTHERS = (
    document("accounts", (("Create",), "Choose a password."), title="User accounts"),
    document("reports", (("Read",), "A report names the carrier."), title="Delivery reports"),
)


async def compose(
    index: Index, question: str, *documents: Document, tokens: int = 3000, **more: object
) -> Findings:
    await put(index, *documents)
    searcher = LevelSearcher(index, WordEmbedder())
    asked = SearchRequest(question=question, context_tokens=tokens, **more)  # type: ignore[arg-type]
    return await searcher.search(asked)


def texts(context: Sequence[ContextSection]) -> list[str]:
    return [section.text for section in context]


async def test_the_section_of_a_found_chunk_is_given_whole_and_repeats_nothing(
    fake_documents: Index,
) -> None:
    composed = await compose(fake_documents, "How do I add a rule?", STEPS, *OTHERS)

    section = next(
        context_section
        for context_section in composed.context
        if context_section.best.place.heading_path == ("Add a rule",)
    )
    assert section.text == (
        "Adding a rule takes four steps.\n1. Open Routing.\n2. Press Add.\n3. Choose a carrier."
        "\n4. Save the rule.\n\nThe rule is active at once."
    )
    assert section.chunk_ids == ("steps#0", "steps#1", "steps#2")


async def test_a_found_chunk_stands_in_its_section_as_it_is_in_the_index(
    fake_documents: Index,
) -> None:
    composed = await compose(fake_documents, "How do I add a rule?", STEPS, *OTHERS)

    given = {
        span.rank: section.text[span.start : span.end]
        for section in composed.context
        for span in section.found
    }
    assert given == {rank: hit.text for rank, hit in enumerate(composed.hits)}


async def test_sections_of_one_page_are_in_the_order_of_the_page(fake_documents: Index) -> None:
    composed = await compose(fake_documents, "What does a rule cost?", STEPS, *OTHERS)

    own = [
        section.chunk_ids[0] for section in composed.context if section.best.document_id == "steps"
    ]
    assert own == ["steps#0", "steps#3"]


async def test_the_best_section_comes_before_an_earlier_one_of_its_page(
    fake_documents: Index,
) -> None:
    others = [((f"Part {number}",), f"Nothing of interest, {number}.") for number in range(4)]
    page = document(
        "page",
        (("Begin",), "A rule has a name."),
        *others,
        (("Price",), "What does a rule cost? A rule costs one cent."),
    )

    composed = await compose(fake_documents, "What does a rule cost?", page, *OTHERS)

    own = [
        section.best.place.heading_path
        for section in composed.context
        if section.best.document_id == "page"
    ]
    assert own.index(("Price",)) < own.index(("Begin",))


async def test_pages_on_which_a_chapter_goes_on_stay_together_in_their_order(
    fake_documents: Index,
) -> None:
    chapter = document(
        "manual",
        (("Modes",), "A mode of a rule is one of these: 0 is slow,"),
        (("Modes",), "1 is the highest speed of a rule."),
    )
    paged = tuple(
        chunk.model_copy(update={"anchor": f"page-{at}"})
        for at, chunk in enumerate(chapter.chunks, start=1)
    )
    manual = chapter.model_copy(update={"chunks": paged})
    rules = document("rules", (("Rules",), "The speed of a rule matters."))

    composed = await compose(fake_documents, "What is the highest speed of a rule?", manual, rules)

    assert [section.chunk_ids for section in composed.context] == [
        ("manual#0",),
        ("manual#1",),
        ("rules#0",),
    ]


async def test_sections_far_below_the_best_one_are_left_out(fake_documents: Index) -> None:
    many = [document(f"page{n}", (("Part",), f"A rule of page {n}.")) for n in range(200)]

    composed = await compose(fake_documents, "What does a rule cost?", STEPS, *many, limit=250)

    scores = [section.best.score for section in composed.context]
    assert len(composed.context) < composed.total
    least = composer.LEAST_SCORE * scores[0]
    assert sum(score < least for score in scores) <= composer.KEPT


async def test_the_best_hits_are_given_however_much_better_one_page_fits(
    fake_documents: Index,
) -> None:
    price = document("price", (("Plans",), "The plan costs ten euros."))
    exact = [((f"Rule {n}",), "What does a rule cost? A rule has a cost.") for n in range(8)]

    composed = await compose(
        fake_documents, "What does a rule cost?", document("rules", *exact), price, *OTHERS
    )

    assert "price" in {section.best.document_id for section in composed.context}


@pytest.mark.parametrize("tokens", [80, 200, 500])
async def test_the_context_never_exceeds_its_tokens(fake_documents: Index, tokens: int) -> None:
    long = document(
        "long",
        *((("Rules",), f"Rule {n} sends messages. " + f"word{n} " * 60) for n in range(40)),
        title="All rules",
    )

    composed = await compose(
        fake_documents, "Which rule sends messages?", long, STEPS, tokens=tokens
    )

    assert composed.context
    assert sum(count_tokens(text) for text in texts(composed.context)) <= tokens


async def test_excluded_chunks_are_not_given_again(fake_documents: Index) -> None:
    composed = await compose(
        fake_documents, "How do I add a rule?", STEPS, *OTHERS, exclude=("steps#0", "steps#1")
    )

    given = {identifier for section in composed.context for identifier in section.chunk_ids}
    assert given.isdisjoint({"steps#0", "steps#1"})
    assert "steps#2" in given


async def test_a_section_without_its_excluded_chunks_is_a_part(fake_documents: Index) -> None:
    composed = await compose(
        fake_documents, "How do I add a rule?", STEPS, *OTHERS, exclude=("steps#0", "steps#1")
    )

    own = {section.text: section.is_cut for section in composed.context if "rule" in section.text}
    assert own["[... more left out]\n\nThe rule is active at once."]
    assert not own["A rule costs nothing."]


async def test_an_old_release_note_comes_after_the_page_that_says_how_it_is_now(
    fake_documents: Index,
) -> None:
    notes = document("notes", (("1.2",), "Add a rule: a rule is added."), kind="changelog")
    guide = document("guide", (("Rules",), "To add a rule, open Routing and press the button."))

    usual = await compose(fake_documents, "How do I add a rule?", notes, guide, *OTHERS)
    asked = await compose(fake_documents, "What is new in 1.2?", notes, guide, *OTHERS)

    assert usual.context[-1].best.document_id == "notes"
    assert asked.context[0].best.document_id == "notes"
    for section in (*usual.context, *asked.context):
        assert section.is_release_notes is (section.best.document_id == "notes")


async def test_no_more_sections_are_given_than_results_are_wanted(fake_documents: Index) -> None:
    composed = await compose(fake_documents, "How do I add a rule?", STEPS, *OTHERS, limit=1)

    assert len(composed.hits) == 1
    assert len(composed.context) == 1
    assert composed.total > 1


async def test_without_a_size_there_is_no_context(fake_documents: Index) -> None:
    composed = await compose(fake_documents, "How do I add a rule?", STEPS, tokens=0)

    assert composed.hits
    assert composed.context == ()


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcd", 1), ("abcde", 2), ("规则", 2)])
def test_a_token_is_four_bytes(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@pytest.mark.parametrize("tokens", [800, 1500, 4000])
@pytest.mark.parametrize("seed", range(5))
async def test_a_best_hit_is_cut_out_of_its_section_only_if_all_given_sections_are_better(
    fake_documents: Index, tokens: int, seed: int
) -> None:
    draw = Random(seed)
    pages = [draw_page(draw, f"page{n}") for n in range(6)]

    composed = await compose(
        fake_documents, "Which carrier sends a rule?", *pages, tokens=tokens, limit=50
    )

    given = {identifier for section in composed.context for identifier in section.chunk_ids}
    sections = {place_of(section.best) for section in composed.context}
    left_out = [
        hit
        for hit in composed.hits[: composer.KEPT]
        if hit.chunk_id not in given and place_of(hit) in sections
    ]
    worst = min(section.best.score for section in composed.context)
    assert all(hit.score <= worst for hit in left_out)


def draw_page(draw: Random, name: str) -> Document:
    """A page with long sections in which a few chunks match the question."""
    chunks = []
    for section in range(draw.randint(1, 4)):
        for chunk in range(draw.randint(1, 12)):
            matching = draw.sample(["carrier", "sends", "rule"], draw.choice([0, 0, 1, 3]))
            filler = [f"{name}w{section}x{chunk}y{n}" for n in range(draw.randint(10, 60))]
            chunks.append(((f"Part {section}",), " ".join([*matching, *filler])))
    return document(name, *chunks)


def place_of(hit: Hit) -> tuple[str, tuple[str, ...]]:
    return hit.document_id, hit.place.heading_path
