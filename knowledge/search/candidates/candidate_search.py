"""Finds the candidates of a question: the best chunks of each level, found by the engine.

The engine returns the best chunks by meaning, by keywords and by names. Those that can be among the
best of all are read, and the engine returns the exact scores that they have on the other levels.
Chunks of a version that is being written or removed are left out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

import numpy as np

from knowledge.index.points import layout
from knowledge.index.points.layout import chunk_identity
from knowledge.index.queries import (
    NOTHING_FOUND,
    Floats,
    PointId,
    QueryResult,
    SparseText,
    VectorQuery,
)
from knowledge.search.candidates.engine_scores import EngineScores
from knowledge.search.candidates.found_candidates import Candidates, LevelMoments, RawScores
from knowledge.search.candidates.kept_points import FoundChunk, FoundDocument, KeptPoints
from knowledge.search.query import Query
from knowledge.search.statistics.corpus import CorpusView
from knowledge.search.statistics.postings import Rows
from knowledge.search.weights import Weights

BY_MEANING = 200
BY_KEYWORDS = 200
BY_NAMES = 100
ALONE = 10
MOST_COMPARED = 160
"""The chunks that are compared on all levels, the best by keywords and meaning together."""
LEAST_OF_LEVEL = 50
"""The best of each level alone that are compared in any case; of those found by names, all."""
# Of pages in several languages, the version to show may not be among the candidates.
_TRANSLATED_PAGES = 40
_TRANSLATED_CHUNKS = 40


@dataclass(frozen=True, slots=True)
class _BestPoints:
    """The best chunks of each level; `alone` are the best cosines without the conversation."""

    meaning: QueryResult
    keywords: QueryResult
    names: QueryResult
    alone: Floats | None

    def count_certain(self) -> int:
        """Return how many of these points are compared in any case; they come first."""
        best = chain(self.keywords.ids[:LEAST_OF_LEVEL], self.meaning.ids[:LEAST_OF_LEVEL])
        return len({*self.names.ids, *best})

    def list_points(self) -> list[PointId]:
        """Return each point once, those found by names first, then the best of each level."""
        first = [self.names.ids]
        first += [one.ids[:LEAST_OF_LEVEL] for one in (self.keywords, self.meaning)]
        return list(dict.fromkeys(chain(*first, self.keywords.ids, self.meaning.ids)))


class CandidateSearch:
    """Finds the candidates of one question in an index."""

    def __init__(
        self,
        view: CorpusView,
        kept: KeptPoints,
        query: Query,
        weights: Weights,
        *,
        excluded: int,
    ) -> None:
        self._view = view
        self._kept = kept
        self._index = view.index
        self._query = query
        self._weights = weights
        self._languages = view.counts.languages
        self._more = excluded
        self._text = SparseText(query.terms, query.weights)
        self._own = SparseText(query.own, np.ones(len(query.own), dtype=np.float32))
        self._scores = EngineScores(view.index, query)

    async def find(self, language: str | None, *, is_last: bool = False) -> Candidates | None:
        """Return the candidates; None when a document was replaced while it was read.

        With `is_last`, that document is left out.
        """
        best = await self._find_best()
        moments = self._measure(best)
        found = _CandidateParts()
        await self._read(found, self._choose(best, moments))
        if language is not None and len(self._languages) > 1 and language in self._languages:
            await self._read(found, await self._find_versions(found, language))
        present = found.list_present()
        torn = found.list_torn(present)
        self._kept.forget(torn)
        if torn and not is_last:
            return None
        return await self._make(found, present, moments, best.alone)

    async def _find_best(self) -> _BestPoints:
        query = self._query
        asked: list[VectorQuery] = []
        if len(query.terms):
            limit = BY_KEYWORDS + self._more
            asked.append(VectorQuery(layout.KEYWORDS, self._text, limit))
            asked.append(VectorQuery(layout.NAMES, self._own, BY_NAMES + self._more))
        if query.vector is not None and query.alone is not None:
            asked.append(VectorQuery(layout.SEMANTIC, query.vector, BY_MEANING + self._more))
            if query.vector is not query.alone:
                asked.append(VectorQuery(layout.SEMANTIC, query.alone, ALONE))
        results = list(await self._index.query(asked))
        words = [results.pop(0), results.pop(0)] if len(query.terms) else [NOTHING_FOUND] * 2
        by_meaning = results[0] if results else NOTHING_FOUND
        alone = results[-1].scores[:ALONE] if results else None
        if len(query.terms):
            self._scores.add(layout.KEYWORDS, words[0])
        if results:
            self._scores.add(layout.SEMANTIC, by_meaning)
        return _BestPoints(by_meaning, words[0], words[1], alone)

    def _measure(self, best: _BestPoints) -> LevelMoments:
        """Return how the scores of all chunks are distributed."""
        sample, query = self._view.sample, self._query
        idf = self._view.idf(query.terms)
        words = sample.measure_keywords(self._text, idf, best.keywords.scores, BY_KEYWORDS)
        about = sample.measure_summaries(self._text, self._view.counts.documents)
        if query.vector is None:
            return LevelMoments(words, about)
        meaning = sample.measure_cosines(query.vector)
        return LevelMoments(words, about, meaning, sample.measure_centres(query.vector))

    def _choose(self, best: _BestPoints, moments: LevelMoments) -> list[PointId]:
        """Return the chunks to compare on all levels: those whose sum can be the highest.

        A chunk that a level did not find has at most the score of the last one that it found.
        """
        every = best.list_points()
        most = MOST_COMPARED + self._more
        if len(every) <= most:
            return every
        words = moments.words.standardise(_bound(best.keywords, every))
        total = self._weights.weigh_words(words, is_english=self._query.is_english)
        if moments.meaning is not None:
            bounds = moments.meaning.standardise(_bound(best.meaning, every))
            total += self._weights.weigh_meaning(bounds)
        certain = best.count_certain()
        order = certain + np.argsort(-total[certain:], kind="stable")
        return every[:certain] + [every[at] for at in order[: max(most - certain, 0)].tolist()]

    async def _find_versions(self, found: "_CandidateParts", language: str) -> list[PointId]:
        """Return the chunks of the first pages' versions in a language."""
        pages = found.list_pages_without(language)[:_TRANSLATED_PAGES]
        if not pages:
            return []
        versions = await self._index.find_documents(
            {"page": pages, "language": language}, ("document", "version", "chunks")
        )
        return [
            chunk_identity(one["document"], one["version"], ordinal)
            for one in versions.values()
            for ordinal in range(min(int(one["chunks"]), _TRANSLATED_CHUNKS))
        ]

    async def _read(self, found: "_CandidateParts", points: Iterable[PointId]) -> None:
        """Add chunks and their documents."""
        missing = [point for point in points if point not in found.chunks]
        if not missing:
            return
        found.chunks.update(await self._kept.read_chunks(self._view.index, missing))
        names = {one.document_id: None for one in found.chunks.values()}
        unread = [name for name in names if name not in found.documents]
        found.documents.update(
            await self._kept.read_documents(self._view.index, self._view.revision, unread)
        )

    async def _score(
        self,
        chunks: Sequence[FoundChunk],
        documents: Sequence[FoundDocument],
        document_of: Rows,
        moments: LevelMoments,
        alone: Floats | None,
    ) -> RawScores:
        """Return the exact scores of chunks, those of their sections' first chunks, and pages'."""
        points = [chunk.point for chunk in chunks]
        leads = [chunk.lead_point for chunk in chunks]
        own = [document.point for document in documents]
        await self._scores.read(
            {
                layout.SEMANTIC: dict.fromkeys((*points, *leads)),
                layout.KEYWORDS: points,
                layout.CENTRE: own,
                layout.SUMMARY: own,
            }
        )
        scores = self._scores
        bm25 = scores.of(layout.KEYWORDS, points)
        summary = scores.of(layout.SUMMARY, own)[document_of]
        if alone is None or self._query.vector is None or not len(chunks):
            return RawScores(bm25, summary, moments)
        cosine, lead = scores.of(layout.SEMANTIC, points), scores.of(layout.SEMANTIC, leads)
        centre = scores.of(layout.CENTRE, own)[document_of]
        return RawScores(bm25, summary, moments, cosine, lead, centre, alone)

    async def _make(
        self,
        found: "_CandidateParts",
        present: Sequence[FoundChunk],
        moments: LevelMoments,
        alone: Floats | None,
    ) -> Candidates:
        """Return the chunks of present versions, in the order of their documents."""
        chunks = sorted(present, key=attrgetter("document_id", "ordinal"))
        numbers: dict[str, int] = {}
        own = [numbers.setdefault(chunk.document_id, len(numbers)) for chunk in chunks]
        documents = [found.documents[name] for name in numbers]
        pages: dict[tuple[str, str], int] = {}
        page_of = [
            pages.setdefault((one.page, one.stated_version), len(pages)) for one in documents
        ]
        document_of = np.array(own, dtype=np.int32)
        kinds = np.array([document.kind for document in documents], dtype=object)
        return Candidates(
            points=[chunk.point for chunk in chunks],
            chunks=chunks,
            documents=documents,
            raw=await self._score(chunks, documents, document_of, moments, alone),
            document_of=document_of,
            page_of=np.array(page_of, dtype=np.int32),
            version_of={
                (page, document.language): number
                for number, (page, document) in enumerate(zip(page_of, documents, strict=True))
            },
            kinds={kind: (kinds == kind)[document_of] for kind in sorted({*kinds} - {""})},
        )


