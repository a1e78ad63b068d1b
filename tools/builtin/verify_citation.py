"""The tool `verify_citation`."""

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, Field

from citations.facts import KnownNumbers
from citations.proof import CitedSource, SourceTexts
from knowledge.sections import document_of
from tools.calls import CitedPassage, ToolCaller
from tools.passages import cite_chunk
from tools.tool import LibraryTool


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """A claim and the passage that it cites."""

    claim: str = Field(min_length=1, max_length=4_000, description="the claim, one sentence")
    chunk_id: str = Field(min_length=1, max_length=500, description="the id of the cited passage")


class Output(BaseModel, frozen=True):
    """What can be proved of a claim; whether the passage means the same, its reader judges.

    `verbatim`: it stands there word for word; `other_words`: it does not, and `not_in_passage` has
    its numbers that the passage does not have; `missing`: there is no such passage.
    """

    verdict: Literal["verbatim", "other_words", "missing"]
    not_in_passage: tuple[str, ...] = ()
    citation: CitedPassage | None = None


class VerifyCitation(LibraryTool[Inputs, Output]):
    """Compares a claim with the passage that it cites, without a model."""

    name = "verify_citation"
    aliases = ("check_citation", "verify_claim")
    description = (
        "Check whether a passage exists, whether a claim stands in it word for word, and which "
        "numbers of the claim it does not have."
    )
    inputs = Inputs
    output = Output

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Output:
        found = await self._library.read([document_of(inputs.chunk_id)], caller.groups, caller.run)
        for document in found:
            for number, one in enumerate(document.chunks):
                if one.chunk.chunk_id == inputs.chunk_id:
                    return _compare(inputs.claim, one.chunk.text, cite_chunk(document, number))
        return Output(verdict="missing")

    def cite(self, output: Output) -> Iterable[CitedPassage]:
        return () if output.citation is None else (output.citation,)


def _compare(claim: str, passage: str, citation: CitedPassage) -> Output:
    source = SourceTexts([CitedSource(1, passage)])
    is_verbatim = source.find_prose(claim) is not None
    return Output(
        verdict="verbatim" if is_verbatim else "other_words",
        not_in_passage=KnownNumbers((passage,)).find_unknown(claim),
        citation=citation,
    )
