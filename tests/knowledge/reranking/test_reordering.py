"""A search with a reranker: what it decides, and what stays when it fails."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from random import Random

import pytest
from structlog.testing import capture_logs

from knowledge.answerability import Assessment
from knowledge.index.embedded import open_embedded
from knowledge.index.points.layout import chunk_identity
from knowledge.index.port import Index
from knowledge.port import Findings, SearchRequest
from knowledge.search.findings_cache import FindingsCache
from knowledge.search.ranking import (
    FoundChunk,
    FoundDocument,
    RankedChunk,
    RankedPage,
    list_candidates,
)
from knowledge.search.reranking import LONGEST_PASSAGE, MOST_RERANKED, reorder
from knowledge.search.searcher import LevelSearcher
from tests.knowledge.searching.conftest import FakeReranker, WordEmbedder, document, identity, put

QUESTION = "messages per second"
LIBRARY = (
    document("one", (("Limits",), "Messages per second: ten messages."), title="First"),
    document("two", "Messages per second are counted.", title="Second"),
    document("three", "Some messages take a second.", title="Third"),
    document("long", "Messages " * 500, title="Fourth"),
)


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[Index]:
    index = await open_embedded(tmp_path, identity())
    await put(index, *LIBRARY)
    yield index
    await index.close()


@pytest.fixture
def reranker() -> FakeReranker:
    return FakeReranker()


def find_answered(_features: object) -> Assessment:
    return Assessment(answerability=0.9, coverage=0.9)


async def search(index: Index, reranker: FakeReranker | None, **more: object) -> Findings:
    searcher = LevelSearcher(index, WordEmbedder(), assess=find_answered, reranker=reranker)
    wanted = {"reranked": True, **more}
    return await searcher.search(SearchRequest(QUESTION, **wanted))  # type: ignore[arg-type]


def list_documents(findings: Findings) -> list[str]:
    return list(dict.fromkeys(hit.document_id for hit in findings.hits))


async def test_the_reranker_decides_the_order_and_the_scores_stay_those_of_the_search(
    index: Index, reranker: FakeReranker
) -> None:
    usual = await search(index, None, context_tokens=500)

    findings = await search(index, reranker, context_tokens=500)

    assert list_documents(usual)[0] != "three"
    assert list_documents(findings)[0] == findings.context[0].best.document_id == "three"
    others = [document for document in list_documents(usual) if document != "three"]
    assert list_documents(findings)[1:] == others
    usual_scores = [hit.score for hit in usual.hits]
    assert [hit.score for hit in findings.hits] == pytest.approx(usual_scores)
    assert findings.fallbacks == usual.fallbacks


async def test_the_reranker_reads_the_place_of_a_passage_and_no_more_than_it_should(
    index: Index, reranker: FakeReranker
) -> None:
    await search(index, reranker)

    [(question, passages)] = reranker.asked
    assert question == QUESTION
    assert "First > Limits\nMessages per second: ten messages." in passages
    assert max(map(len, passages)) <= LONGEST_PASSAGE
    assert len(passages) <= MOST_RERANKED


async def test_a_reranker_that_fails_leaves_the_order_and_it_is_reported_and_not_kept(
    index: Index, reranker: FakeReranker
) -> None:
    usual = await search(index, None)
    reranker.fails = True

    with capture_logs() as logs:
        findings = await search(index, reranker)

    assert [hit.chunk_id for hit in findings.hits] == [hit.chunk_id for hit in usual.hits]
    assert findings.fallbacks == ("reranking",)
    assert findings.are_calibrated
    assert {"event": "reranking_failed", "reranker": "fake@test"}.items() <= logs[-1].items()
    cache = FindingsCache(60.0)
    cache.put(b"key", findings)
    assert cache.get(b"key") is None


async def test_a_search_that_answers_nothing_is_not_reranked(
    index: Index, reranker: FakeReranker
) -> None:
    def find_nothing(_features: object) -> Assessment:
        return Assessment(answerability=0.1, coverage=0.1)

    await search(index, reranker, reranked=False)
    searcher = LevelSearcher(index, WordEmbedder(), assess=find_nothing, reranker=reranker)
    await searcher.search(SearchRequest(QUESTION, reranked=True))

    assert reranker.asked == []


async def test_a_search_reuses_the_look_up_of_one_that_was_not_reranked(
    index: Index, reranker: FakeReranker
) -> None:
    embedder = WordEmbedder()
    searcher = LevelSearcher(index, embedder, assess=find_answered, reranker=reranker)

    first = await searcher.search(SearchRequest(QUESTION))
    second = await searcher.search(SearchRequest(QUESTION, reranked=True))

    assert len(embedder.asked) == 1
    assert list_documents(first) != list_documents(second)


async def test_the_only_passage_needs_no_order(tmp_path: Path, reranker: FakeReranker) -> None:
    index = await open_embedded(tmp_path / "small", identity())
    await put(index, LIBRARY[0])

    findings = await search(index, reranker)
    await index.close()

    assert (list_documents(findings), reranker.asked) == (["one"], [])


def make_pages(scores: Sequence[Sequence[float]]) -> list[RankedPage]:
    pages = []
    for number, of_page in enumerate(sorted(scores, key=max, reverse=True)):
        name, version = f"page{number}", ""
        document = FoundDocument(name, version, (name, version), "en", "", len(of_page))
        chunks = [
            RankedChunk(make_chunk(document, at), score)
            for at, score in enumerate(sorted(of_page, reverse=True))
        ]
        pages.append(RankedPage(document, chunks[0].score, tuple(chunks)))
    return pages


def make_chunk(document: FoundDocument, ordinal: int) -> FoundChunk:
    name, version = document.document_id, document.version
    point = chunk_identity(name, version, ordinal)
    return FoundChunk(point, name, version, document.page, ordinal, 0, document.chunks - 1, 0.0)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_scores_nothing_is_lost_and_hits_follow_the_reranker(seed: int) -> None:
    draw = Random(seed)
    pages = make_pages(
        [
            [draw.choice((0.25, 0.5, draw.uniform(0.1, 9))) for _ in range(draw.randint(1, 5))]
            for _ in range(draw.randint(1, 30))
        ]
    )
    best = list_candidates(pages, MOST_RERANKED)
    judged = [draw.choice((0.0, draw.uniform(-9, 9))) for _ in best]

    moved = reorder(pages, best, judged)

    hits = list_candidates(moved, len(best))
    before = pytest.approx([ranked_chunk.score for ranked_chunk in best])
    assert {page.document for page in moved} == {page.document for page in pages}
    assert len(moved) == len(pages)
    assert [hit.score for hit in hits] == before
    of_chunk = dict(zip([ranked_chunk.chunk for ranked_chunk in best], judged, strict=True))
    by_judge = sorted(of_chunk, key=lambda chunk: -of_chunk[chunk])
    assert [hit.chunk for hit in hits] == by_judge
    scores_of = {hit.chunk: hit.score for page in moved for hit in page.chunks}
    assert [scores_of[chunk] for chunk in by_judge] == before
