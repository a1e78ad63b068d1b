"""Chooses the way in which a question is answered, by how much it needs."""

from pydantic import BaseModel, Field

from envelope.tool_loop import QueryType
from llm.port import PREPARING_SHARE, Task


class Inputs(BaseModel, frozen=True):
    """The question, and the earlier turns that it refers to."""

    question: str
    documents: tuple[str, ...] = Field(
        default=(), description="ids, titles, kinds and versions; the last line counts the others"
    )
    related: tuple[str, ...] = Field(default=(), description="earlier user turns, newest first")
    domain_name: str = Field(default="", description="the desk's name, as settings have it")
    domain_scope: str = Field(default="", description="the subject of the documents")


class Output(BaseModel, frozen=True):
    """The judgement about the question; the reason comes before what follows from it."""

    reasoning: str = Field(default="", description="in one sentence, before the numbers")
    query_type: QueryType = QueryType.UNKNOWN
    semantic_type: str = Field(
        default="", description="the kind of answer: fact, list, steps, comparison, number, ..."
    )
    complexity: int = Field(ge=0, le=100, description="0: one look suffices; 100: a project")
    vagueness: float = Field(ge=0, le=1, description="0: clear; 1: nobody can tell what is meant")
    needs_clarification: bool = False
    agent_sequence: tuple[str, ...] = Field(
        default=(), description="specialists for compliance, risk and reporting; else empty"
    )


TASK = Task(
    name="triage", inputs=Inputs, output=Output, max_output_tokens=512, time_share=PREPARING_SHARE
)
