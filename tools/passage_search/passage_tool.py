"""The bases of the tools that return passages."""

from collections.abc import Iterable
from typing import TypeVar

from knowledge.port import Searcher
from tools.calls import CitedPassage, QuotedPassage, ToolCaller
from tools.passage_search.passages import (
    PassageList,
    QueryInputs,
    cite_passages,
    list_passages,
    make_request,
    quote_passages,
    render_passages,
)
from tools.tool import Tool

Q = TypeVar("Q", bound=QueryInputs)


class ShowsPassages:
    """How a tool whose output is a list of passages renders, cites and quotes it."""

    output = PassageList

    def render(self, output: PassageList) -> str:
        return render_passages(output.passages, output.note)

    def cite(self, output: PassageList) -> Iterable[CitedPassage]:
        return cite_passages(output.passages)

    def quote(self, output: PassageList) -> Iterable[QuotedPassage]:
        return quote_passages(output.passages)


class QueryTool(ShowsPassages, Tool[Q, PassageList]):
    """Returns passages for a query; subclasses find them."""


class PassageTool(QueryTool[QueryInputs]):
    """Searches with one searcher; subclasses choose it."""

    inputs = QueryInputs
    by_words = False

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    async def run(self, inputs: QueryInputs, caller: ToolCaller) -> PassageList:
        request = make_request(inputs, caller, by_words=self.by_words)
        return list_passages(await self._searcher.search(request))
