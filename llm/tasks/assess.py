"""Assesses an answer of the tool loop, and says what a further round should look for."""

from pydantic import BaseModel, Field

from llm.port import Task


class AssessedSource(BaseModel, frozen=True):
    """A source that the answer was written from, with the number that the answer cites."""

    number: int = Field(ge=1)
    text: str


class Inputs(BaseModel, frozen=True):
    """The question, the answer, and its sources."""

    question: str
    answer: str
    sources: tuple[AssessedSource, ...] = ()
    unanswered: str = Field(default="", description="what the writer says that the sources lack")


class Output(BaseModel, frozen=True):
    """Four criteria, each 1 to 10; the gaps come before the numbers."""

    missing: tuple[str, ...] = Field(
        default=(), description="what was asked and is not answered, each as words to search for"
    )
    completeness: float = Field(ge=1, le=10)
    accuracy: float = Field(ge=1, le=10)
    clarity: float = Field(ge=1, le=10)
    specificity: float = Field(ge=1, le=10)


TASK = Task(name="assess", inputs=Inputs, output=Output, max_output_tokens=512)
