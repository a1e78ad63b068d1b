"""What the ways of the suite have in common, and one search."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from knowledge.embedding import Embedder
from knowledge.index.port import Index
from knowledge.library.library import Library
from knowledge.port import Searcher, SearchRequest
from knowledge.search.searcher import LevelSearcher
from knowledge.search.weights import weigh_levels_alone

_ROUNDS = 3
_FURTHER_HITS = 5
"""A page gives up to this number of hits: a search for pages asks for more hits than pages."""


@dataclass(frozen=True, slots=True)
class FoundPages:
    """The result of a way: documents in the order in which they were shown, at most k.

    `texts` are those of the shown passages; `confidence` says how likely they answer, 0 to 1;
    `changes` are the documents of a comparison, by the kind of the change; `needed_tools` are tools
    of others that a plan names; `selected` those of a
    collection that meet the criteria, None: no collection was asked about.
    """

    document_ids: tuple[str, ...]
    texts: tuple[str, ...]
    confidence: float
    calls: int = 0
    rounds: int = 0
    unknown_tools: int = 0
    changes: Mapping[str, tuple[str, ...]] | None = None
    needed_tools: tuple[str, ...] = ()
    selected: tuple[str, ...] | None = None


class Way(Protocol):
    """One way of finding what a question needs."""

    async def find(self, text: str, k: int) -> FoundPages:
        """Return at most `k` documents, over all steps."""
        ...


class SearchWay:
    """One search for the whole text."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    async def find(self, text: str, k: int) -> FoundPages:
        request = SearchRequest(question=text, text=text, language="en", limit=k * _FURTHER_HITS)
        found = await self._searcher.search(request)
        best = {hit.document_id: hit for hit in reversed(found.hits)}
        ids = list(dict.fromkeys(hit.document_id for hit in found.hits))[:k]
        texts = tuple(f"{best[one].title}\n{best[one].text}" for one in ids)
        return FoundPages(tuple(ids), texts, found.answerability, calls=1, rounds=1)


@dataclass(frozen=True, slots=True)
class EvaluationParts:
    """The parts of tools over an index that an evaluation has made."""

    searcher: Searcher
    search_level: Callable[[str], Searcher]
    library: Library


def make_parts(index: Index, embedder: Embedder) -> EvaluationParts:
    """Return the parts; a search on one level is made when a tool needs it."""
    known: dict[str, Searcher] = {}

    def search_level(level: str) -> Searcher:
        if level not in known:
            weights = replace(weigh_levels_alone()[level])
            known[level] = LevelSearcher(index, embedder, weights=weights)
        return known[level]

    return EvaluationParts(LevelSearcher(index, embedder), search_level, Library(index))
