"""The tool `graph_search`."""

from typing import Self

from pydantic import Field

from tools.calls import ToolCaller
from tools.passage_search.graph_walk import GraphWalker, Walk
from tools.passage_search.passage_tool import QueryTool
from tools.passage_search.passages import (
    PassageList,
    QueryInputs,
)
from tools.tool import ToolParts


class Inputs(QueryInputs):
    """A query, and the passages from which to go on."""

    start: tuple[str, ...] = Field(
        default=(), max_length=20, description="ids of passages whose links and names to follow"
    )
    version: str = Field(default="", max_length=50, description="follow links to this version")


class GraphSearch(QueryTool[Inputs]):
    """Follows links, cross references and shared names from passages to further ones."""

    name = "graph_search"
    aliases = ("search_regulatory_graph", "search_graph")
    description = (
        "From passages that were found, follow links, cross references and shared names to the "
        "passages that complete the answer. Give the whole question as the query."
    )
    inputs = Inputs

    def __init__(self, walker: GraphWalker) -> None:
        self._walker = walker

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(GraphWalker(parts.searcher, parts.library))

    async def run(self, inputs: Inputs, caller: ToolCaller) -> PassageList:
        walk = Walk(
            query=inputs.query,
            start=inputs.start,
            exclude=inputs.exclude,
            limit=inputs.limit,
            language=caller.language,
            groups=caller.groups,
            version=inputs.version,
        )
        found = await self._walker.walk(walk)
        return PassageList(passages=tuple(found), note="" if found else "nothing leads further")
