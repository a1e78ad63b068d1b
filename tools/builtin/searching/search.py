"""The tool `search`."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from pydantic import Field

from knowledge.port import Findings, Hit, Searcher
from tools.calls import ToolCaller
from tools.passage_search.fused_wordings import fuse_wordings
from tools.passage_search.passage_tool import QueryTool
from tools.passage_search.passages import (
    FoundPassage,
    PassageList,
    QueryInputs,
    cite_hit,
    list_passages,
    make_request,
)
from tools.tool import ToolParts

_OWN_WEIGHT = 10.0
_RANK_OFFSET = 20
"""The constant of reciprocal rank fusion; both were fitted on the tasks of a help desk."""
_CANDIDATES = 60
_ASPECT_CANDIDATES = 20


class Inputs(QueryInputs):
    """A search in words, and what else belongs to the same matter."""

    aspects: tuple[str, ...] = Field(
        default=(), max_length=100, description="parts of a long request, to be searched as well"
    )
    wordings: tuple[str, ...] = Field(
        default=(), max_length=5, description="the same request in other words"
    )


class Search(QueryTool[Inputs]):
    """Searches as the plain way does; aspects and wordings are fused by their ranks.

    Aspects are parts of a request, and find a passage of each document; wordings say the same.
    """

    name = "search"
    aliases = ("general_search", "search_documents")
    description = (
        "Search the documents for passages that answer a question. Ask for one fact at a time; "
        "give the parts of a long request as aspects."
    )
    inputs = Inputs

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(parts.searcher)

    async def run(self, inputs: Inputs, caller: ToolCaller) -> PassageList:
        if inputs.wordings and not inputs.aspects:
            return await self._search_wordings(inputs, caller)
        if not inputs.aspects:
            return list_passages(await self._searcher.search(make_request(inputs, caller)))
        whole = await self._search(inputs, inputs.query, _CANDIDATES, caller)
        parts = []
        for aspect in inputs.aspects:
            parts.append(await self._search(inputs, aspect[:2_000], _ASPECT_CANDIDATES, caller))
            await asyncio.sleep(0)  # a long list of aspects lets other calls run
        return _fuse(whole, parts, inputs.limit)

    async def _search_wordings(self, inputs: Inputs, caller: ToolCaller) -> PassageList:
        wanted = min(2 * inputs.limit, _CANDIDATES)
        own = await self._search(inputs, inputs.query, wanted, caller)
        others = [
            await self._search(inputs, one[:2_000], wanted, caller) for one in inputs.wordings
        ]
        return list_passages(replace(own, hits=fuse_wordings(own, others, inputs.limit)))

    async def _search(
        self, inputs: Inputs, query: str, candidates: int, caller: ToolCaller
    ) -> Findings:
        one = inputs.model_copy(update={"query": query, "limit": candidates})
        return await self._searcher.search(make_request(one, caller))


def _fuse(whole: Findings, parts: Sequence[Findings], limit: int) -> PassageList:
    """Return the best passage of each document, by weighted reciprocal ranks."""
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
