"""From the scores of chunks to pages, and from pages to hits.

The levels' z-scores are added up (CombSUM over standardised scores, Fox and Shaw 1994). A page
scores by its best chunks; versions of one page in several languages are one page.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from knowledge.index.queries import Floats
from knowledge.search.candidates.found_candidates import Candidates
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
# More pages than any search returns or a context needs.
_MOST_PAGES = 64


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
    by_document: dict[int, list[tuple[int, float]]] = {}
    best = _best(total, _CANDIDATES + len(without))
    columns = (best.tolist(), total[best].tolist(), found.document_of[best].tolist())
    for chunk, score, document in zip(*columns, strict=True):
        if chunk not in without and score > LEFT_OUT:
            by_document.setdefault(document, []).append((chunk, score))
    of_page = found.page_of.tolist()
    by_page: dict[int, tuple[float, int]] = {}
    for document, chunks in by_document.items():
        own = _score_page(chunks, best_chunks)
        known = by_page.get(of_page[document])
        if known is None or own > known[0]:
            by_page[of_page[document]] = own, document
    first = sorted(by_page.items(), key=lambda one: -one[1][0])[:_MOST_PAGES]
    ranked = {
        document: _list_chunks(by_document.get(document, ()))
        for document in _list_shown(found, first, language)
    }
    return [
        _in_language(
            found, total, RankedPage(page, document, score, ranked[document]), language, ranked,
            without,
        )
        for page, (score, document) in first
    ]  # fmt: skip


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


def _score_page(chunks: Sequence[tuple[int, float]], best_chunks: Sequence[float]) -> float:
    """Return the score of a page by its best chunks, best first."""
    # Nearly always one factor, for a hundred pages of each search.
    if len(best_chunks) == 1:
        return best_chunks[0] * max(chunks[0][1], 0.0)
    ranked = zip(best_chunks, chunks, strict=False)
    return sum([factor * max(score, 0.0) for factor, (_, score) in ranked])


def _list_chunks(chunks: Sequence[tuple[int, float]]) -> tuple[RankedChunk, ...]:
    return tuple([RankedChunk(chunk, score) for chunk, score in chunks[:_KEPT]])


def _list_shown(
    found: Candidates, pages: Sequence[tuple[int, tuple[float, int]]], language: str | None
) -> list[int]:
    """Return the documents of pages, and their versions in a language."""
    own = [document for _, (_, document) in pages]
    if language is None:
        return own
    others = (found.version_of.get((page, language)) for page, _ in pages)
    return list(dict.fromkeys((*own, *(other for other in others if other is not None))))


def _in_language(
    found: Candidates,
    total: Floats,
    page: RankedPage,
    language: str | None,
    by_document: Mapping[int, Sequence[RankedChunk]],
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
    own = np.flatnonzero(found.document_of == document).tolist()
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
