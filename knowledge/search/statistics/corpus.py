"""What a search knows about all documents without a copy of them.

The index counts its documents and says how many chunks contain a term; a sample of fixed size says
how scores are distributed. All of it belongs to one revision of the index, except for the sample
and the frequencies of terms that only names contain: they change slowly, and are read again when
the index has grown or shrunk noticeably, or after `SAMPLE_SECONDS`.

People of different groups have different views, so that a document that a person may not read has
no effect on what they find: neither on an order, nor on a probability or a corrected word.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from time import monotonic
from typing import Any

import numpy as np

from knowledge.index.bm25 import TermNumbers
from knowledge.index.points.layout import (
    KEYWORDS,
    LABELS,
    VERSION,
    VOCABULARY,
    make_word_term,
)
from knowledge.index.port import Index, IndexCounts, ReadableIndex
from knowledge.index.queries import Floats, QueryResult, SparseText, Terms, VectorQuery
from knowledge.index.terms import terms
from knowledge.search.statistics.sample import CHUNKS, DOCUMENTS, CorpusSample
from knowledge.search.versions import PageVersion, PageVersions

SAMPLE_SECONDS = 30.0
MOST_CHANGE = 0.02
MOST_KEPT = 1 << 16
_MOST_ASKED = 256
_MOST_ROOTS = 50
_WORDS_OF_GROUP = 32
_MOST_CORPORA = 8


class CorpusView:
    """One revision of the documents, as a search sees it."""

    def __init__(
        self,
        index: ReadableIndex,
        revision: str,
        counts: IndexCounts,
        sample: CorpusSample,
        kept: dict[int, float],
        numbers: TermNumbers,
        versioned: Sequence[Mapping[str, Any]],
    ) -> None:
        self._versioned = [str(one["document"]) for one in versioned]
        self.versions = PageVersions(
            [PageVersion(one["page"], one["language"], one[VERSION]) for one in versioned]
        )
        self.numbers = numbers
        self.counts = counts
        self.revision = revision
        self.sample = sample
        self.index = index
        self.kept = kept
        self._present: dict[int, float] = {}
        self._labels: dict[int, float] = {}

    def __len__(self) -> int:
        return self.counts.chunks

    async def read_frequencies(self, wanted: Iterable[int]) -> None:
        """Read how many chunks of this revision contain each term, and how many labels."""
        missing = [term for term in dict.fromkeys(wanted) if term not in self._present]
        missing = missing[:_MOST_ASKED]
        if not missing:
            return
        asked = [_ask_for(KEYWORDS, term) for term in missing]
        if self.counts.labelled:
            asked += [_ask_for(LABELS, term) for term in missing]
        found = await self.index.query(asked)
        idf = [_read_idf(one, term) for term, one in zip(missing * 2, found, strict=False)]
        for term, value in zip(missing, idf, strict=False):
            self._present[term] = _frequency(value, self.counts.chunks)
            self._keep(term)
        for term, value in zip(missing, idf[len(missing) :], strict=False):
            self._labels[term] = _frequency(value, self.counts.labelled)

    async def read_kept_frequencies(self, wanted: Iterable[int]) -> None:
        """Read the frequencies of terms that no earlier revision has read."""
        await self.read_frequencies([term for term in wanted if term not in self.kept])

    def frequency(self, term: int) -> float:
        """Return how many chunks contain a term; an estimate if it was not read."""
        found = self._present.get(term, self.kept.get(term))
        return self.sample.frequency(term) if found is None else found

    def label_frequency(self, term: int) -> float:
        """Return in how many documents a term is added by stated metadata."""
        return self._labels.get(term, 0.0)

    def frequencies(self, wanted: Terms) -> Floats:
        """Return how many chunks contain each term."""
        return np.array([self.frequency(term) for term in wanted.tolist()], dtype=np.float32)

    def idf(self, wanted: Terms) -> Floats:
        """Return the inverse document frequency of terms; of unknown ones the highest."""
        found = self.frequencies(wanted)
        idf: Floats = np.log1p(
            np.maximum(self.counts.chunks - found + 0.5, 0.0) / (found + 0.5)
        ).astype(np.float32)
        return idf

    async def count_documents(self, words: Sequence[str]) -> dict[str, int]:
        """Return how many documents contain each word as it is spelled, at least two exactly.

        Groups of words are asked for first, because most words that are looked up do not exist.
        """
        counts = dict.fromkeys(words, 0)
        every = list(counts)
        groups = [every[at : at + _WORDS_OF_GROUP] for at in range(0, len(every), _WORDS_OF_GROUP)]
        if len(every) > _WORDS_OF_GROUP:
            held = await self.index.query(
                [VectorQuery(VOCABULARY, self._join_words(group), limit=1) for group in groups]
            )
            groups = [group for group, one in zip(groups, held, strict=True) if one.ids]
        return counts | await self._count_each([word for group in groups for word in group])

    async def _count_each(self, words: Sequence[str]) -> dict[str, int]:
        found = await self.index.query(
            [VectorQuery(VOCABULARY, self._join_words([word]), limit=2) for word in words]
        )
        size = self.counts.documents
        return {
            word: len(one.ids) if len(one.ids) < 2 else round(_frequency(one.scores[0], size))
            for word, one in zip(words, found, strict=True)
        }

    def _join_words(self, words: Sequence[str]) -> SparseText:
        """Return the terms of words as they are spelled."""
        terms = np.unique(self.numbers.of_all(make_word_term(word) for word in words))
        return SparseText(terms, np.ones(len(terms), dtype=np.float32))

    async def find_titles(self, texts: Collection[str]) -> frozenset[str]:
        """Return those of some texts, in lower case, that are titles of documents."""
        found = await self.index.find_documents({"title_key": sorted(texts)}, ("title_key",))
        return frozenset(payload["title_key"] for payload in found.values())

    def find_other_versions(self, texts: Iterable[str]) -> frozenset[str]:
        """Return the documents that a search for these texts leaves out; see `PageVersions`."""
        return frozenset(self._versioned[at] for at in self.versions.find_others(texts))

    def find_versions(self, document_id: str) -> list[str]:
        """Return the ids of the other versions of a document that are not newer."""
        positions = (at for at, one in enumerate(self._versioned) if one == document_id)
        return [
            self._versioned[at]
            for position in positions
            for at in self.versions.find_not_newer(position)
        ]

    @cached_property
    def roots(self) -> frozenset[int]:
        """The terms of the common beginning of all crumbs."""
        found = {(crumbs[0], language) for crumbs, language in self.sample.crumbs if crumbs}
        named = (
            self.numbers.of_all(terms(root, language)).tolist()
            for root, language in sorted(found)[:_MOST_ROOTS]
        )
        return frozenset(number for numbered in named for number in numbered)

    def _keep(self, term: int) -> None:
        if len(self.kept) >= MOST_KEPT:
            self.kept.clear()
        self.kept[term] = self._present[term]


class Corpora:
    """The documents of an index, by the groups of the people who may read them.

    Groups that no document names make no difference: without any, there is one corpus.
    """

    def __init__(self, index: Index, *, clock: Callable[[], float] = monotonic) -> None:
        self._index = index
        self._clock = clock
        self._known: frozenset[str] = frozenset()
        self._revision: str | None = None
        self._corpora: OrderedDict[tuple[bool, frozenset[str]], Corpus] = OrderedDict()

    async def read(self, groups: Collection[str]) -> CorpusView:
        """Return the documents that a person of these groups may read now."""
        revision = await self._index.revision()
        if revision != self._revision:
            self._known = await self._index.groups()
            self._revision = revision
        own = (bool(self._known), self._known.intersection(groups))
        corpus = self._corpora.get(own)
        if corpus is None:
            index = self._index.visible_to(own[1], restricts=own[0])
            corpus = self._corpora[own] = Corpus(index, self._clock)
            if len(self._corpora) > _MOST_CORPORA:
                self._corpora.popitem(last=False)
        self._corpora.move_to_end(own)
        return await corpus.view(revision)


class Corpus:
    """The present documents of an index, as far as `index` shows them."""

    def __init__(self, index: ReadableIndex, clock: Callable[[], float]) -> None:
        self._index = index
        self._numbers = TermNumbers()
        self._clock = clock
        self._view: CorpusView | None = None
        self._sampled_at = 0.0
        self._refreshing = asyncio.Lock()

    async def view(self, revision: str) -> CorpusView:
        """Return a revision of the documents."""
        async with self._refreshing:
            if self._view is None or revision != self._view.revision:
                self._view = await self._read(revision)
            return self._view

    async def _read(self, revision: str) -> CorpusView:
        counts = await self._index.counts()
        versioned = await self._index.find_documents(
            {"versioned": "yes"}, ("document", "page", "language", VERSION)
        )
        sample, kept = None, {}
        if self._view is not None and not self._is_stale(self._view.sample, counts):
            sample, kept = self._view.sample, self._view.kept
        if sample is None:
            drawn = await self._index.sample(CHUNKS, DOCUMENTS, counts)
            sample = await asyncio.to_thread(CorpusSample, drawn, counts.chunks)
            self._sampled_at = self._clock()
        return CorpusView(
            self._index, revision, counts, sample, kept, self._numbers, [*versioned.values()]
        )

    def _is_stale(self, sample: CorpusSample, counts: IndexCounts) -> bool:
        change = abs(counts.chunks - sample.size)
        is_old = self._clock() - self._sampled_at > SAMPLE_SECONDS
        return is_old or change > MOST_CHANGE * max(sample.size, 1)


def _ask_for(using: str, term: int) -> VectorQuery:
    return VectorQuery(using, _one_term(term), limit=1, returns_text=True)


def _one_term(term: int) -> SparseText:
    return SparseText(np.array([term], dtype=np.uint32), np.ones(1, dtype=np.float32))


def _read_idf(found: QueryResult, term: int) -> float | None:
    """Return the IDF that the engine adds to a term; None for a term that no text has."""
    return (
        float(found.scores[0] / max(_weight_in(found.texts[0], term), 1e-9)) if found.ids else None
    )


def _weight_in(text: SparseText, term: int) -> float:
    return float(text.weights[text.terms == term].sum())


def _frequency(idf: float | None, size: int) -> float:
    """Return how many of `size` texts contain a term with this IDF, which the engine adds.

    The inverse of ln(1 + (N - n + 1/2) / (n + 1/2)) = ln((N + 1) / (n + 1/2)).
    """
    return 0.0 if idf is None else max((size + 1) / float(np.exp(idf)) - 0.5, 1.0)
