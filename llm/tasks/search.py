"""The tasks of search and answer: query expansion, the answer, and its evaluation."""

from typing import Literal

from pydantic import BaseModel, Field

from envelope.conversation import AnswerStyle
from envelope.sources import FoundPart
from llm.port import Task, keep_first_half
from llm.tasks.question import Confidence


class HydeExpansionInputs(BaseModel, frozen=True):
    """The search query, and the question behind it."""

    query: str
    question: str = ""
    language: str = Field(default="en", description="language of the user, ISO 639-1")


class HydeExpansionOutput(BaseModel, frozen=True):
    """Texts to search with; they are not treated as facts."""

    passage: str = Field(
        default="", description="a short invented passage that could occur in the documents"
    )
    queries: tuple[str, ...] = Field(
        default=(), description="at most 3 queries for the same thing in other words"
    )


HYDE_EXPANSION = Task(
    name="hyde_expansion",
    inputs=HydeExpansionInputs,
    output=HydeExpansionOutput,
    max_output_tokens=512,
)
"""Expands a search query with a passage that would answer it (HyDE) and with other queries."""


class PromptSource(BaseModel, frozen=True):
    """A numbered source in a prompt, which is a part of a section that may be cited."""

    number: int = Field(ge=1)
    chunk_id: str
    place: str = Field(description="breadcrumbs and headings, joined")
    language: str | None = None
    version: str = Field(
        default="", description="version that the document states; also part of `place`"
    )
    text: str
    found: tuple[FoundPart, ...] = Field(
        default=(), description="the chunks of this source that the search found, best first"
    )


class RespondInputs(BaseModel, frozen=True):
    """The question, the sources, and the problems of an earlier answer."""

    question: str
    language: str = Field(description="language of the answer, ISO 639-1")
    sources: tuple[PromptSource, ...]
    augmented_prompt: str = Field(
        default="",
        description="`sources` and `question` as text, each in a data block; empty: not "
        "composed yet",
    )
    language_name: str = Field(default="", description="English name of that language")
    domain_name: str = Field(default="", description="the configured name of the desk")
    domain_scope: str = Field(default="", description="the subject of the documents")
    names: tuple[str, ...] = Field(default=(), description="names that are never translated")
    glossary: tuple[str, ...] = Field(default=(), description="domain terms and how to use them")
    tone: str = Field(default="", description="the configured tone of answers")
    formatting: str = Field(default="", description="the configured format of answers")
    today: str = Field(default="", description="the date in UTC, such as 2026-01-31")
    history: tuple[str, ...] = Field(
        default=(), description="earlier turns without citations, oldest first; not a source"
    )
    assumption: str = ""
    style: AnswerStyle = Field(default="", description="the form of answer that the user requested")
    earlier: str = Field(default="", description="the previous answer, without the removed parts")
    analysis: str = Field(default="", description="the problems of the previous answer")
    refused: tuple[str, ...] = Field(
        default=(), description="addresses in the previous answer that must not be shown"
    )
    attempt: int = 0


class RespondOutput(BaseModel, frozen=True):
    """The answer, or the missing information."""

    status: Literal["answered", "insufficient_context", "missing_details"]
    answer: str = Field(default="", description="Markdown; claims end with [n]")
    confidence: Confidence = 0.0
    missing: str = Field(
        default="",
        description="in a few words: the information missing from the sources or from the question",
    )


RESPOND = Task(
    name="respond",
    inputs=RespondInputs,
    output=RespondOutput,
    max_output_tokens=2048,
    shorten=keep_first_half("sources", augmented_prompt=""),
)
"""Writes an answer based only on the given sources, with a citation for each claim."""


class JudgedSource(BaseModel, frozen=True):
    """A source that was available for the answer, with its number in the writer's prompt."""

    number: int = Field(ge=1)
    place: str = Field(description="title, breadcrumbs and headings, joined")
    text: str
    is_cut: bool = Field(default=False, description="whether `text` is only a part of the section")
    is_cited: bool = Field(default=False, description="whether the answer cites this source")


class PromptPassage(BaseModel, frozen=True):
    """A passage of the answer that needs a verdict, with the result of a rule-based check, if
    any.
    """

    number: int = Field(ge=1)
    text: str
    note: str = ""


class JudgeInputs(BaseModel, frozen=True):
    """The question, the answer, its sources, and the passages that need a verdict."""

    question: str
    language: str = Field(description="language of the user, ISO 639-1")
    language_name: str = Field(default="", description="English name of that language")
    answer: str
    passages: tuple[PromptPassage, ...] = ()
    sources: tuple[JudgedSource, ...] = ()
    missing: str = Field(
        default="", description="information that the writer did not find in the sources"
    )
    assumption: str = Field(
        default="", description="the meaning of the question that the answer assumes"
    )
    facts: tuple[str, ...] = Field(
        default=(), description="facts that the user gave in reply to pauses"
    )
    attempt: int = 0


class Verdict(BaseModel, frozen=True):
    """Whether sources support a passage; the reason comes before the verdict."""

    passage: int = Field(
        ge=0,
        description="number of the passage, if listed; 0 for any other claim in doubt",
    )
    quote: str = Field(description="the judged words, copied exactly from the answer")
    reason: str = Field(
        default="", description="the reason in at most ten words, before the verdict"
    )
    supported: bool
    source: int = Field(
        default=0,
        ge=0,
        description="number of a source that supports the passage but is not cited for it; else 0",
    )


class JudgeOutput(BaseModel, frozen=True):
    """The verdicts, the measures, and the decision.

    Models write the fields in this order, so reasons come before the fields that depend on them.
    """

    claims_read: int = Field(ge=0, description="number of claims of the answer that were compared")
    verdicts: tuple[Verdict, ...] = Field(
        default=(), description="one verdict for each numbered passage and for each claim in doubt"
    )
    missing: tuple[str, ...] = Field(
        default=(), description="parts of the question that are not answered"
    )
    completeness: float = Field(
        ge=0, le=1, description="how completely the answer addresses the question"
    )
    accuracy: float = Field(ge=0, le=1, description="to what extent the sources support the answer")
    language_matches: bool = Field(description="whether the answer is in the user's language")
    analysis: str = Field(
        default="",
        description="advice for the writer of the next answer; empty if this answer is approved",
    )
    decision: Literal["approve", "regenerate", "research", "clarify"]


def _keep_cited(inputs: JudgeInputs) -> JudgeInputs:
    """Keep only the cited sources, because a claim whose source is missing would be rejected."""
    cited = tuple(source for source in inputs.sources if source.is_cited)
    return inputs.model_copy(update={"sources": cited})


JUDGE = Task(
    name="judge",
    inputs=JudgeInputs,
    output=JudgeOutput,
    max_output_tokens=2048,
    shorten=_keep_cited,
)
"""Judges whether sources support an answer, and how completely it answers the question."""
