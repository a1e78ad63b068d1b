"""From the scores of chunks to pages, and from pages to hits.

The levels' z-scores are added up (CombSUM over standardised scores, Fox and Shaw 1994). A page
scores by its best chunks; versions of one page in several languages are one page.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from knowledge.index.queries import Floats
from knowledge.search.candidates import Candidates
from knowledge.search.levels import NAMES, Scores
from knowledge.search.query import Query
from knowledge.search.weights import Weights

# Chunks further down change nothing on the first pages.
_CANDIDATES = 400
_FOUND_BY = 30
# Of one page, hits and candidates are this many chunks at most.
_HITS = 5
LEFT_OUT = -1e30
"""The score of a chunk that takes no part in a search."""
_KEPT = 20


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """A chunk by its number in the found."""

    chunk: int
    score: float


@dataclass(frozen=True, slots=True)
class RankedPage:
    """A page by the version to show, with its best chunks, best first."""

    page: int
    document: int
    score: float
    chunks: tuple[RankedChunk, ...]


def fuse(scores: Scores) -> Floats:
    """Return the sum of all levels for each chunk."""
    total: Floats = np.sum(list(scores.levels.values()), axis=0, dtype=np.float32)
    return total


def weigh_kinds(found: Candidates, total: Floats, query: Query, weights: Weights) -> Floats:
    """Return the scores with those of changelogs and indexes reduced, unless these are wanted."""
    weighed = total
    for kind, has_kind in found.kinds.items():
        if kind not in query.wanted:
            reduced = weighed * np.float32(weights.listing_pages)
            weighed = np.where(has_kind & (weighed > 0), reduced, weighed)
    return weighed


def leave_out(found: Candidates, total: Floats, documents: Sequence[int]) -> Floats:
    """Return the scores; chunks of these documents have the least possible one."""
    if not documents:
        return total
    chosen: Floats = np.where(np.isin(found.document_of, documents), np.float32(LEFT_OUT), total)
    return chosen


def pages(
    found: Candidates,
    total: Floats,
    *,
    best_chunks: Sequence[float],
    language: str | None = None,
    without: Collection[int] = (),
) -> list[RankedPage]:
    """Return the pages of the best chunks, best first, in `language` if it exists."""
    by_document: dict[int, list[RankedChunk]] = {}
    best = _best(total, _CANDIDATES + len(without))
    columns = (best.tolist(), total[best].tolist(), found.document_of[best].tolist())
    for chunk, score, document in zip(*columns, strict=True):
        if chunk not in without and score > LEFT_OUT:
            by_document.setdefault(document, []).append(RankedChunk(chunk, score))
    by_page: dict[int, list[int]] = {}
    for document in by_document:
        by_page.setdefault(int(found.page_of[document]), []).append(document)
    ranked = [
        _page(page, documents, by_document, best_chunks) for page, documents in by_page.items()
    ]
    ranked.sort(key=lambda page: -page.score)
    return [_in_language(found, total, page, language, by_document, without) for page in ranked]


def hits(ranked: Sequence[RankedPage], limit: int, *, of_page: int = _HITS) -> list[RankedChunk]:
    """Return the best chunks of the best pages, best first; at most `of_page` of one page.

    The first chunk of a page has the score of the page, a later one a proportionally lower score.
    Pages therefore keep their order, and a strong second chunk precedes a weak page.
    """
    kept = [page for page in ranked[:limit] if page.chunks[0].score > 0]
    if not kept:
        # The only chunk of an index has no others to compare its score with.
        return [RankedChunk(page.chunks[0].chunk, 0.0) for page in ranked[:1]]
    found = [
        RankedChunk(chunk.chunk, page.score * max(chunk.score, 0.0) / page.chunks[0].score)
        for page in kept
        for chunk in page.chunks[:of_page]
    ]
    return sorted(found, key=lambda chunk: -chunk.score)[:limit]


def candidates(ranked: Sequence[RankedPage], limit: int) -> list[RankedChunk]:
    """Return the chunks that a context is made of, best first."""
    return hits(ranked, limit, of_page=_KEPT)


def find_levels(scores: Scores, chunks: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Return for each chunk the levels that have it among their best; at least one."""
    least = {
        name: max(float(np.partition(values, -_FOUND_BY)[-_FOUND_BY]), 1e-6)
        if len(values) > _FOUND_BY
        else 1e-6
        for name, values in scores.levels.items()
    }
    for chunk in chunks:
        own = {name: float(scores.levels[name][chunk]) for name in NAMES if name in least}
        names = tuple([name for name, value in own.items() if value >= least[name]])
        yield names or (max(own, key=lambda name: own[name]),)


def _page(
    page: int,
    documents: Sequence[int],
    by_document: dict[int, list[RankedChunk]],
    best_chunks: Sequence[float],
) -> RankedPage:
    def score(document: int) -> float:
        ranked = zip(best_chunks, by_document[document], strict=False)
        return sum([factor * max(chunk.score, 0.0) for factor, chunk in ranked])

    scores = [score(document) for document in documents]
    highest = max(scores)
    best = documents[scores.index(highest)]
    return RankedPage(page, best, highest, tuple(by_document[best][:_KEPT]))


def _in_language(
    found: Candidates,
    total: Floats,
    page: RankedPage,
    language: str | None,
    by_document: dict[int, list[RankedChunk]],
    without: Collection[int],
) -> RankedPage:
    """Return a page by its version in a language, when there is one with anything to say."""
    version = found.version_of.get((page.page, language)) if language is not None else None
    if version is None or version == page.document:
        return page
    chunks = by_document.get(version) or _chunks_of(found, total, version, without)
    if not chunks or chunks[0].score <= 0:
        return page
    return RankedPage(page.page, version, page.score, tuple(chunks[:_KEPT]))


def _chunks_of(
    found: Candidates, total: Floats, document: int, without: Collection[int]
) -> list[RankedChunk]:
    own = found.chunks_of.get(document, ())
    ranked = (RankedChunk(at, float(total[at])) for at in own if at not in without)
    return sorted(ranked, key=lambda chunk: -chunk.score)


def _best(total: Floats, count: int) -> npt.NDArray[np.int64]:
    """Return the best chunks, best first; of equals the earlier one."""
    if len(total) > count:
        least = np.partition(total, -count)[-count]
        chosen = np.flatnonzero(total >= least)
    else:
        chosen = np.arange(len(total))
    return chosen[np.argsort(-total[chosen], kind="stable")]
