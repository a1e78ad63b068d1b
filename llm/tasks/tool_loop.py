"""The tasks of the tool loop: the choice of the way of answering, and tool calls."""

from pydantic import BaseModel, Field

from envelope.tool_loop import QueryType
from llm.port import PREPARING_SHARE, ModelMessage, Task


class TriageInputs(BaseModel, frozen=True):
    """The question, related earlier turns, and the documents."""

    question: str
    documents: tuple[str, ...] = Field(
        default=(),
        description="ids, titles, kinds and versions; the last entry states how many further "
        "documents are not listed",
    )
    related: tuple[str, ...] = Field(default=(), description="earlier user turns, newest first")
    domain_name: str = Field(default="", description="the configured name of the desk")
    domain_scope: str = Field(default="", description="the subject of the documents")


class TriageOutput(BaseModel, frozen=True):
    """The assessment of the question; the reason comes before the fields that depend on it."""

    reasoning: str = Field(default="", description="the reason in one sentence, before the numbers")
    query_type: QueryType = QueryType.UNKNOWN
    semantic_type: str = Field(
        default="", description="the kind of answer: fact, list, steps, comparison, number, ..."
    )
    complexity: int = Field(ge=0, le=100, description="0: one search suffices; 100: a project")
    vagueness: float = Field(
        ge=0, le=1, description="0: clear; 1: the meaning cannot be determined"
    )
    needs_clarification: bool = False
    agent_sequence: tuple[str, ...] = Field(
        default=(), description="specialists for compliance, risk and reporting; else empty"
    )
    offers: tuple[str, ...] = Field(
        default=(), description="with needs_clarification: ids of documents that may be meant"
    )


TRIAGE = Task(
    name="triage",
    inputs=TriageInputs,
    output=TriageOutput,
    max_output_tokens=512,
    time_share=PREPARING_SHARE,
)
"""Estimates the complexity of a question, which determines how it is answered."""


class ReasonInputs(BaseModel, frozen=True):
    """The question, and the context for planning tool calls."""

    question: str
    language: str = Field(default="", description="language of the user, ISO 639-1; empty: unknown")
    domain_name: str = Field(default="", description="the configured name of the desk")
    domain_scope: str = Field(default="", description="the subject of the documents")
    today: str = Field(default="", description="the date in UTC, such as 2026-01-31")
    versions: tuple[str, ...] = Field(default=(), description="versions stated in the documents")
    documents: tuple[str, ...] = Field(
        default=(),
        description="ids, titles, kinds and versions; the last entry states how many further "
        "documents are not listed",
    )
    combinations: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="tools that are often used together, by purpose"
    )
    most_calls: int = Field(
        default=8, ge=1, description="maximum number of tool calls in one message"
    )


REASON = Task(name="reason", inputs=ReasonInputs, output=ModelMessage, max_output_tokens=2048)
"""Plans tool calls for a question, in a conversation in which the model may call tools."""
