"""Chooses the documents of a review, and the passages that a question needs."""

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.specialist_material import SpecialistInputs, TextUnit


class CandidateDocument(BaseModel, frozen=True):
    """A document that the question may mean."""

    id: str
    title: str
    source: str = ""
    language: str = "en"
    is_attached: bool = Field(
        default=False, description="whether the user gave it to the conversation"
    )
    beginning: str = Field(default="", description="of its text")


class Inputs(SpecialistInputs):
    """The documents that may be meant, and the passages that were found."""

    candidates: tuple[CandidateDocument, ...] = ()
    passages: tuple[TextUnit, ...] = ()
    most_results: int = Field(default=6, ge=1, description="of a search")


class Output(BaseModel, frozen=True):
    """The documents by their roles, and the passages worth reading; ids of the inputs only."""

    analysis: str = Field(default="", description="in one or two sentences")
    documents: tuple[str, ...] = Field(default=(), description="ids of documents to be reviewed")
    against: tuple[str, ...] = Field(
        default=(), description="ids of the laws or rules that they are reviewed against"
    )
    chunk_ids: tuple[str, ...] = Field(default=(), description="ids of useful passages")
    notes: tuple[str, ...] = Field(default=(), description="what was assumed or not found")


TASK = Task(name="extractor", inputs=Inputs, output=Output, max_output_tokens=4096)
