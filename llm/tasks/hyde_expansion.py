"""Asks for other wordings of a search: a passage that would answer it (HyDE), and queries."""

from pydantic import BaseModel, Field

from llm.port import Task


class Inputs(BaseModel, frozen=True):
    """The search, and the question that it is for."""

    query: str
    question: str = ""
    language: str = Field(default="en", description="of the user, ISO 639-1")


class Output(BaseModel, frozen=True):
    """Wordings to search by; nobody reads them as facts."""

    passage: str = Field(
        default="", description="a short passage as the documents could have it, invented"
    )
    queries: tuple[str, ...] = Field(
        default=(), description="at most 3 searches with other words for the same thing"
    )


TASK = Task(name="hyde_expansion", inputs=Inputs, output=Output, max_output_tokens=512)
