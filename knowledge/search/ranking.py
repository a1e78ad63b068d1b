"""Ranks pages by fusing the lists of the engine with weighted reciprocal ranks.

| level        | list of the engine                                                        |
|--------------|---------------------------------------------------------------------------|
| keywords     | chunks, by BM25 of their text, their place and their stated metadata      |
| semantic     | chunks, by cosine                                                         |
|              | pages, by the cosines of their three best chunks of that list             |
| summary      | documents, by BM25 of their summary                                       |
| hierarchical | chunks whose heading, defined terms or page are named; a bonus, not a list |

In each list of chunks, a page has the rank of its best chunk. Ranks do not show how well the first
result fits, so a name that equals the question gets a bonus, and so does metadata that a source
states about its page, for words that the page's own text does not contain. For the same reason, if
the embedding model is calibrated and can compare the language, the weight of keywords is the share
of the question, by IDF, that their best chunk covers. If no content word occurs, only the meaning
counts.

All lists come from one batch of queries with the data that ranking needs; afterwards only the
documents of the best pages are read, and a version is valid if the document's own point refers to
it. `docs/internal/adr/0019-ranks-are-fused.md` explains why ranks are fused here and not by the
engine.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np

from knowledge.index.calibration import choose_language
from knowledge.index.points import layout
from knowledge.index.points.layout import chunk_identity, document_identity
from knowledge.index.queries import (
    NOTHING_FOUND,
    Floats,
    PointId,
    QueryResult,
    SparseText,
    VectorQuery,
)
from knowledge.search.corpus import CorpusView
from knowledge.search.query import ENGLISH, Query

KEYWORDS = "keywords"
SEMANTIC = "semantic"
HIERARCHICAL = "hierarchical"
SUMMARY = "summary"
LEVELS = (KEYWORDS, SEMANTIC, HIERARCHICAL, SUMMARY)

RANK_OFFSET = 5
MOST_CHUNKS = 100
"""The length of the lists of chunks by keywords and by meaning."""
MOST_NAMED = 30
MOST_DOCUMENTS = 50
MOST_PAGES = 24
"""The number of best pages, which is more than any search returns or a context needs; each has
`_KEPT` chunks.
"""
_KEPT = 20
_HITS = 5
"""Maximum number of chunks of one page that become hits."""
LEAST_LIKENESS = 0.5
"""Results with less than half of the best similarity do not count as found by meaning, because a
small index has no other chunks that could rank below them.
"""
_SEVERAL = 3
_FOUND_BY = 30
"""The number of first ranks within which a level counts as having found a chunk."""
_TRANSLATED_PAGES = 40
_TRANSLATED_CHUNKS = 40
_CHUNK_FIELDS = ("document", "version", "ordinal", "page", "first", "last", layout.VERSION)
_DOCUMENT_FIELDS = (
    "document", "version", "page", "language", "kind_of_page", "chunks", layout.VERSION,
)  # fmt: skip

Name = TypeVar("Name", bound=Hashable)
Page = tuple[str, str]
"""A page in one stated version; its documents are the same page in several languages."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the lists, which are the same for every index and question.

    `several` is the weight of pages by their three best chunks. `named` is the bonus for a chunk
    whose name is the question, and `stated` for a page whose stated metadata alone contains all
    words of the question. For a question that is not in English and that no calibrated model can
    compare, the weight of keywords is multiplied by `foreign_keywords`, because the shipped model
    is less reliable for it.
    """

    keywords: float = 40.0
    semantic: float = 40.0
    several: float = 20.0
    summary: float = 8.0
    named: float = 12.0
    stated: float = 12.0
    foreign_keywords: float = 2.0
    listing_pages: float = 0.8


class FoundChunk(NamedTuple):
    """A chunk in a list, with its score there; `first` and `last` are the first and last chunk of
    its section.
    """

    point: PointId
    document_id: str
    version: str
    page: Page
    ordinal: int
    first: int
    last: int
    score: float

    @property
    def chunk_id(self) -> str:
        """The id of the chunk."""
        return f"{self.document_id}#{self.ordinal}"

    @property
    def key(self) -> tuple[str, int]:
        """A key that is faster to compare than the id of the point."""
        return self.document_id, self.ordinal


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document in its current version, which has this number of chunks."""

    document_id: str
    version: str
    page: Page
    language: str
    kind: str
    chunks: int


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """A chunk with its score in the overall order."""

    chunk: FoundChunk
    score: float


