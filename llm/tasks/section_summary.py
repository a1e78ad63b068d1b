"""Asks what one part of a long page says."""

from pydantic import BaseModel, Field

from llm.port import Task


class Inputs(BaseModel, frozen=True):
    """A part of a page as it was read."""

    title: str
    place: str = Field(description="such as 2 of 7")
    content: str
    language: str = Field(default="en", description="ISO 639-1")


class Output(BaseModel, frozen=True):
    """The summary, in the page's own language."""

    summary: str = Field(description="what the part says, at most 150 words")


TASK = Task(name="section_summary", inputs=Inputs, output=Output, max_output_tokens=512)
