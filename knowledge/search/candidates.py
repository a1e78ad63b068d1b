"""The chunks that a question is compared with: the best of each level, found by the engine.

The engine returns the best chunks by meaning, by keywords and by names; then every one of them gets
its exact scores on all levels, from its vectors, which are kept for the next search. Chunks of a
version that is being written or removed are left out.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from knowledge.index.points import layout
from knowledge.index.points.layout import chunk_identity
from knowledge.index.queries import NOTHING_FOUND, Floats, QueryResult, SparseText, VectorQuery
from knowledge.search.kept_points import FoundChunk, FoundDocument, KeptPoints
from knowledge.search.query import Query
from knowledge.search.statistics.corpus import CorpusView
from knowledge.search.statistics.postings import Rows, score_texts
from knowledge.search.statistics.sample import cosines

BY_MEANING = 200
BY_KEYWORDS = 200
BY_NAMES = 100
ALONE = 10
# Of pages in several languages, the version to show may not be among the candidates.
_TRANSLATED_PAGES = 40
_TRANSLATED_CHUNKS = 40


@dataclass(frozen=True, slots=True)
class RawScores:
    """What the engine says about each candidate; the vectors' parts are None without a vector.

    `best_keywords` are the best BM25 scores of all chunks, `alone` the best cosines of the question
    without its conversation.
    """

    bm25: Floats
    summary: Floats
    best_keywords: Floats
    cosine: Floats | None = None
    lead: Floats | None = None
    centre: Floats | None = None
    alone: Floats | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Chunks with their documents; both count from 0."""

    points: Sequence[str]
    chunks: Sequence[FoundChunk]
    documents: Sequence[FoundDocument]
    raw: RawScores
    document_of: Rows
    page_of: Rows
    version_of: Mapping[tuple[int, str], int]
    kinds: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.points)

    def point_of(self, document: int, ordinal: int) -> str:
        """Return the name of the point of any chunk of a document."""
        found = self.documents[document]
        return chunk_identity(found.document_id, found.version, ordinal)

    def find_documents(self, document_ids: Collection[str]) -> list[int]:
        """Return the numbers of those of some documents that have candidates."""
        return [at for at, one in enumerate(self.documents) if one.document_id in document_ids]

    def find_chunks(self, chunk_ids: Iterable[str]) -> set[int]:
        """Return the candidates with these ids."""
        named = set(chunk_ids)
        if not named:
            return set()
        return {
            number
            for number, chunk in enumerate(self.chunks)
            if f"{chunk.document_id}#{chunk.ordinal}" in named
        }


class CandidateSearch:
    """Finds the candidates of one question in an index."""

    def __init__(self, view: CorpusView, kept: KeptPoints, query: Query, *, excluded: int) -> None:
        self._view = view
        self._kept = kept
        self._index = view.index
        self._query = query
        self._languages = view.counts.languages
        self._more = excluded
        self._text = SparseText(query.terms, query.weights)
        self._own = SparseText(query.own, np.ones(len(query.own), dtype=np.float32))

    async def find(self, language: str | None, *, is_last: bool = False) -> Candidates | None:
        """Return the candidates; None when a document was replaced while it was read.

        With `is_last`, that document is left out.
        """
        by_meaning, by_keywords, by_names, alone = await self._find_best()
        wanted = list(dict.fromkeys((*by_meaning.ids, *by_keywords.ids, *by_names.ids)))
        found = _CandidateParts()
        await self._read(found, wanted)
        if language is not None and len(self._languages) > 1 and language in self._languages:
            await self._read(found, await self._find_versions(found, language))
        present = found.list_present()
        torn = found.list_torn(present)
        self._kept.forget(torn)
        if torn and not is_last:
            return None
        return self._make(found, present, by_keywords.scores, alone)

    async def _find_best(self) -> tuple[QueryResult, QueryResult, QueryResult, Floats | None]:
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
        return by_meaning, words[0], words[1], alone

    async def _find_versions(self, found: "_CandidateParts", language: str) -> list[str]:
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

    async def _read(self, found: "_CandidateParts", points: Sequence[str]) -> None:
        """Add chunks with the first chunks of their sections, and their documents."""
        missing = [point for point in points if point not in found.chunks]
        if not missing:
            return
        found.chunks.update(await self._kept.read_chunks(self._view.index, missing))
        if self._query.vector is not None:
            leads = {one.lead_point for one in found.chunks.values()}
            leads.difference_update(found.chunks, found.leads)
            unread = sorted(leads)
            found.leads.update(await self._kept.read_chunks(self._view.index, unread))
        names = {one.document_id: None for one in found.chunks.values()}
        unread = [name for name in names if name not in found.documents]
        found.documents.update(
            await self._kept.read_documents(self._view.index, self._view.revision, unread)
        )

    def _score(
        self,
        found: "_CandidateParts",
        chunks: Sequence[FoundChunk],
        documents: Sequence[FoundDocument],
        document_of: Rows,
        best: tuple[Floats, Floats | None],
    ) -> RawScores:
        """Return the exact scores of chunks; `best` are the best of all by keywords, and alone."""
        query, view = self._query, self._view
        bm25 = score_texts(
            [chunk.keywords for chunk in chunks], query.terms, query.weights * view.idf(query.terms)
        )
        summary = score_texts(
            [document.summary for document in documents],
            query.terms,
            query.weights * view.summary_idf(query.terms),
        )[document_of]
        by_keywords, alone = best
        if alone is None or query.vector is None or not len(chunks):
            return RawScores(bm25, summary, by_keywords)
        cosine = cosines(_stack([chunk.vector for chunk in chunks]), query.vector)
        own = {chunk.point: value for chunk, value in zip(chunks, cosine.tolist(), strict=True)}
        others = [point for point in found.leads if point not in own]
        if others:
            led = cosines(_stack([found.leads[one].vector for one in others]), query.vector)
            own.update(zip(others, led.tolist(), strict=True))
        lead = np.array([own.get(chunk.lead_point, 0.0) for chunk in chunks], dtype=np.float32)
        centre = cosines(_stack([one.centre for one in documents]), query.vector)[document_of]
        return RawScores(bm25, summary, by_keywords, cosine, lead, centre, alone)

    def _make(
        self,
        found: "_CandidateParts",
        present: Sequence[FoundChunk],
        best_keywords: Floats,
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
            raw=self._score(found, chunks, documents, document_of, (best_keywords, alone)),
            document_of=document_of,
            page_of=np.array(page_of, dtype=np.int32),
            version_of={
                (page, document.language): number
                for number, (page, document) in enumerate(zip(page_of, documents, strict=True))
            },
            kinds={kind: (kinds == kind)[document_of] for kind in sorted({*kinds} - {""})},
        )


class _CandidateParts:
    """The parts that were read so far: chunks by their points, documents by their ids."""

    def __init__(self) -> None:
        self.chunks: dict[str, FoundChunk] = {}
        self.leads: dict[str, FoundChunk] = {}
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


def _stack(vectors: Sequence[Floats]) -> Floats:
    """Return vectors of one length as rows; faster than `numpy.stack`, which checks every one."""
    return np.concatenate(vectors).reshape(len(vectors), -1)
