"""Asks what a long page is about, by the summaries of all its parts."""

from pydantic import BaseModel, Field

from llm.port import Task
from llm.tasks.describe import Output


class Inputs(BaseModel, frozen=True):
    """The page and the summaries of its parts, in order."""

    title: str
    crumbs: tuple[str, ...] = Field(default=(), description="where it stands, outermost first")
    sections: tuple[str, ...]
    language: str = Field(default="en", description="ISO 639-1")


TASK = Task(name="document_summary", inputs=Inputs, output=Output, max_output_tokens=1024)
