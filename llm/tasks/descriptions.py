"""The tasks that describe pages during ingestion."""

from pydantic import BaseModel, Field

from llm.port import Task


class DescribeInputs(BaseModel, frozen=True):
    """The content of the page."""

    title: str
    crumbs: tuple[str, ...] = Field(
        default=(), description="breadcrumbs of the page, outermost first"
    )
    content: str = Field(description="text of the page, truncated if it is very long")
    language: str = Field(default="en", description="ISO 639-1")


class DescribeOutput(BaseModel, frozen=True):
    """The description, in the page's own language."""

    description: str = Field(description="the purpose of the page in one sentence")
    summary: str = Field(description="summary of the page in at most 120 words")
    keypoints: tuple[str, ...] = Field(
        default=(), description="at most 12 key points, one sentence each"
    )
    keywords: tuple[str, ...] = Field(
        default=(), description="at most 24 keywords, in the words of the page"
    )


DESCRIBE = Task(
    name="describe", inputs=DescribeInputs, output=DescribeOutput, max_output_tokens=1024
)
"""Describes a page of the documents."""


class SectionSummaryInputs(BaseModel, frozen=True):
    """The content of a part of a page."""

    title: str
    place: str = Field(description="position of the part, such as 2 of 7")
    content: str
    language: str = Field(default="en", description="ISO 639-1")


class SectionSummaryOutput(BaseModel, frozen=True):
    """The summary, in the page's own language."""

    summary: str = Field(description="summary of the part in at most 150 words")


SECTION_SUMMARY = Task(
    name="section_summary",
    inputs=SectionSummaryInputs,
    output=SectionSummaryOutput,
    max_output_tokens=512,
)
"""Summarises one part of a long page."""


class DocumentSummaryInputs(BaseModel, frozen=True):
    """The page and the summaries of its parts, in order."""

    title: str
    crumbs: tuple[str, ...] = Field(
        default=(), description="breadcrumbs of the page, outermost first"
    )
    sections: tuple[str, ...]
    language: str = Field(default="en", description="ISO 639-1")


DOCUMENT_SUMMARY = Task(
    name="document_summary",
    inputs=DocumentSummaryInputs,
    output=DescribeOutput,
    max_output_tokens=1024,
)
"""Describes a long page from the summaries of its parts."""
