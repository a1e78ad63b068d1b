"""Asks for an answer that says only what the given sources say, each claim with its source."""

from typing import Literal

from pydantic import BaseModel, Field

from envelope.conversation import AnswerStyle
from envelope.sources import FoundPart
from llm.port import Task
from llm.tasks.confidence import Confidence


class PromptSource(BaseModel, frozen=True):
    """A part of a section that may be cited, under its number."""

    number: int = Field(ge=1)
    chunk_id: str
    place: str = Field(description="crumbs and headings, joined")
    language: str | None = None
    version: str = Field(default="", description="that its document states; `place` has it, too")
    text: str
    found: tuple[FoundPart, ...] = Field(
        default=(), description="the chunks in it that the search found, best first"
    )


class Inputs(BaseModel, frozen=True):
    """The question, the sources, and the complaints about an earlier answer."""

    question: str
    language: str = Field(description="of the answer, ISO 639-1")
    sources: tuple[PromptSource, ...]
    augmented_prompt: str = Field(
        default="",
        description="`sources` and `question` as text, each in a data block; empty: not made yet",
    )
    language_name: str = Field(default="", description="of the answer, in English")
    domain_name: str = Field(default="", description="the desk's name, as settings have it")
    domain_scope: str = Field(default="", description="the subject of the documents")
    names: tuple[str, ...] = Field(default=(), description="names that are never translated")
    glossary: tuple[str, ...] = Field(default=(), description="terms and how answers use them")
    tone: str = Field(default="", description="of the answer, as settings have it")
    formatting: str = Field(default="", description="of the answer, as settings have it")
    today: str = Field(default="", description="the date in UTC, as 2026-01-31")
    history: tuple[str, ...] = Field(
        default=(), description="earlier turns without citations, oldest first; no source"
    )
    assumption: str = ""
    style: AnswerStyle = Field(default="", description="the form in which the user wants it")
    earlier: str = Field(default="", description="the answer before, without what was left out")
    analysis: str = Field(default="", description="what was wrong with the answer before")
    attempt: int = 0


class Output(BaseModel, frozen=True):
    """The answer, or the missing information."""

    status: Literal["answered", "insufficient_context", "missing_details"]
    answer: str = Field(default="", description="Markdown; claims end with [n]")
    confidence: Confidence = 0.0
    missing: str = Field(
        default="", description="in a few words: what the sources, or the question, do not say"
    )


TASK = Task(name="respond", inputs=Inputs, output=Output, max_output_tokens=2048)
