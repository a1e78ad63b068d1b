"""The tools that judge: a citation, whether the documents answer, and what is out of scope."""

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import BaseModel, Field

from citations.facts import KnownNumbers
from citations.proof import ProofSource, SourceTexts
from knowledge.port import Searcher, SearchRequest
from knowledge.sections import document_of
from tools.calls import CitedPassage, ToolCaller
from tools.passages import cite_chunk
from tools.tool import LibraryTool, Tool, ToolParts


class VerifyCitationInputs(BaseModel, frozen=True, extra="forbid"):
    """A claim and the passage that it cites."""

    claim: str = Field(min_length=1, max_length=4_000, description="the claim, one sentence")
    chunk_id: str = Field(min_length=1, max_length=500, description="the id of the cited passage")


class VerifyCitationOutput(BaseModel, frozen=True):
    """What can be proved of a claim; whether the passage means the same, its reader judges.

    `verbatim`: it stands there word for word; `other_words`: it does not, and `not_in_passage` has
    its numbers that the passage does not have; `missing`: there is no such passage.
    """

    verdict: Literal["verbatim", "other_words", "missing"]
    not_in_passage: tuple[str, ...] = ()
    citation: CitedPassage | None = None


class VerifyCitation(LibraryTool[VerifyCitationInputs, VerifyCitationOutput]):
    """Compares a claim with the passage that it cites, without a model."""

    name = "verify_citation"
    aliases = ("check_citation", "verify_claim")
    description = (
        "Check whether a passage exists, whether a claim stands in it word for word, and which "
        "numbers of the claim it does not have."
    )
    inputs = VerifyCitationInputs
    output = VerifyCitationOutput

    async def run(self, inputs: VerifyCitationInputs, caller: ToolCaller) -> VerifyCitationOutput:
        found = await self._library.read([document_of(inputs.chunk_id)], caller.groups, caller.run)
        for document in found:
            for number, chunk in enumerate(document.chunks):
                if chunk.chunk.chunk_id == inputs.chunk_id:
                    return _compare(inputs.claim, chunk.chunk.text, cite_chunk(document, number))
        return VerifyCitationOutput(verdict="missing")

    def cite(self, output: VerifyCitationOutput) -> Iterable[CitedPassage]:
        return () if output.citation is None else (output.citation,)


class AssessConfidenceInputs(BaseModel, frozen=True, extra="forbid"):
    """A question."""

    question: str = Field(min_length=1, max_length=2_000, description="the question to answer")


class AssessConfidenceOutput(BaseModel, frozen=True):
    """Calibrated probabilities, 0 to 1, that the documents answer and cover a question."""

    quality: Literal["excellent", "good", "poor"]
    answerability: float
    coverage: float
    is_calibrated: bool


class AssessConfidence(Tool[AssessConfidenceInputs, AssessConfidenceOutput]):
    """Judges how well the documents can answer, by the calibration of the search."""

    name = "assess_confidence"
    aliases = ("confidence",)
    description = "Assess how likely it is that the documents contain the answer to a question."
    inputs = AssessConfidenceInputs
    output = AssessConfidenceOutput

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(parts.searcher)

    async def run(
        self, inputs: AssessConfidenceInputs, caller: ToolCaller
    ) -> AssessConfidenceOutput:
        request = SearchRequest(
            run=caller.run,
            question=inputs.question,
            text=inputs.question,
            language=caller.language or None,
            groups=caller.groups,
        )
        found = await self._searcher.search(request)
        return AssessConfidenceOutput(
            quality=found.quality,
            answerability=round(found.answerability, 4),
            coverage=round(found.coverage, 4),
            is_calibrated=found.are_calibrated,
        )


class OutOfScopeHandlerInputs(BaseModel, frozen=True, extra="forbid"):
    """Why a question is not about the documents."""

    reason: str = Field(default="", max_length=500, description="in one sentence")


class OutOfScopeHandlerOutput(BaseModel, frozen=True):
    """The reason, as it was given."""

    reason: str


class OutOfScopeHandler(Tool[OutOfScopeHandlerInputs, OutOfScopeHandlerOutput]):
    """Says that a question is not about the documents; a round that only calls it ends the loop."""

    name = "out_of_scope_handler"
    description = "Say that the question has nothing to do with the documents."
    inputs = OutOfScopeHandlerInputs
    output = OutOfScopeHandlerOutput

    async def run(
        self, inputs: OutOfScopeHandlerInputs, caller: ToolCaller
    ) -> OutOfScopeHandlerOutput:
        return OutOfScopeHandlerOutput(reason=inputs.reason)


def _compare(claim: str, passage: str, citation: CitedPassage) -> VerifyCitationOutput:
    source = SourceTexts([ProofSource(1, passage)])
    is_verbatim = source.find_prose(claim) is not None
    return VerifyCitationOutput(
        verdict="verbatim" if is_verbatim else "other_words",
        not_in_passage=KnownNumbers((passage,)).find_unknown(claim),
        citation=citation,
    )
