"""The tool `definition_aligner`."""

from collections.abc import Iterable, Iterator
from typing import Self

from pydantic import BaseModel, Field

from citations.claims import split_units
from knowledge.port import Findings, Searcher, SearchRequest
from tools.calls import CitedPassage, QuotedPassage, ToolCaller
from tools.passages import (
    FoundPassage,
    cite_hit,
    cite_passages,
    quote_passages,
    render_passages,
)
from tools.tool import Tool, ToolParts

_MARKS = (
    " means ",
    " is defined as ",
    " refers to ",
    " is a ",
    " is an ",
    " is the ",
    " are ",
    ": ",
)
_MOST = 5


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """A term."""

    term: str = Field(min_length=1, max_length=200, description="the term, such as 'controller'")


class Output(BaseModel, frozen=True):
    """Sentences that define a term, from different documents, to be compared."""

    term: str
    definitions: tuple[FoundPassage, ...]


class DefinitionAligner(Tool[Inputs, Output]):
    """Lists the definitions of one term side by side."""

    name = "definition_aligner"
    aliases = ("define", "definition_search")
    description = "Find how the documents define a term, and compare the definitions."
    inputs = Inputs
    output = Output

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(parts.searcher)

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Output:
        request = SearchRequest(
            run=caller.run,
            question=f"definition of {inputs.term}",
            language=caller.language or None,
            limit=20,
            groups=caller.groups,
        )
        findings = await self._searcher.search(request)
        found = list(_list_definitions(findings, inputs.term))[:_MOST]
        return Output(term=inputs.term, definitions=tuple(found))

    def render(self, output: Output) -> str:
        note = "" if output.definitions else f"no sentence defines {output.term!r}"
        return render_passages(output.definitions, note)

    def cite(self, output: Output) -> Iterable[CitedPassage]:
        return cite_passages(output.definitions)

    def quote(self, output: Output) -> Iterable[QuotedPassage]:
        return quote_passages(output.definitions)


def _list_definitions(findings: Findings, term: str) -> Iterator[FoundPassage]:
    wanted = term.casefold()
    for hit in findings.hits:
        for unit in split_units(hit.text):
            text = " ".join(unit.text.split())
            before, _, after = text.casefold().partition(wanted)
            is_first = len(before) <= 12 and len(after) > 20
            if is_first and any(mark in f"{after[:40]} " for mark in _MARKS):
                yield FoundPassage(citation=cite_hit(hit), text=text)
                break
