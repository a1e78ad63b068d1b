"""Graph search: finds passages that are connected to given passages.

The edges are stored during ingestion, and a walk follows only the edges of its start passages. The
edges are:

- a *link*: a passage mentions the title of a document, or the code at the beginning of the title
  ("see AC-2(10)", "Article 6");
- a *cross reference*: a passage refers to another one in its document ("see Section 4");
- a *shared name*: two passages mention the same rare name, code or quoted phrase;
- the passage *above*: the first passage of the enclosing section.

A candidate is ranked by its search score for the query, by its edges to the start passages, and by
the words of the query that the start passages lack.

A withdrawn page is a special case: a search excludes earlier versions, and the newest version
contains only a notice such as "Withdrawn: incorporated into SC-7(5)", without the words of the
query.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from envelope.run import OUTSIDE, Run
from knowledge.documents.stated_version import find_numbers
from knowledge.index.graph.called_names import split_words
from knowledge.index.terms import terms
from knowledge.library.attached_documents import is_attached_id
from knowledge.library.library import Library
from knowledge.library.passage_graph import (
    ConnectedPassage,
    DocumentNames,
    DocumentRecord,
    PassageGraph,
    find_names,
)
from knowledge.port import Hit, Searcher, SearchRequest
from knowledge.sections import document_of
from tools.passages import LINKED, FoundPassage, cite_hit, cite_place

_CANDIDATES = 60
_MOST_NAMES = 40
"""Maximum number of names of a start passage that are looked up."""
_MOST_LINKS = 40
_MOST_SHARING = 60
_REFERENCE_SIZE = 3_000
"""The number of passages with which the frequency of a name is compared."""
_NOTICE_FACTOR = 3.0
"""The factor for links in a document whose content was moved to another one."""
_FEW_CHUNKS = 3
"""A start document with at most this many chunks is read in full."""
_TEXT_OF_START = 20_000
_NOTICE = re.compile(
    r"(?:withdrawn|repealed|deleted|removed|superseded|deprecated|moved|replaced)\W{1,3}"
    r"(?:and )?(?:incorporated|moved|merged|replaced|see|into|to|by)\b",
    re.IGNORECASE,
)
_NOTICE_CHARACTERS = 400
_QUERY_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class GraphWeights:
    """The weights of a walk, tuned on questions whose answers need several passages.

    `docs/internal/measurements/evaluation.md` describes the data, and the results on other data.

    `search` is the factor of the search score. `named` is added for documents that the query names,
    `linked` for passages that a start passage mentions, `shared` for passages that share a name
    with it (by the rarity of the name), `above` for the passage above a start passage, and
    `missing` for words of the query that all start passages lack. The weight of each start passage
    is `decay` times that of the previous one. Names in more than `most_common` passages are
    ignored.
    """

    search: float = 0.5
    named: float = 6.0
    linked: float = 5.0
    shared: float = 6.0
    above: float = 0.5
    missing: float = 3.0
    decay: float = 0.9
    most_common: int = 20
    most_starts: int = 7


@dataclass(frozen=True, slots=True)
class Walk:
    """A request: the query, the passages to start from (best first), and those to exclude."""

    query: str
    start: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    limit: int = 5
    language: str = "en"
    groups: tuple[str, ...] = ()
    version: str = ""
    run: Run = OUTSIDE


@dataclass(slots=True)
class WalkCandidate:
    """A candidate passage with its features; its words are the words of the title and the text."""

    passage: FoundPassage
    search: float
    words: frozenset[str]
    named: float = 0.0
    linked: float = 0.0
    shared: float = 0.0
    above: float = 0.0
    relation: str = ""


@dataclass(slots=True)
class CandidatePool:
    """The candidates of a walk by document id; candidates in start documents are stored by chunk
    id.
    """

    excluded_documents: frozenset[str]
    excluded_passages: frozenset[str]
    least: float = 0.0
    by_key: dict[str, WalkCandidate] = field(default_factory=dict)

    @classmethod
    def leave_out(cls, chunk_ids: Iterable[str]) -> "CandidatePool":
        """Return a pool that excludes the documents of these passages."""
        passages = frozenset(chunk_ids)
        return cls(frozenset(document_of(passage) for passage in passages), passages)

    def is_open(self, document_id: str) -> bool:
        """Return whether a document is neither excluded nor already in the pool."""
        return document_id not in self.excluded_documents and document_id not in self.by_key

    def add_hit(self, hit: Hit) -> None:
        """Add a hit of the search."""
        if self.is_open(hit.document_id):
            added = FoundPassage(citation=cite_hit(hit), text=hit.text)
            words = list_terms(f"{hit.place.title} {hit.text}", hit.place.language or "")
            self.by_key[hit.document_id] = WalkCandidate(added, hit.score, words)

    def add_passage(self, passage: ConnectedPassage, *, is_of_start: bool = False) -> None:
        """Add a connected passage."""
        listed, chunk = passage.document.listed, passage.chunk
        if is_of_start:
            key, is_new = chunk.chunk_id, chunk.chunk_id not in self.excluded_passages
        else:
            key, is_new = listed.id, self.is_open(listed.id)
        if is_new and key not in self.by_key:
            citation = cite_place(listed, passage.document.crumbs, chunk)
            words = list_terms(f"{listed.title} {chunk.text}", listed.language)
            added = FoundPassage(citation=citation, text=chunk.text)
            self.by_key[key] = WalkCandidate(added, self.least, words)


@dataclass(frozen=True, slots=True)
class _Start:
    """A starting point of a walk: its text, the passages in the text, and its weight."""

    text: str
    passages: tuple[ConnectedPassage, ...]
    weight: float

    @property
    def mentioned(self) -> list[str]:
        names = (name for passage in self.passages for name in find_names(passage))
        return list(dict.fromkeys(names))


class GraphWalker:
    """Walks the passage graph of an assistant."""

    def __init__(
        self, searcher: Searcher, library: Library, weights: GraphWeights | None = None
    ) -> None:
        self._searcher = searcher
        self._library = library
        self._weights = GraphWeights() if weights is None else weights

    async def walk(self, walk: Walk) -> list[FoundPassage]:
        """Return the best passages, at most `walk.limit`, best first."""
        request = SearchRequest(
            question=walk.query,
            text=walk.query,
            language=walk.language or None,
            limit=_CANDIDATES,
            groups=walk.groups,
            run=walk.run,
        )
        findings = await self._searcher.search(request)
        graph = await self._library.open_graph(walk.groups)
        pool = CandidatePool.leave_out((*walk.start, *walk.exclude))
        for hit in findings.hits:
            pool.add_hit(hit)
        pool.least = min((hit.score for hit in findings.hits), default=0.0)
        if not walk.start:
            await self._add_withdrawn(graph, pool, walk)
        starts = await self._read_starts(graph, walk)
        names = await _find_called(graph, starts, walk)
        await _add_named(graph, pool, names, walk)
        await _add_linked(graph, pool, names, starts, walk)
        await self._add_sharing(graph, pool, starts, walk)
        await _add_neighbours(graph, pool, starts)
        return self._rank(pool, walk, " ".join(start.text for start in starts))

    async def _add_withdrawn(self, graph: PassageGraph, pool: CandidatePool, walk: Walk) -> None:
        """Add the notice of a withdrawn page, if its previous version matches the query."""
        notice = await find_withdrawn(self._searcher, self._library, graph, walk)
        if notice is None:
            return
        pool.add_passage(notice)
        candidate = pool.by_key.get(notice.document.listed.id)
        if candidate is not None:
            candidate.linked = _NOTICE_FACTOR
            candidate.relation = "the version before it fits the query"

    async def _read_starts(self, graph: PassageGraph, walk: Walk) -> list[_Start]:
        """Return the starting points of the walk; a short document is included in full."""
        wanted = walk.start[: self._weights.most_starts]
        indexed = [chunk_id for chunk_id in wanted if not is_attached_id(document_of(chunk_id))]
        documents = await graph.read_documents(map(document_of, indexed))
        chunks = {
            chunk_id: _list_chunks(chunk_id, documents[document_of(chunk_id)])
            for chunk_id in indexed
            if document_of(chunk_id) in documents
        }
        passages = await graph.read_passages(
            [chunk_id for ids in chunks.values() for chunk_id in ids], documents
        )
        starts = await self._read_attached(wanted, walk)
        for chunk_id, ids in chunks.items():
            own = tuple(passages[identifier] for identifier in ids if identifier in passages)
            if own:
                texts = (own[0].document.listed.title, *(passage.chunk.text for passage in own))
                starts[chunk_id] = _Start(". ".join(texts), own, 1.0)
        decay = self._weights.decay
        return [
            replace(starts[chunk_id], weight=decay**number)
            for number, chunk_id in enumerate(name for name in wanted if name in starts)
        ]

    async def _read_attached(self, wanted: Sequence[str], walk: Walk) -> dict[str, _Start]:
        """Return the starting points in attached documents, which have no stored edges."""
        ids = [chunk_id for chunk_id in wanted if is_attached_id(document_of(chunk_id))]
        attached = await self._library.read(
            [document_of(identifier) for identifier in ids], walk.groups, walk.run
        )
        starts: dict[str, _Start] = {}
        for document in attached:
            record = DocumentRecord(document.listed, document.crumbs, "")
            for chunk in document.chunks:
                text = f"{document.listed.title}. {chunk.chunk.text}"
                starts[chunk.chunk.chunk_id] = _Start(
                    text, (ConnectedPassage(record, chunk.chunk),), 1.0
                )
        return {identifier: starts[identifier] for identifier in ids if identifier in starts}

    async def _add_sharing(
        self, graph: PassageGraph, pool: CandidatePool, starts: Sequence[_Start], walk: Walk
    ) -> None:
        asked = set(split_words(walk.query))
        by_start = [
            [name for name in start.mentioned if not set(name.split()) <= asked][:_MOST_NAMES]
            for start in starts
        ]
        every = [name for names in by_start for name in names]
        shared = await graph.find_sharing(every, most_common=self._weights.most_common)
        owners = [document_of(identifier) for ids in shared.values() for identifier in ids]
        documents = await graph.read_documents(owners)
        titles = None if walk.version else await graph.find_versions(documents.values())
        for start, names in zip(starts, by_start, strict=True):
            values = _rate_sharing(names, shared, titles)
            best = sorted(values, key=lambda owner: -values[owner].value)[:_MOST_SHARING]
            wanted = [values[owner].chunk_id for owner in best if pool.is_open(owner)]
            for passage in (await graph.read_passages(wanted, documents)).values():
                pool.add_passage(passage)
            for owner in best:
                candidate, sharing = pool.by_key.get(owner), values[owner]
                if candidate is not None and candidate.shared < sharing.value * start.weight:
                    candidate.shared = sharing.value * start.weight
                    candidate.relation = candidate.relation or f"{sharing.name!r} is in both"

    def _rank(self, pool: CandidatePool, walk: Walk, started: str) -> list[FoundPassage]:
        candidates = list(pool.by_key.values())
        asked = list_terms(walk.query, walk.language)
        rarity = _measure_rarity(asked, candidates)
        missing = asked - list_terms(started, walk.language)
        weights, total = self._weights, max(sum(rarity.values()), 1e-9)

        def rate(candidate: WalkCandidate) -> float:
            lacking = sum([rarity[term] for term in sorted(missing & candidate.words)]) / total
            return (
                weights.search * candidate.search
                + weights.named * candidate.named
                + weights.linked * candidate.linked
                + weights.shared * candidate.shared
                + weights.above * candidate.above
                + weights.missing * lacking
            )

        rated = sorted(
            ((rate(candidate), candidate) for candidate in candidates), key=lambda pair: -pair[0]
        )
        return [_rescore(candidate, score) for score, candidate in rated[: walk.limit]]


@dataclass(frozen=True, slots=True)
class _Sharing:
    """A shared name: its rarity (0 to 1), the name, and the chunk that contains it."""

    value: float
    name: str
    chunk_id: str


def list_terms(text: str, language: str) -> frozenset[str]:
    """Return the distinct terms of a text."""
    return frozenset(terms(text, language or "en"))


def is_notice(text: str) -> bool:
    """Return whether a text starts with a notice that its content was moved to another document."""
    return _NOTICE.search(text[:_NOTICE_CHARACTERS]) is not None


async def find_withdrawn(
    searcher: Searcher,
    library: Library,
    graph: PassageGraph,
    walk: Walk,
) -> ConnectedPassage | None:
    """Return the withdrawal notice of the page whose previous version matches the query best.

    Returns None if there are fewer than two versions, if the query names a version, or if the page
    was not withdrawn.
    """
    versions = sorted(await library.list_versions(walk.groups), key=find_numbers)
    if len(versions) < 2 or (await library.find_named(walk.query, walk.groups)).versions:
        return None
    before, newest = versions[-2:]
    number = ".".join(map(str, find_numbers(before)))
    text = f"{walk.query[:_QUERY_CHARACTERS]} version {number}"
    request = SearchRequest(
        question=text,
        text=text,
        language=walk.language or None,
        limit=1,
        groups=walk.groups,
        run=walk.run,
    )
    findings = await searcher.search(request)
    ids = [hit.document_id for hit in findings.hits[:1] if hit.document_id.count(before) == 1]
    documents = await graph.read_documents(
        [identifier.replace(before, newest) for identifier in ids]
    )
    chunks = [f"{name}#0" for name in documents]
    passages = await graph.read_passages(chunks, documents)
    return next((passage for passage in passages.values() if is_notice(passage.chunk.text)), None)


def _list_chunks(chunk_id: str, document: DocumentRecord) -> list[str]:
    name, count = document.listed.id, document.listed.chunks
    return [f"{name}#{at}" for at in range(count)] if count <= _FEW_CHUNKS else [chunk_id]


async def _find_called(graph: PassageGraph, starts: Sequence[_Start], walk: Walk) -> DocumentNames:
    """Return the names of documents that are mentioned in the query and the starting points."""
    links = [name for start in starts for passage in start.passages for name in passage.links]
    titles = [passage.document.listed.title for start in starts for passage in start.passages[:1]]
    unlinked = [
        start.text[:_TEXT_OF_START]
        for start in starts
        if any(not passage.document.version for passage in start.passages)
    ]
    return await graph.find_called(links, (walk.query, *titles, *unlinked))


async def _add_named(
    graph: PassageGraph, pool: CandidatePool, names: DocumentNames, walk: Walk
) -> None:
    named = names.find_in(walk.query, walk.version)
    await _add_first(
        graph, pool, [identifier for name in named for identifier in name.document_ids]
    )
    for name in named:
        for identifier in name.document_ids:
            if identifier in pool.by_key:
                pool.by_key[identifier].named = 1.0
                pool.by_key[identifier].relation = f"the query names {name.name!r}"


async def _add_linked(
    graph: PassageGraph,
    pool: CandidatePool,
    names: DocumentNames,
    starts: Sequence[_Start],
    walk: Walk,
) -> None:
    for start in starts:
        mentioned = names.find_in(start.text, walk.version)
        value = start.weight * (_NOTICE_FACTOR if is_notice(start.text) else 1.0)
        await _add_first(
            graph, pool, [identifier for name in mentioned for identifier in name.document_ids]
        )
        for name in mentioned:
            for identifier in name.document_ids:
                candidate = pool.by_key.get(identifier)
                if candidate is not None and candidate.linked < value:
                    candidate.linked = value
                    candidate.relation = f"{name.name!r} {LINKED}"


async def _add_first(graph: PassageGraph, pool: CandidatePool, document_ids: list[str]) -> None:
    """Add the first passage of each document."""
    wanted = [identifier for identifier in document_ids[:_MOST_LINKS] if pool.is_open(identifier)]
    documents = await graph.read_documents(wanted)
    first = [f"{document}#0" for document in documents]
    for passage in (await graph.read_passages(first, documents)).values():
        pool.add_passage(passage)


async def _add_neighbours(
    graph: PassageGraph, pool: CandidatePool, starts: Sequence[_Start]
) -> None:
    """Add the passages that a start refers to in its document, and the passage above it."""
    for start in starts:
        for passage in start.passages:
            owner = {passage.document.listed.id: passage.document}
            wanted = (*passage.references, *((passage.parent,) if passage.parent else ()))
            for chunk_id, neighbour in (await graph.read_passages(wanted, owner)).items():
                pool.add_passage(neighbour, is_of_start=True)
                candidate = pool.by_key.get(chunk_id)
                if candidate is None:
                    continue
                if chunk_id in passage.references:
                    heading = (neighbour.chunk.heading_path or (neighbour.document.listed.title,))[
                        -1
                    ]
                    candidate.linked = max(candidate.linked, start.weight)
                    candidate.relation = f"{heading!r} {LINKED}"
                else:
                    candidate.above = max(candidate.above, start.weight)
                    candidate.relation = candidate.relation or "it is above"


def _rate_sharing(
    names: Iterable[str], shared: Mapping[str, Sequence[str]], titles: DocumentNames | None
) -> dict[str, _Sharing]:
    """Return the rarest shared name of each document that shares one."""
    values: dict[str, _Sharing] = {}
    for name in names:
        chunks = shared.get(name, ())
        value = math.log(_REFERENCE_SIZE / max(1, len(chunks))) / math.log(_REFERENCE_SIZE)
        for chunk_id in chunks:
            owner = document_of(chunk_id)
            is_left_out = titles is not None and titles.is_superseded(owner)
            known = values.get(owner)
            if (known is None or value > known.value) and not is_left_out:
                values[owner] = _Sharing(value, name, chunk_id)
    return values


def _measure_rarity(
    asked: frozenset[str], candidates: Sequence[WalkCandidate]
) -> Mapping[str, float]:
    """Return the weight of each term of the query; rarer terms have higher weights."""
    count = len(candidates)
    return {
        term: math.log(
            1 + (count + 1) / (1 + sum(term in candidate.words for candidate in candidates))
        )
        for term in sorted(asked)
    }


def _rescore(candidate: WalkCandidate, score: float) -> FoundPassage:
    citation = candidate.passage.citation.model_copy(update={"score": round(score, 6)})
    return candidate.passage.model_copy(
        update={"citation": citation, "relation": candidate.relation}
    )