def _bound(found: QueryResult, points: Sequence[PointId]) -> Floats:
    """Return the highest scores that points can have by a level."""
    if not found.ids:
        return np.zeros(len(points), dtype=np.float32)
    known, last = found.by_id(), float(found.scores[-1])
    return np.array([known.get(point, last) for point in points], dtype=np.float32)


class _CandidateParts:
    """The parts that were read so far: chunks by their points, documents by their ids."""

    def __init__(self) -> None:
        self.chunks: dict[PointId, FoundChunk] = {}
        self.documents: dict[str, FoundDocument] = {}

    def list_torn(self, present: Sequence[FoundChunk]) -> list[str]:
        """Return the documents that have candidates, but none of their present version."""
        whole = {one.document_id for one in present}
        return [name for name in self.documents if name not in whole]

    def list_present(self) -> list[FoundChunk]:
        """Return the chunks of the present versions."""
        versions = {name: one.version for name, one in self.documents.items()}
        return [one for one in self.chunks.values() if versions.get(one.document_id) == one.version]

    def list_pages_without(self, language: str) -> list[str]:
        """Return the pages that have no document in a language here."""
        pages: dict[str, bool] = {}
        for one in self.documents.values():
            pages[one.page] = pages.get(one.page, False) or one.language == language
        return [page for page, has_language in pages.items() if not has_language]
