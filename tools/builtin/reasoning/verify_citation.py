"""The tool `verify_citation`."""

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, Field

from knowledge.sections import document_of
from llm.offline.support import foreign_facts, support
from tools.calls import CitedPassage, ToolCaller
from tools.library_tool import LibraryTool
from tools.passage_search.passages import cite_chunk

SUPPORTED = 0.6
"""The share of a claim's words that a passage must have to support it."""
_RELATED = 0.3


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """A claim and the passage that it cites."""

    claim: str = Field(min_length=1, max_length=4_000, description="the claim, one sentence")
    chunk_id: str = Field(min_length=1, max_length=500, description="the id of the cited passage")


class Output(BaseModel, frozen=True):
    """Whether the passage exists and supports the claim, by words, numbers and names."""

    verdict: Literal["supports", "partly", "unrelated", "missing"]
    support: float = 0.0
    not_in_passage: tuple[str, ...] = ()
    citation: CitedPassage | None = None


class VerifyCitation(LibraryTool[Inputs, Output]):
    """Compares a claim with the passage that it cites, without a model."""

    name = "verify_citation"
    aliases = ("check_citation", "verify_claim")
    description = (
        "Check whether a passage exists and says what a claim says: words, numbers and names."
    )
    inputs = Inputs
    output = Output

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Output:
        found = await self._library.read([document_of(inputs.chunk_id)], caller.groups)
        for document in found:
            for number, one in enumerate(document.chunks):
                if one.chunk.chunk_id == inputs.chunk_id:
                    return _compare(inputs.claim, one.chunk.text, cite_chunk(document, number))
        return Output(verdict="missing")

    def cite(self, output: Output) -> Iterable[CitedPassage]:
        return () if output.citation is None else (output.citation,)


def _compare(claim: str, passage: str, citation: CitedPassage) -> Output:
    share = support(claim, passage)
    foreign = foreign_facts(claim, passage)
    verdict: Literal["supports", "partly", "unrelated"] = "unrelated"
    if share >= SUPPORTED and not foreign:
        verdict = "supports"
    elif share >= _RELATED:
        verdict = "partly"
    return Output(
        verdict=verdict, support=round(share, 3), not_in_passage=foreign, citation=citation
    )
