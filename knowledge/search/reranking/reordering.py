"""Orders the best candidates of a search by the scores of a reranker.

The reranker decides the order alone; the scores stay those of the search. The passage that it puts
first gets the best of the scores that these passages had, and so on. The thresholds of the readers
of scores therefore hold with and without a reranker.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from envelope.run import OUTSIDE, Run
from knowledge.errors import RerankingFailed
from knowledge.index.port import Passage
from knowledge.index.queries import PointId
from knowledge.port import RERANKING
from knowledge.search import fusion
from knowledge.search.context.composer import ReadPassages
from knowledge.search.fusion import RankedChunk, RankedPage
from knowledge.search.reranking.reranker import Reranker

MOST_RERANKED = 24
"""The candidates that a reranker reads; servers of Text Embeddings Inference take 32 at once."""
LONGEST_PASSAGE = 2_000
"""Characters of a passage; a chunk has about 700."""
_LESS = 1 - 1e-9

log = structlog.get_logger("knowledge")


@dataclass(frozen=True, slots=True)
class Reordered:
    """Pages with their chunks, best first; `fallbacks` is `RERANKING` if the reranker failed."""

    pages: list[RankedPage]
    fallbacks: tuple[str, ...] = ()


async def rerank(
    pages: list[RankedPage],
    points: Sequence[PointId],
    question: str,
    reranker: Reranker,
    read: ReadPassages,
    run: Run = OUTSIDE,
) -> Reordered:
    """Return the pages in the order of the reranker, or unchanged if it fails.

    `points` has the name of the point of each chunk, `read` returns their texts.
    """
    best = [one for one in fusion.candidates(pages, MOST_RERANKED) if one.score > 0]
    if len(best) < 2:
        return Reordered(pages)
    texts = await read([points[one.chunk] for one in best])
    known = [one for one in best if points[one.chunk] in texts]
    passages = [format_passage(texts[points[one.chunk]]) for one in known]
    try:
        scores = await reranker.score(question, passages, run)
    except RerankingFailed as error:
        log.warning("reranking_failed", reranker=reranker.name, error=str(error))
        return Reordered(pages, (RERANKING,))
    return Reordered(reorder(pages, known, scores))


def reorder(
    pages: Sequence[RankedPage], best: Sequence[RankedChunk], scores: Sequence[float]
) -> list[RankedPage]:
    """Return the pages ordered by new scores of their best chunks; others follow as they were.

    `best` are the chunks as `knowledge.search.fusion.candidates` returns them, `scores` has one for
    each. Equal ones keep their order.
    """
    order = sorted(range(len(best)), key=lambda at: -scores[at])
    places = _separate([one.score for one in best])
    moved = {best[at].chunk: score for at, score in zip(order, places, strict=True)}
    most = places[-1] * _LESS
    return sorted((_move(page, moved, most) for page in pages), key=lambda page: -page.score)


def format_passage(passage: Passage) -> str:
    """Return the text that a reranker reads: the place of a passage, and its text."""
    place = dict.fromkeys((passage.title, *passage.chunk.heading_path))
    return f"{' > '.join(filter(None, place))}\n{passage.chunk.text}"[:LONGEST_PASSAGE]


def _separate(scores: Sequence[float]) -> list[float]:
    """Return falling scores with equal ones made to differ, so that their order is kept."""
    falling: list[float] = []
    for score in scores:
        falling.append(min(score, falling[-1] * _LESS) if falling else score)
    return falling


def _move(page: RankedPage, moved: Mapping[int, float], most: float) -> RankedPage:
    """Return a page with the new scores of its chunks, others of at most `most`."""
    share = page.score / page.chunks[0].score if page.chunks[0].score > 0 else 1.0
    chunks = [
        RankedChunk(one.chunk, moved.get(one.chunk, min(one.score * share, most)))
        for one in page.chunks
    ]
    chunks.sort(key=lambda one: -one.score)
    return RankedPage(page.page, page.document, chunks[0].score, tuple(chunks))
