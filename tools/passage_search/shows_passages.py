"""How tools that return passages render, cite and quote them."""

from collections.abc import Iterable

from tools.calls import CitedPassage, QuotedPassage
from tools.passage_search.passages import (
    PassageList,
    cite_passages,
    quote_passages,
    render_passages,
)


class ShowsPassages:
    """The output of a tool is a list of passages."""

    output = PassageList

    def render(self, output: PassageList) -> str:
        return render_passages(output.passages, output.note)

    def cite(self, output: PassageList) -> Iterable[CitedPassage]:
        return cite_passages(output.passages)

    def quote(self, output: PassageList) -> Iterable[QuotedPassage]:
        return quote_passages(output.passages)
