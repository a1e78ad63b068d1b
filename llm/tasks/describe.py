"""Asks what a page of the documents is about."""

from pydantic import BaseModel, Field

from llm.port import Task


class Inputs(BaseModel, frozen=True):
    """The page as it was read."""

    title: str
    crumbs: tuple[str, ...] = Field(default=(), description="where it stands, outermost first")
    content: str = Field(description="its text, cut where it is very long")
    language: str = Field(default="en", description="ISO 639-1")


class Output(BaseModel, frozen=True):
    """The description, in the page's own language."""

    description: str = Field(description="one sentence: what the page is for")
    summary: str = Field(description="what it says, at most 120 words")
    keypoints: tuple[str, ...] = Field(default=(), description="at most 12, one sentence each")
    keywords: tuple[str, ...] = Field(default=(), description="at most 24, the page's own words")


TASK = Task(name="describe", inputs=Inputs, output=Output, max_output_tokens=1024)
