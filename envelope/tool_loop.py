"""Payload values of the tool loop."""

from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field


class WayName(StrEnum):
    """The way in which a question is answered; `auto` chooses one for each question."""

    SEARCH = "search"
    TOOLS = "tools"
    SPECIALISTS = "specialists"
    SWARM = "swarm"
    AUTO = "auto"


class QueryType(StrEnum):
    """The type of a question."""

    SIMPLE_SEARCH = "simple_search"
    CROSS_DOC = "cross_doc"
    COMPLIANCE = "compliance"
    RISK = "risk"
    SYNTHESIS = "synthesis"
    REPORTING = "reporting"
    UNKNOWN = "unknown"


class Triage(BaseModel, frozen=True, extra="ignore"):
    """The way of answering chosen for a question, with the reasons."""

    way: Literal[WayName.SEARCH, WayName.TOOLS, WayName.SPECIALISTS, WayName.SWARM]
    complexity: int = Field(ge=0, le=100)
    query_type: QueryType
    semantic_type: str = Field(default="", description="the kind of answer that the user wants")
    vagueness: float = Field(ge=0, le=1)
    needs_clarification: bool = False
    agent_sequence: tuple[str, ...] = ()
    needs_approval: bool = False
    reasoning: str = ""
    decided_by: str = Field(description="model that made the decision")


NO_TRIAGE = Triage(
    way=WayName.SEARCH, complexity=0, query_type=QueryType.UNKNOWN, vagueness=0.0, decided_by=""
)
"""The triage of a question whose way of answering is defined by the settings."""


class Intent(StrEnum):
    """The purpose of the calls in a round, as stated by the model; MULTI_TOOL means several
    purposes.
    """

    SEARCH = "search"
    SUMMARY = "summary"
    COMPARISON = "comparison"
    PENALTY = "penalty"
    GENERAL = "general"
    OUT_OF_SCOPE = "out_of_scope"
    MULTI_TOOL = "multi_tool"


class Strategy(StrEnum):
    """How a further round differs from the previous one."""

    REFINE_QUERY = "REFINE_QUERY"
    SWITCH_TOOL = "SWITCH_TOOL"
    MULTI_TOOL_ORCHESTRATION = "MULTI_TOOL_ORCHESTRATION"


class PlanRound(BaseModel, frozen=True, extra="ignore"):
    """The plan of a round with its reasons; the calls are recorded with their results."""

    round: int = Field(ge=1)
    intent: Intent | None = Field(
        default=None, description="confidence of the model; None: not stated"
    )
    is_multi_tool: bool = Field(
        default=False, description="whether the round calls different tools"
    )
    strategy: Strategy | None = None
    reasoning: str = ""
    tools: tuple[str, ...] = Field(default=(), description="names of the called tools")
