"""Tools that verify citations, estimate answerability, and report out-of-scope questions."""

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
    """A claim and its cited passage."""

    claim: str = Field(min_length=1, max_length=4_000, description="the claim, one sentence")
    chunk_id: str = Field(min_length=1, max_length=500, description="the id of the cited passage")


class VerifyCitationOutput(BaseModel, frozen=True):
    """The result of a comparison by rules, which does not judge meaning.

    `verbatim`: the passage contains the claim word for word. `other_words`: it does not;
    `not_in_passage` contains the numbers in the claim that do not occur in the passage. `missing`:
    the passage does not exist.
    """

    verdict: Literal["verbatim", "other_words", "missing"]
    not_in_passage: tuple[str, ...] = ()
    citation: CitedPassage | None = None


class VerifyCitation(LibraryTool[VerifyCitationInputs, VerifyCitationOutput]):
    """Compares a claim with its cited passage, without a model."""

    name = "verify_citation"
    aliases = ("check_citation", "verify_claim")
    description = (
        "Check whether a passage exists, whether it contains a claim word for word, "
        "and which numbers of the claim it does not contain."
    )
    inputs = VerifyCitationInputs
    output = VerifyCitationOutput

    async def run(self, inputs: VerifyCitationInputs, caller: ToolCaller) -> VerifyCitationOutput:
        documents = await self._library.read(
            [document_of(inputs.chunk_id)], caller.groups, caller.run
        )
        for document in documents:
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
    """The search quality, with estimates (0 to 1) of answerability and coverage."""

    quality: Literal["excellent", "good", "poor"]
    answerability: float
    coverage: float
    is_calibrated: bool


class AssessConfidence(Tool[AssessConfidenceInputs, AssessConfidenceOutput]):
    """Estimates how well the documents answer a question, from the calibrated search scores."""

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
        findings = await self._searcher.search(request)
        return AssessConfidenceOutput(
            quality=findings.quality,
            answerability=round(findings.answerability, 4),
            coverage=round(findings.coverage, 4),
            is_calibrated=findings.are_calibrated,
        )


class OutOfScopeHandlerInputs(BaseModel, frozen=True, extra="forbid"):
    """The reason why a question is out of scope."""

    reason: str = Field(default="", max_length=500, description="the reason in one sentence")


class OutOfScopeHandlerOutput(BaseModel, frozen=True):
    """The given reason."""

    reason: str


class OutOfScopeHandler(Tool[OutOfScopeHandlerInputs, OutOfScopeHandlerOutput]):
    """Reports that a question is out of scope. A round that calls only this tool ends the loop."""

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
    return VerifyCitationOutput(
        verdict="verbatim" if source.contains(claim) else "other_words",
        not_in_passage=KnownNumbers((passage,)).find_unknown(claim),
        citation=citation,
    )
