"""The base of the tools that search in words."""

from collections.abc import Iterable

from knowledge.port import Searcher
from tools.calls import CitedPassage, ToolCaller
from tools.passage_search.passages import (
    PassageList,
    QueryInputs,
    cite_passages,
    list_passages,
    make_request,
    render_passages,
)
from tools.tool import Tool


class PassageTool(Tool[QueryInputs, PassageList]):
    """Searches with one searcher; subclasses choose it."""

    inputs = QueryInputs
    output = PassageList
    by_words = False

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    async def run(self, inputs: QueryInputs, caller: ToolCaller) -> PassageList:
        request = make_request(inputs, caller, by_words=self.by_words)
        return list_passages(await self._searcher.search(request))

    def render(self, output: PassageList) -> str:
        return render_passages(output.passages, output.note)

    def cite(self, output: PassageList) -> Iterable[CitedPassage]:
        return cite_passages(output.passages)