@dataclass(frozen=True, slots=True)
class RankedPage:
    """A page, represented by the document to show, with its best chunks, best first."""

    document: FoundDocument
    score: float
    chunks: tuple[RankedChunk, ...]


@dataclass(frozen=True, slots=True)
class Lists:
    """The results of each list, best first.

    `named` contains, for each chunk, the similarity (0 to 1) of the question and the best of the
    chunk's names. `stated` contains, for pages, the share of the question that occurs only in their
    stated metadata.
    """

    keywords: Sequence[FoundChunk] = ()
    semantic: Sequence[FoundChunk] = ()
    summary: Sequence[Page] = ()
    named: Sequence[FoundChunk] = ()
    stated: Mapping[Page, float] = field(default_factory=dict)

    @property
    def chunks(self) -> Iterator[FoundChunk]:
        """The chunks of all lists."""
        return chain(self.keywords, self.semantic, self.named)

    def keep(self, is_kept: Callable[[FoundChunk], bool]) -> "Lists":
        """Return the lists with some of their chunks."""
        return replace(
            self,
            keywords=tuple(filter(is_kept, self.keywords)),
            semantic=tuple(filter(is_kept, self.semantic)),
            named=tuple(filter(is_kept, self.named)),
        )


@dataclass(frozen=True, slots=True)
class Found:
    """The lists of a search, and the pages that result from combining them."""

    lists: Lists
    pages: list[RankedPage]

    def find_levels(self, ranked: Iterable[RankedChunk]) -> Iterator[tuple[str, ...]]:
        """Yield, for each chunk, the levels that have it among their best results; at least one."""
        lists = self.lists
        chunks = {
            KEYWORDS: {keyword.key for keyword in lists.keywords[:_FOUND_BY]},
            SEMANTIC: {chunk.key for chunk in lists.semantic[:_FOUND_BY]},
            HIERARCHICAL: {chunk.key for chunk in lists.named[:_FOUND_BY]},
        }
        pages = {*lists.summary[:_FOUND_BY]}
        for chunk in ranked:
            levels = [name for name, keys in chunks.items() if chunk.chunk.key in keys]
            if chunk.chunk.page in pages:
                levels.append(SUMMARY)
            yield tuple(levels) or ((SEMANTIC,) if lists.semantic else (KEYWORDS,))


