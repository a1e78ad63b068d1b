"""The tool `assess_confidence`."""

from typing import Literal, Self

from pydantic import BaseModel, Field

from knowledge.port import Searcher, SearchRequest
from tools.calls import ToolCaller
from tools.tool import Tool, ToolParts


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """A question."""

    question: str = Field(min_length=1, max_length=2_000, description="the question to answer")


class Output(BaseModel, frozen=True):
    """Calibrated probabilities, 0 to 1, that the documents answer and cover a question."""

    quality: Literal["excellent", "good", "poor"]
    answerability: float
    coverage: float
    ambiguity: float
    is_calibrated: bool


class AssessConfidence(Tool[Inputs, Output]):
    """Judges how well the documents can answer, by the calibration of the search."""

    name = "assess_confidence"
    aliases = ("confidence",)
    description = "Assess how likely it is that the documents contain the answer to a question."
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
            question=inputs.question,
            text=inputs.question,
            language=caller.language or None,
            groups=caller.groups,
        )
        found = await self._searcher.search(request)
        return Output(
            quality=found.quality,
            answerability=round(found.answerability, 4),
            coverage=round(found.coverage, 4),
            ambiguity=round(found.ambiguity, 4),
            is_calibrated=found.are_calibrated,
        )
