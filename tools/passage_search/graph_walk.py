"""Walks from passages to passages that they lead to: the search behind `graph_search`.

Ingestion writes what the edges join: the titles of documents, and the names that their passages
mention. Both are removed and moved with their documents. The edges are:

- a *link*: a passage mentions the title of a document, or the code with which the title begins
  ("see AC-2(10)", "Article 6");
- a *shared name*: two passages mention the same rare name, code or quoted phrase. Where the index
  is too large for a list of names, names of several words are looked up in the engine.

A candidate is ranked by the usual search for the query, by its edges to the passages where the walk
starts, and by the words of the query that those passages lack.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from knowledge.index.points.mentioned_names import find_mentioned_names
from knowledge.index.terms import terms
from knowledge.library.document_names import DocumentNames, split_words
from knowledge.library.library import Library, NamesOfDocuments, WholeDocument
from knowledge.port import Hit, Searcher, SearchRequest
from knowledge.sections import document_of
from tools.passage_search.passages import LINKED, FoundPassage, cite_chunk, cite_hit

_CANDIDATES = 60
_MOST_NAMES = 40
"""The rare names of one passage that are looked up."""
_MOST_LINKS = 40
_MOST_SHARING = 60
_REFERENCE_SIZE = 3_000
"""The number of passages by which the rarity of a name is measured."""
_NOTICE = re.compile(
    r"(?:withdrawn|repealed|deleted|removed|superseded|deprecated|moved|replaced)\W{1,3}"
    r"(?:and )?(?:incorporated|moved|merged|replaced|see|into|to|by)\b",
    re.IGNORECASE,
)
"""How a document says that its content is in another one now."""
_NOTICE_CHARACTERS = 400
_NOTICE_FACTOR = 3.0
_FEW_CHUNKS = 3
"""A document of so few chunks is read whole where the walk starts."""


@dataclass(frozen=True, slots=True)
class GraphWeights:
    """The weights of a walk; they were fitted on questions of several passages.

    `docs/measurements/evaluation.md` names the data and the figures on other data. `search` is the
    factor of the search's score; `named` is added to documents that the query names, `linked` to
    those that a start mentions, `shared` to those that share a name with it, by the rarity of the
    name; `missing` to those that have the words of the query that every start lacks. A start
    counts `decay` times as much as the one before it. A name in more than `most_common` passages
    is no edge.
    """

    search: float = 0.5
    named: float = 6.0
    linked: float = 5.0
    shared: float = 6.0
    missing: float = 3.0
    decay: float = 0.9
    most_common: int = 20
    most_starts: int = 7


@dataclass(slots=True)
class _Candidate:
    """A document with its best passage and the values of its edges."""

    passage: FoundPassage
    search: float
    words: frozenset[str]
    named: float = 0.0
    linked: float = 0.0
    shared: float = 0.0
    relation: str = ""


@dataclass(frozen=True, slots=True)
class Walk:
    """A request: the query, the passages to start from (best first), and those to leave out."""

    query: str
    start: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    limit: int = 5
    language: str = "en"
    groups: tuple[str, ...] = ()
    version: str = ""


@dataclass(slots=True)
class _CandidatePool:
    """The candidates of one walk by document."""

    excluded: frozenset[str]
    least: float = 0.0
    by_document: dict[str, _Candidate] = field(default_factory=dict)

    def add_hit(self, hit: Hit, score: float) -> _Candidate | None:
        if hit.document_id in self.excluded:
            return None
        known = self.by_document.get(hit.document_id)
        if known is None:
            found = FoundPassage(citation=cite_hit(hit), text=hit.text)
            words = _list_terms(f"{hit.title} {hit.text}", hit.language)
            known = self.by_document[hit.document_id] = _Candidate(found, score, words)
        return known

    def add_document(self, document: WholeDocument) -> _Candidate | None:
        name = document.listed.id
        if name in self.excluded:
            return None
        if name not in self.by_document:
            text = document.chunks[0].chunk.text
            found = FoundPassage(citation=cite_chunk(document, 0), text=text)
            words = _list_terms(f"{document.listed.title} {text}", document.listed.language)
            self.by_document[name] = _Candidate(found, self.least, words)
        return self.by_document[name]


class GraphWalker:
    """Walks in the documents of one assistant."""

    def __init__(
        self, searcher: Searcher, library: Library, weights: GraphWeights | None = None
    ) -> None:
        self._searcher = searcher
        self._library = library
        self._weights = GraphWeights() if weights is None else weights

    async def walk(self, walk: Walk) -> list[FoundPassage]:
        """Return passages, the best one of each document, best first."""
        request = SearchRequest(
            question=walk.query,
            text=walk.query,
            language=walk.language or None,
            limit=_CANDIDATES,
            groups=walk.groups,
        )
        findings = await self._searcher.search(request)
        names = await self._library.names(walk.groups)
        left_out = (*walk.start, *walk.exclude)
        pool = _CandidatePool(frozenset(document_of(chunk_id) for chunk_id in left_out))
        for hit in findings.hits:
            pool.add_hit(hit, hit.score)
        pool.least = min((hit.score for hit in findings.hits), default=0.0)
        await self._add_named(pool, names.titles, walk)
        starts = await self._read_starts(walk)
        for number, text in enumerate(starts):
            decay = self._weights.decay**number
            await self._add_linked(pool, names.titles, text, decay, walk)
            await self._add_sharing(pool, names, text, decay, walk)
        return self._rank(pool, walk, " ".join(starts))

    async def _add_named(self, pool: _CandidatePool, names: DocumentNames, walk: Walk) -> None:
        found = names.find_in(walk.query, walk.version)
        ids = [one for name in found for one in name.document_ids][:_MOST_LINKS]
        for document in await self._read_new(pool, ids, walk):
            pool.add_document(document)
        for name in found:
            for one in name.document_ids:
                if one in pool.by_document:
                    pool.by_document[one].named = 1.0
                    pool.by_document[one].relation = f"the query names {name.name!r}"

    async def _add_linked(
        self, pool: _CandidatePool, names: DocumentNames, text: str, decay: float, walk: Walk
    ) -> None:
        found = names.find_in(text, walk.version)
        value = decay * (_NOTICE_FACTOR if _NOTICE.search(text[:_NOTICE_CHARACTERS]) else 1.0)
        ids = [one for name in found for one in name.document_ids][:_MOST_LINKS]
        for document in await self._read_new(pool, ids, walk):
            pool.add_document(document)
        for name in found:
            for one in name.document_ids:
                candidate = pool.by_document.get(one)
                if candidate is not None and candidate.linked < value:
                    candidate.linked = value
                    candidate.relation = f"{name.name!r} {LINKED}"

    async def _add_sharing(
        self, pool: _CandidatePool, names: NamesOfDocuments, text: str, decay: float, walk: Walk
    ) -> None:
        values = await self._rate_sharing(names, text, walk)
        best = sorted(values, key=lambda owner: -values[owner][0])[:_MOST_SHARING]
        for document in await self._read_new(pool, best, walk):
            pool.add_document(document)
        for owner in best:
            candidate = pool.by_document.get(owner)
            value, name = values[owner][0] * decay, values[owner][1]
            if candidate is not None and candidate.shared < value:
                candidate.shared = value
                candidate.relation = candidate.relation or f"{name!r} is in both"

    async def _rate_sharing(
        self, names: NamesOfDocuments, text: str, walk: Walk
    ) -> dict[str, tuple[float, str]]:
        """Return the documents that share a rare name with a text: how rare, and the name."""
        asked = set(split_words(walk.query))
        mentioned = [name for name in find_mentioned_names(text) if not set(name.split()) <= asked]
        values: dict[str, tuple[float, str]] = {}
        for name in mentioned[:_MOST_NAMES]:
            chunks = await self._find_sharing(names, name, walk)
            value = math.log(_REFERENCE_SIZE / max(1, len(chunks))) / math.log(_REFERENCE_SIZE)
            for owner in map(document_of, chunks):
                is_left_out = not walk.version and names.titles.is_superseded(owner)
                if value > values.get(owner, (0.0, ""))[0] and not is_left_out:
                    values[owner] = value, name
        return values

    async def _find_sharing(
        self, names: NamesOfDocuments, name: str, walk: Walk
    ) -> tuple[str, ...]:
        """Return the ids of the passages with a rare name."""
        if names.shared is not None:
            return names.shared.find(name)
        if len(name.split()) < 2:
            return ()
        request = SearchRequest(
            question=name, limit=self._weights.most_common + 1, groups=walk.groups, by_words=True
        )
        findings = await self._searcher.search(request)
        found = [hit for hit in findings.hits if _has_phrase(f"{hit.title} {hit.text}", name)]
        is_rare = len(found) <= self._weights.most_common
        return tuple(hit.chunk_id for hit in found) if is_rare else ()

    async def _read_starts(self, walk: Walk) -> list[str]:
        """Return the texts where the walk starts; of a short document all of its chunks."""
        wanted = walk.start[: self._weights.most_starts]
        owners = [document_of(chunk_id) for chunk_id in wanted]
        known = {one.listed.id: one for one in await self._library.read(owners, walk.groups)}
        texts = []
        for chunk_id, owner in zip(wanted, owners, strict=True):
            document = known.get(owner)
            if document is not None:
                chunks = [one.chunk for one in document.chunks]
                if len(chunks) > _FEW_CHUNKS:
                    chunks = [chunk for chunk in chunks if chunk.chunk_id == chunk_id]
                texts.append(". ".join((document.listed.title, *(one.text for one in chunks))))
        return texts

    async def _read_new(
        self, pool: _CandidatePool, ids: Iterable[str], walk: Walk
    ) -> Sequence[WholeDocument]:
        known = pool.by_document.keys() | pool.excluded
        return await self._library.read([one for one in ids if one not in known], walk.groups)

    def _rank(self, pool: _CandidatePool, walk: Walk, started: str) -> list[FoundPassage]:
        candidates = list(pool.by_document.values())
        asked = _list_terms(walk.query, walk.language)
        rarity = _measure_rarity(asked, candidates)
        missing = asked - _list_terms(started, walk.language)
        weights, total = self._weights, max(sum(rarity.values()), 1e-9)

        def rate(one: _Candidate) -> float:
            lacking = sum([rarity[term] for term in sorted(missing & one.words)]) / total
            return (
                weights.search * one.search
                + weights.named * one.named
                + weights.linked * one.linked
                + weights.shared * one.shared
                + weights.missing * lacking
            )

        rated = sorted(((rate(one), one) for one in candidates), key=lambda pair: -pair[0])
        return [_rescore(one, score) for score, one in rated[: walk.limit]]


def _measure_rarity(asked: frozenset[str], candidates: Sequence[_Candidate]) -> Mapping[str, float]:
    """Return the weight of each term of the query: high where few candidates have it."""
    count = len(candidates)
    return {
        term: math.log(1 + (count + 1) / (1 + sum(term in one.words for one in candidates)))
        for term in sorted(asked)
    }


def _rescore(one: _Candidate, score: float) -> FoundPassage:
    citation = one.passage.citation.model_copy(update={"score": round(score, 6)})
    return one.passage.model_copy(update={"citation": citation, "relation": one.relation})


def _list_terms(text: str, language: str) -> frozenset[str]:
    return frozenset(terms(text, language or "en"))


def _has_phrase(text: str, name: str) -> bool:
    return f" {' '.join(split_words(name))} " in f" {' '.join(split_words(text))} "
