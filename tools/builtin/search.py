"""The tool `search`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType
from typing import Self

from pydantic import Field, JsonValue

from knowledge.port import Findings, Hit, Searcher
from knowledge.search.ranking import HIERARCHICAL, SEMANTIC
from tools.calls import ToolCaller
from tools.graph_walk import GraphWalker, Walk
from tools.passages import (
    FoundPassage,
    PassageList,
    QueryInputs,
    ShowsPassages,
    cite_hit,
    list_passages,
    make_request,
)
from tools.tool import Tool, ToolParts

_OWN_WEIGHT = 10.0
_RANK_OFFSET = 20
"""The constant for reciprocal rank fusion. It was tuned, like `_OWN_WEIGHT`, on help desk tasks."""
_CANDIDATES = 60
_ASPECT_CANDIDATES = 20


class SearchMethod(StrEnum):
    """How passages are searched for."""

    ALL = "all"
    MEANING = "meaning"
    WORDS = "words"
    HEADINGS = "headings"
    GRAPH = "graph"


_METHODS = {
    SearchMethod.ALL: "meaning, words, headings and summaries together, the usual search",
    SearchMethod.MEANING: "passages that use other words",
    SearchMethod.WORDS: "names, codes, numbers, quoted phrases",
    SearchMethod.HEADINGS: "the section whose name matches the query",
    SearchMethod.GRAPH: "links, cross references and shared names that lead on from passages",
}
_FIRST_WEIGHT, _OTHER_WEIGHT = 2.0, 1.0
"""Other wordings have half the weight of the query, because a model invented them."""
_WORDING_OFFSET = 60
"""The usual constant for reciprocal rank fusion (Cormack et al. 2009)."""


class Inputs(QueryInputs):
    """A search query with its method, aspects, and wordings."""

    method: SearchMethod = Field(
        default=SearchMethod.ALL,
        description="; ".join(f"{method}: {finds}" for method, finds in _METHODS.items()),
    )
    aspects: tuple[str, ...] = Field(
        default=(), max_length=100, description="parts of a long request, to be searched as well"
    )
    wordings: tuple[str, ...] = Field(
        default=(), max_length=5, description="the same request in other words"
    )
    start: tuple[str, ...] = Field(
        default=(), max_length=20, description="graph: ids of passages from which to continue"
    )
    version: str = Field(
        default="",
        max_length=50,
        description="version of the documents, instead of the newest version",
    )


class Search(ShowsPassages, Tool[Inputs, PassageList]):
    """Searches with a given method; results for aspects and wordings are merged by rank fusion.

    Aspects are parts of a request. If there are any, the result has one passage per document.
    Wordings are paraphrases of the query.
    """

    name = "search"
    aliases = ("general_search", "search_documents")
    presets: Mapping[str, Mapping[str, JsonValue]] = MappingProxyType(
        {
            name: MappingProxyType({"method": method.value})
            for method, names in {
                SearchMethod.ALL: ("hybrid_search", "search_hybrid", "hybrid", "verify_compliance"),
                SearchMethod.MEANING: ("similarity_search", "semantic_search", "vector_search"),
                SearchMethod.WORDS: ("bm25_search", "keyword_search", "search_keywords"),
                SearchMethod.HEADINGS: ("hierarchical_search", "heading_search"),
                SearchMethod.GRAPH: ("graph_search", "search_regulatory_graph", "search_graph"),
            }.items()
            for name in names
        }
    )
    description = (
        "Search the documents for passages that answer a question. Ask for one fact at a time; "
        "give the parts of a long request as aspects."
    )
    inputs = Inputs

    def __init__(
        self, searcher: Searcher, search_level: Callable[[str], Searcher], walker: GraphWalker
    ) -> None:
        self._searcher = searcher
        self._search_level = search_level
        self._walker = walker

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        walker = GraphWalker(parts.searcher, parts.library)
        return cls(parts.searcher, parts.search_level, walker)

    def describe_preset(self, fixed: Mapping[str, JsonValue]) -> str:
        return f"{self.description} It finds {_METHODS[SearchMethod(str(fixed['method']))]}."

    async def run(self, inputs: Inputs, caller: ToolCaller) -> PassageList:
        if inputs.method is SearchMethod.GRAPH:
            return await self._walk(inputs, caller)
        if inputs.wordings and not inputs.aspects:
            return await self._search_wordings(inputs, caller)
        if not inputs.aspects:
            return list_passages(await self._search(inputs, inputs.query, inputs.limit, caller))
        whole = await self._search(inputs, inputs.query, _CANDIDATES, caller)
        parts = []
        for aspect in inputs.aspects:
            parts.append(await self._search(inputs, aspect[:2_000], _ASPECT_CANDIDATES, caller))
            await asyncio.sleep(0)  # yield to other tasks during a long list of aspects
        return _fuse(whole, parts, inputs.limit)

    async def _walk(self, inputs: Inputs, caller: ToolCaller) -> PassageList:
        walk = Walk(
            query=inputs.query,
            start=inputs.start,
            exclude=inputs.exclude,
            limit=inputs.limit,
            language=caller.language,
            groups=caller.groups,
            version=inputs.version,
            run=caller.run,
        )
        passages = await self._walker.walk(walk)
        return PassageList(
            passages=tuple(passages), note="" if passages else "nothing leads further"
        )

    async def _search_wordings(self, inputs: Inputs, caller: ToolCaller) -> PassageList:
        wanted = min(2 * inputs.limit, _CANDIDATES)
        own = await self._search(inputs, inputs.query, wanted, caller)
        others = [
            await self._search(inputs, wording[:2_000], wanted, caller)
            for wording in inputs.wordings
        ]
        return list_passages(replace(own, hits=fuse_wordings(own, others, inputs.limit)))

    async def _search(
        self, inputs: Inputs, query: str, candidates: int, caller: ToolCaller
    ) -> Findings:
        if inputs.version and inputs.version not in query:
            query = f"{query} version {inputs.version}"
        candidate_inputs = inputs.model_copy(update={"query": query, "limit": candidates})
        by_words = inputs.method is SearchMethod.WORDS
        request = make_request(candidate_inputs, caller, by_words=by_words)
        return await self._choose(inputs.method).search(request)

    def _choose(self, method: SearchMethod) -> Searcher:
        if method is SearchMethod.MEANING:
            return self._search_level(SEMANTIC)
        return (
            self._search_level(HIERARCHICAL) if method is SearchMethod.HEADINGS else self._searcher
        )


def fuse_wordings(own: Findings, others: Sequence[Findings], limit: int) -> tuple[Hit, ...]:
    """Return the best passages of all wordings by weighted reciprocal rank fusion."""
    scores: dict[str, float] = {}
    hits: dict[str, Hit] = {}
    for weight, findings in ((_FIRST_WEIGHT, own), *((_OTHER_WEIGHT, other) for other in others)):
        for rank, hit in enumerate(findings.hits):
            scores[hit.chunk_id] = scores.get(hit.chunk_id, 0.0) + weight / (_WORDING_OFFSET + rank)
            hits.setdefault(hit.chunk_id, hit)
    best = sorted(scores, key=lambda name: -scores[name])[:limit]
    return tuple(hits[name] for name in best)


def _fuse(whole: Findings, parts: Sequence[Findings], limit: int) -> PassageList:
    """Return the best passage of each document by weighted reciprocal rank fusion."""
    scores: dict[str, float] = {}
    hits: dict[str, Hit] = {}
    for weight, findings in ((_OWN_WEIGHT, whole), *((1.0, part) for part in parts)):
        own = {hit.document_id: hit for hit in reversed(findings.hits)}
        ranked = dict.fromkeys(hit.document_id for hit in findings.hits)
        for rank, name in enumerate(ranked):
            scores[name] = scores.get(name, 0.0) + weight / (_RANK_OFFSET + rank)
            hits.setdefault(name, own[name])
    best = sorted(scores, key=lambda name: -scores[name])[:limit]
    passages = [FoundPassage(citation=cite_hit(hits[name]), text=hits[name].text) for name in best]
    return PassageList(
        passages=tuple(passages),
        answerability=round(whole.answerability, 4),
        note="" if passages else "nothing was found",
    )