class Ranker:
    """Ranks the pages of an index for one question."""

    def __init__(
        self, view: CorpusView, query: Query, weights: Weights, exclude: Collection[str] = ()
    ) -> None:
        self._view = view
        self._query = query
        self._weights = weights
        self._exclude = frozenset(exclude)
        self._text = SparseText(query.terms, query.weights)
        self._wordings = [
            dict(zip(phrase.tolist(), view.idf(phrase).tolist(), strict=True))
            for phrase in query.phrases
        ]

    async def rank(
        self, language: str | None, left_out: Collection[str], *, is_last: bool = False
    ) -> Found | None:
        """Return the pages, or None if a document was replaced while it was read.

        If `is_last` is true, that document is omitted, as are the documents in `left_out`. A page
        that has a version in `language` is shown in that version.
        """
        lists = await self._ask()
        if left_out or self._exclude:
            lists = lists.keep(
                lambda item: item.document_id not in left_out and item.chunk_id not in self._exclude
            )
        ranked = self._fuse_pages(lists)
        best = set(sorted(ranked, key=lambda page: (-ranked[page], page))[:MOST_PAGES])
        kept = lists.keep(lambda item: item.page in best)
        documents = await self._read_documents({chunk.document_id for chunk in kept.chunks})
        present = kept.keep(lambda item: _is_present(item, documents))
        if not is_last and not {chunk.document_id for chunk in present.chunks}.issuperset(
            documents
        ):
            return None
        if len([*present.chunks]) < len([*kept.chunks]):
            ranked = self._fuse_pages(
                lists.keep(lambda item: item.page not in best or _is_present(item, documents))
            )
        pages = self._list_pages(present, ranked, documents)
        if language in self._view.counts.languages and len(self._view.counts.languages) > 1:
            pages = await self._show_in(language, pages, left_out)
        return Found(lists, pages)

    async def _ask(self) -> Lists:
        """Return all lists, from one batch of queries."""
        query, more = self._query, len(self._exclude)
        asked: dict[str, VectorQuery] = {}
        if len(query.terms):
            chunks = MOST_CHUNKS + more
            own = SparseText(query.own, np.ones(len(query.own), dtype=np.float32))
            named = (*_CHUNK_FIELDS, layout.NAMES)
            asked = {
                KEYWORDS: VectorQuery(layout.KEYWORDS, self._text, chunks, fields=_CHUNK_FIELDS),
                layout.NAMES: VectorQuery(layout.NAMES, own, MOST_NAMED + more, fields=named),
                SUMMARY: self._ask_documents(layout.SUMMARY, self._text),
            }
            if self._view.counts.labelled:
                labels = self._ask_documents(layout.LABELS, own)
                asked[layout.LABELS] = replace(labels, returns_text=True)
        if query.vector is not None:
            chunks = MOST_CHUNKS + more
            asked[SEMANTIC] = VectorQuery(
                layout.SEMANTIC, query.vector, chunks, fields=_CHUNK_FIELDS
            )
        answers = dict(zip(asked, await self._view.index.query([*asked.values()]), strict=True))
        semantic = answers.get(SEMANTIC, NOTHING_FOUND)
        least = LEAST_LIKENESS * float(semantic.scores[0]) if semantic.ids else 0.0
        return Lists(
            keywords=_read_chunks(answers.get(KEYWORDS, NOTHING_FOUND)),
            semantic=tuple(chunk for chunk in _read_chunks(semantic) if chunk.score >= least),
            summary=_read_pages(answers.get(SUMMARY, NOTHING_FOUND)),
            named=self._compare_names(answers.get(layout.NAMES, NOTHING_FOUND)),
            stated=self._compare_labels(answers.get(layout.LABELS, NOTHING_FOUND)),
        )

    @staticmethod
    def _ask_documents(using: str, vector: Floats | SparseText) -> VectorQuery:
        return VectorQuery(using, vector, MOST_DOCUMENTS, fields=("page", layout.VERSION))

    def _compare_names(self, answer: QueryResult) -> Sequence[FoundChunk]:
        """Return the named chunks, sorted by the similarity of the question and the best of their
        names.
        """
        likeness = [
            max((_compare(name, own) for name in names for own in self._wordings), default=0.0)
            for names in (payload[layout.NAMES] for payload in answer.payloads)
        ]
        return _sort(
            chunk._replace(score=alike)
            for chunk, alike in zip(_make_chunks(answer), likeness, strict=True)
        )

    def _compare_labels(self, answer: QueryResult) -> dict[Page, float]:
        """Return, for pages, the share of the question, by IDF, that occurs only in their
        metadata.
        """
        pages = map(_read_page, answer.payloads)
        return {
            page: max(
                sum(own[term] for term in text.terms.tolist() if term in own) / sum(own.values())
                for own in self._wordings
            )
            for page, text in zip(pages, answer.texts, strict=True)
        }

    def _fuse_pages(self, lists: Lists) -> dict[Page, float]:
        weights = self._weights
        total = fuse(
            (
                (self._weigh_keywords(lists), (keyword.page for keyword in lists.keywords)),
                (weights.semantic, (chunk.page for chunk in lists.semantic)),
                (weights.several, _rank_by_several(lists.semantic)),
                (weights.summary, lists.summary),
            )
        )
        # A page has the bonus of the best of its names, which come first.
        for page, alike in {chunk.page: chunk.score for chunk in reversed(lists.named)}.items():
            total[page] = total.get(page, 0.0) + weights.named * alike**3
        for page, share in lists.stated.items():
            total[page] = total.get(page, 0.0) + weights.stated * share
        return total

    def _weigh_keywords(self, lists: Lists) -> float:
        """Return the weight of the keyword list.

        A term that occurs once in a chunk of average length adds its IDF to the score of the chunk.
        """
        weights = self._weights
        if self._compares_meaning() and lists.keywords:
            whole = min((sum(own.values()) for own in self._wordings), default=0.0)
            return weights.keywords * min(1.0, lists.keywords[0].score / max(whole, 1e-9))
        is_english = self._query.language == ENGLISH
        return weights.keywords * (1.0 if is_english else weights.foreign_keywords)

    def _compares_meaning(self) -> bool:
        """Return whether the embedding model can compare the question with the documents."""
        asked, view = self._query.language, self._view
        known = view.calibrations.get(choose_language(asked, view.counts.languages))
        is_known = known is not None and known.is_usable and known.compares(asked)
        return is_known and self._query.vector is not None

    def _score_chunks(self, lists: Lists) -> dict[tuple[str, int], float]:
        """Return the scores that determine the order of the chunks of one page."""
        total = fuse(
            (
                (self._weigh_keywords(lists), (keyword.key for keyword in lists.keywords)),
                (self._weights.semantic, (chunk.key for chunk in lists.semantic)),
            )
        )
        for chunk in lists.named:
            total[chunk.key] = total.get(chunk.key, 0.0) + self._weights.named * chunk.score**3
        return total

    def _list_pages(
        self, lists: Lists, scores: Mapping[Page, float], documents: Mapping[str, FoundDocument]
    ) -> list[RankedPage]:
        """Return the pages of the chunks, best first, each represented by the document of its best
        chunk.
        """
        own = self._score_chunks(lists)
        chunks: dict[Page, list[RankedChunk]] = defaultdict(list)
        for key, chunk in {chunk.key: chunk for chunk in lists.chunks}.items():
            chunks[chunk.page].append(RankedChunk(chunk, own[key]))
        pages: list[RankedPage] = []
        for page, unordered in chunks.items():
            ranked = _order(unordered)
            document = documents[ranked[0].chunk.document_id]
            shown = tuple(c for c in ranked if c.chunk.document_id == document.document_id)
            weight = self._weights.listing_pages if document.kind else 1.0
            if scores[page] > 0:
                pages.append(RankedPage(document, scores[page] * weight, shown[:_KEPT]))
        return sorted(pages, key=lambda page: (-page.score, page.document.document_id))

    async def _read_documents(self, names: Collection[str]) -> dict[str, FoundDocument]:
        points = [document_identity(name) for name in sorted(names)]
        read = await self._view.index.fields_of(points, _DOCUMENT_FIELDS)
        return {fields["document"]: _make_document(fields) for fields in read.values()}

    async def _show_in(
        self, language: str | None, pages: list[RankedPage], left_out: Collection[str]
    ) -> list[RankedPage]:
        """Return the pages, each in its version in a language if there is one."""
        others = [
            ranked_page
            for ranked_page in pages[:_TRANSLATED_PAGES]
            if ranked_page.document.language != language
        ]
        if not others:
            return pages
        match = {"page": [other.document.page[0] for other in others], "language": str(language)}
        read = await self._view.index.find_documents(match, _DOCUMENT_FIELDS)
        versions = {
            document.page: document
            for document in map(_make_document, read.values())
            if document.document_id not in left_out
        }
        wanted = [
            versions[other.document.page] for other in others if other.document.page in versions
        ]
        chunks = await self._score_versions(wanted)
        return [
            replace(page, document=version, chunks=own)
            if (version := versions.get(page.document.page)) is not None
            and page.document.language != language
            and (own := chunks.get(version.document_id))
            else page
            for page in pages
        ]

    async def _score_versions(
        self, versions: Sequence[FoundDocument]
    ) -> dict[str, tuple[RankedChunk, ...]]:
        """Return the chunks of documents, which may not be among the best in any list."""
        points = [
            chunk_identity(version.document_id, version.version, ordinal)
            for version in versions
            for ordinal in range(min(version.chunks, _TRANSLATED_CHUNKS))
        ]
        vectors: list[tuple[str, Floats | SparseText]] = []
        if len(self._query.terms):
            vectors.append((layout.KEYWORDS, self._text))
        if self._query.vector is not None:
            vectors.append((layout.SEMANTIC, self._query.vector))
        if not points or not vectors:
            return {}
        answers = await self._view.index.query(
            [VectorQuery(using, vector, len(points), points, _CHUNK_FIELDS)
             for using, vector in vectors]
        )  # fmt: skip
        lists = [_read_chunks(answer) for answer in answers]
        scores = fuse((1.0, (chunk.key for chunk in each)) for each in lists)
        own: dict[str, list[RankedChunk]] = defaultdict(list)
        for key, chunk in {chunk.key: chunk for chunk in chain(*lists)}.items():
            if chunk.chunk_id not in self._exclude:
                own[chunk.document_id].append(RankedChunk(chunk, scores[key]))
        return {name: tuple(_order(ranked)[:_KEPT]) for name, ranked in own.items()}


