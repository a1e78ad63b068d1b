"""What the ways of the suite have in common, and one search."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from knowledge.embedding import Embedder
from knowledge.index.port import Index
from knowledge.library.library import Library
from knowledge.port import Searcher, SearchRequest
from knowledge.search.ranking import weigh_levels_alone
from knowledge.search.searcher import LevelSearcher

_FURTHER_HITS = 5
"""A page gives up to this number of hits: a search for pages asks for more hits than pages."""


@dataclass(frozen=True, slots=True)
class FoundPages:
    """The documents that a way shows, in their order, at most k, and what it took."""

    document_ids: tuple[str, ...]
    calls: int = 0
    rounds: int = 0


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
        ids = list(dict.fromkeys(hit.document_id for hit in found.hits))[:k]
        return FoundPages(tuple(ids), calls=1, rounds=1)


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
