"""Statistics about all documents for a search, counted by the index, without a copy of the
documents.

People in different groups have different views, so that a document that a person may not read does
not affect their results, such as their order, a probability, or a corrected word.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from knowledge.index.bm25 import TermNumbers, sort_terms
from knowledge.index.calibration import Calibrations
from knowledge.index.points.layout import KEYWORDS, VERSION, VOCABULARY, make_word_term
from knowledge.index.port import Index, IndexCounts, ReadableIndex
from knowledge.index.queries import Floats, QueryResult, SparseText, Terms, VectorQuery
from knowledge.search.versions import PageVersion, PageVersions

_MOST_ASKED = 256
_MOST_FREQUENCIES = 1 << 16
_WORDS_OF_GROUP = 32
_DOCUMENTS_OF_WORD = 32
_MOST_VIEWS = 8
_DOCUMENTS_WITH_LETTERS = 256


class CorpusView:
    """One revision of the documents, as seen by a search for a person."""

    def __init__(
        self,
        index: ReadableIndex,
        counts: IndexCounts,
        calibrations: Calibrations,
        numbers: TermNumbers,
        versioned: Sequence[Mapping[str, Any]],
    ) -> None:
        self.index = index
        self.counts = counts
        self.calibrations = calibrations
        self.numbers = numbers
        self._versioned = [str(document["document"]) for document in versioned]
        self.versions = PageVersions(
            [
                PageVersion(document["page"], document["language"], document[VERSION])
                for document in versioned
            ]
        )
        self._frequencies: dict[int, float] = {}
        self._letters: str | None = None

    async def read_frequencies(self, wanted: Iterable[int]) -> None:
        """Read how many chunks contain each term."""
        missing = [term for term in dict.fromkeys(wanted) if term not in self._frequencies]
        missing = missing[:_MOST_ASKED]
        if missing:
            asked = [
                VectorQuery(KEYWORDS, _one_term(term), 1, returns_text=True) for term in missing
            ]
            results = await self.index.query(asked)
            for term, query_result in zip(missing, results, strict=True):
                self._frequencies[term] = _frequency(
                    _read_idf(query_result, term), self.counts.chunks
                )
            while len(self._frequencies) > _MOST_FREQUENCIES:
                del self._frequencies[next(iter(self._frequencies))]

    def frequencies(self, wanted: Terms) -> Floats:
        """Return how many chunks contain each term; if the number was not read, return the number
        of all chunks.
        """
        every = float(self.counts.chunks)
        values = [self._frequencies.get(term, every) for term in wanted.tolist()]
        return np.array(values, dtype=np.float32)

    def idf(self, wanted: Terms) -> Floats:
        """Return the inverse document frequency of terms, with the highest one for unknown
        terms.
        """
        frequencies = self.frequencies(wanted)
        rest = np.maximum(self.counts.chunks - frequencies + 0.5, 0.0)
        idf: Floats = np.log1p(rest / (frequencies + 0.5)).astype(np.float32)
        return idf

    async def count_documents(self, words: Sequence[str]) -> dict[str, int]:
        """Return the number of documents that contain each word as spelled, which is exact up to
        one and otherwise at least two.

        Groups of words are looked up first, because most words do not exist.
        """
        every = list(dict.fromkeys(words))
        groups = [every[at : at + _WORDS_OF_GROUP] for at in range(0, len(every), _WORDS_OF_GROUP)]
        if len(groups) > 1:
            held = await self._find_words(groups, limit=1)
            groups = [
                group for group, query_result in zip(groups, held, strict=True) if query_result.ids
            ]
        alone = [word for group in groups for word in group]
        results = await self._find_words([[word] for word in alone], limit=2)
        counts = dict.fromkeys(every, 0)
        for word, query_result in zip(alone, results, strict=True):
            several = len(query_result.ids) > 1
            size = self.counts.documents
            counts[word] = (
                round(_frequency(query_result.scores[0], size))
                if several
                else len(query_result.ids)
            )
        return counts

    async def find_in_language(self, words: Collection[str], language: str) -> frozenset[str]:
        """Return those words that a document in a language contains as spelled.

        For a word in many documents, only some documents are checked.
        """
        every = list(dict.fromkeys(words))
        groups = [[word] for word in every]
        results = await self._find_words(groups, limit=_DOCUMENTS_OF_WORD, fields=("language",))
        return frozenset(
            word
            for word, query_result in zip(every, results, strict=True)
            if any(document["language"] == language for document in query_result.payloads)
        )

    async def _find_words(
        self, groups: Sequence[Sequence[str]], *, limit: int, fields: Sequence[str] = ()
    ) -> Sequence[QueryResult]:
        """Return documents that contain a word from each group as spelled."""
        texts = [
            sort_terms(self.numbers.of_all(make_word_term(word) for word in group))
            for group in groups
        ]
        return await self.index.query(
            [
                VectorQuery(
                    VOCABULARY,
                    SparseText(text, np.ones(len(text), np.float32)),
                    limit,
                    fields=fields,
                )
                for text in texts
            ]
        )

    async def read_letters(self) -> str:
        """Return the non-ASCII letters in some of the documents."""
        if self._letters is None:
            documents = await self.index.find_documents({}, ("letters",), _DOCUMENTS_WITH_LETTERS)
            self._letters = "".join(
                sorted({x for document in documents.values() for x in document["letters"]})
            )
        return self._letters

    def compares(self, asked: str, language: str) -> bool:
        """Return whether the model can compare questions in one language with texts in another."""
        calibration = self.calibrations.get(language)
        return calibration is not None and calibration.compares(asked)

    def find_other_versions(self, texts: Iterable[str]) -> frozenset[str]:
        """Return the documents that a search for these texts omits; see `PageVersions`."""
        return frozenset(self._versioned[at] for at in self.versions.find_others(texts))

    def find_versions(self, document_id: str) -> list[str]:
        """Return the ids of those other versions of a document that are not newer."""
        positions = (
            at for at, versioned_id in enumerate(self._versioned) if versioned_id == document_id
        )
        return [
            self._versioned[at]
            for position in positions
            for at in self.versions.find_not_newer(position)
        ]


class Corpora:
    """The documents in an index, by the groups of the people who may read them.

    Groups to which no document is restricted are ignored; if there are none, there is a single
    view. All views belong to one revision of the index.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._numbers = TermNumbers()
        self._known: frozenset[str] = frozenset()
        self._revision: str | None = None
        self._views: OrderedDict[frozenset[str], CorpusView] = OrderedDict()
        self._reading = asyncio.Lock()

    async def read(self, groups: Collection[str]) -> tuple[CorpusView, str]:
        """Return the documents that a person in these groups may currently read, and the
        revision.
        """
        revision = await self._index.revision()
        async with self._reading:
            if revision != self._revision:
                self._known = await self._index.groups()
                self._views.clear()
                self._revision = revision
            own = self._known.intersection(groups)
            view = self._views.pop(own, None)
            if view is None:
                view = await self._make(own)
            self._views[own] = view
            if len(self._views) > _MOST_VIEWS:
                self._views.popitem(last=False)
        return view, revision

    async def _make(self, own: frozenset[str]) -> CorpusView:
        index = self._index.visible_to(own, restricts=bool(self._known))
        fields = ("document", "page", "language", VERSION)
        versioned = await index.find_documents({"versioned": "yes"}, fields)
        return CorpusView(
            index,
            await index.counts(),
            await index.calibrations(),
            self._numbers,
            [*versioned.values()],
        )


def _one_term(term: int) -> SparseText:
    return SparseText(np.array([term], dtype=np.uint32), np.ones(1, dtype=np.float32))


def _read_idf(result: QueryResult, term: int) -> float | None:
    """Return the IDF that the engine applies to a term, or None for a term that does not occur."""
    if not result.ids:
        return None
    text = result.texts[0]
    return float(result.scores[0] / max(float(text.weights[text.terms == term].sum()), 1e-9))


def _frequency(idf: float | None, size: int) -> float:
    """Return how many of `size` texts contain a term, given the IDF that the search engine computed
    for it.

    The inverse of ln(1 + (N - n + 1/2) / (n + 1/2)) = ln((N + 1) / (n + 1/2)).
    """
    return 0.0 if idf is None else max((size + 1) / float(np.exp(idf)) - 0.5, 1.0)