def weigh_levels_alone() -> dict[str, Weights]:
    """Return one set of weights per level, in which only that level counts."""
    usual = Weights()
    nothing = Weights(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    return {
        KEYWORDS: replace(nothing, keywords=usual.keywords, stated=usual.stated),
        SEMANTIC: replace(nothing, semantic=usual.semantic, several=usual.several),
        HIERARCHICAL: replace(nothing, named=usual.named),
        SUMMARY: replace(nothing, summary=usual.summary),
    }


def fuse(lists: Iterable[tuple[float, Iterable[Name]]]) -> dict[Name, float]:
    """Return, for each name, the sum of weight / (offset + rank) over the lists that contain it."""
    total: dict[Name, float] = defaultdict(float)
    for weight, names in lists:
        for rank, name in enumerate(dict.fromkeys(names), start=1):
            total[name] += weight / (RANK_OFFSET + rank)
    return total


def list_hits(
    pages: Sequence[RankedPage], limit: int, *, of_page: int = _HITS, loss: float = 1.0
) -> list[RankedChunk]:
    """Return the best chunks of the best pages, best first, with at most `of_page` per page.

    The first chunk of a page has the score of the page, and each further one a proportionally lower
    score, to the power of `loss`. Pages therefore keep their order, and a strong second chunk
    precedes a weak page.
    """
    chunks = [
        RankedChunk(chunk.chunk, page.score * (chunk.score / first if first else 1.0) ** loss)
        for page in pages[:limit]
        for first in (page.chunks[0].score,)
        for chunk in page.chunks[:of_page]
    ]
    return sorted(chunks, key=lambda item: -item.score)[:limit]


def list_candidates(
    pages: Sequence[RankedPage], limit: int, *, loss: float = 1.0
) -> list[RankedChunk]:
    """Return the chunks for a reranker or for a context, best first."""
    return list_hits(pages, limit, of_page=_KEPT, loss=loss)


def _rank_by_several(chunks: Sequence[FoundChunk]) -> list[Page]:
    """Return pages sorted by the sum of their best chunks' scores, each relative to the score of
    the last one.
    """
    exceeding: dict[Page, list[float]] = defaultdict(list)
    for chunk in chunks:
        exceeding[chunk.page].append(chunk.score - chunks[-1].score)
    return sorted(exceeding, key=lambda page: (-sum(exceeding[page][:_SEVERAL]), page))


def _compare(name: Sequence[int], question: Mapping[int, float]) -> float:
    """Return the F1 score of a name and a question, by IDF.

    A term that is not in the question has the mean weight of the terms in the question.
    """
    common = sum(question[term] for term in name if term in question)
    if not common:
        return 0.0
    whole = sum(question.values())
    further = sum(term not in question for term in name) * whole / len(question)
    return 2 * common / (common + further + whole)


def _is_present(chunk: FoundChunk, documents: Mapping[str, FoundDocument]) -> bool:
    document = documents.get(chunk.document_id)
    return document is not None and document.version == chunk.version


def _read_pages(answer: QueryResult) -> Sequence[Page]:
    """Return the pages of documents, sorted by score and, for equal scores, by name."""
    ranked = zip((-answer.scores).tolist(), map(_read_page, answer.payloads), strict=True)
    return tuple(page for _, page in sorted(ranked))


def _read_page(payload: Mapping[str, Any]) -> Page:
    return payload["page"], payload.get(layout.VERSION, "")


def _read_chunks(answer: QueryResult) -> Sequence[FoundChunk]:
    return _sort(_make_chunks(answer))


def _make_chunks(answer: QueryResult) -> Iterator[FoundChunk]:
    columns = zip(answer.ids, answer.scores.tolist(), answer.payloads, strict=True)
    for point, score, payload in columns:
        place = payload["document"], payload["version"], _read_page(payload), payload["ordinal"]
        yield FoundChunk(point, *place, payload["first"], payload["last"], score)


def _make_document(payload: Mapping[str, Any]) -> FoundDocument:
    return FoundDocument(
        document_id=payload["document"],
        version=payload["version"],
        page=_read_page(payload),
        language=payload["language"],
        kind=payload.get("kind_of_page", ""),
        chunks=payload["chunks"],
    )


def _sort(chunks: Iterable[FoundChunk]) -> Sequence[FoundChunk]:
    """Return chunks sorted by score; the engine's order of equal ones depends on points that are
    not visible.
    """
    return tuple(sorted(chunks, key=lambda item: (-item.score, item.document_id, item.ordinal)))


def _order(chunks: Iterable[RankedChunk]) -> list[RankedChunk]:
    return sorted(
        chunks, key=lambda item: (-item.score, item.chunk.document_id, item.chunk.ordinal)
    )
