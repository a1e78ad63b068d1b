"""Settings of the ways: which one answers, the limits of each, and the tools that run elsewhere."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints, field_validator

from envelope.ways.tool_loop import QueryType, WayName


class WaySettings(BaseModel):
    """The way of answering, and the tool loop; a part of `Settings`."""

    way: WayName = Field(
        WayName.SEARCH,
        description="how questions are answered: `search`: one search; `tools`: a loop of tool "
        "calls, for questions that need several passages; `specialists`: reviews of documents "
        "against laws and rules; `swarm`: divided among workers, for questions that are too large "
        "for one look; `auto`: by the complexity and kind of each question",
    )
    search_below_complexity: int = Field(
        30,
        ge=0,
        le=101,
        description="with `WAY=auto`: questions of a lower complexity (0 to 100) are answered by "
        "one search, the others by tools, specialists or a swarm",
    )
    specialists_above_complexity: int = Field(
        70,
        ge=0,
        le=100,
        description="with `WAY=auto`: questions of a higher complexity, and of a kind that "
        "`SPECIALISTS_KINDS` names, are answered by specialists",
    )
    specialists_kinds: tuple[QueryType, ...] = Field(
        (QueryType.COMPLIANCE, QueryType.RISK, QueryType.REPORTING),
        description="with `WAY=auto`: the kinds of questions for specialists (JSON)",
    )
    max_iterations: int = Field(
        3, ge=1, le=10, description="maximum number of rounds of the tool loop"
    )
    quality_threshold: float = Field(
        7.0,
        ge=1,
        le=10,
        description="an answer that is assessed at least so (1 to 10) ends the tool loop",
    )
    multi_tool_enabled: bool = Field(
        True, description="whether a round may call several tools; false: one"
    )
    max_parallel_tools: int = Field(
        3, ge=1, le=64, description="maximum number of tool calls of a question at the same time"
    )
    max_tool_calls: int = Field(
        8, ge=1, le=64, description="maximum number of tool calls in one round"
    )
    tool_timeout_seconds: float = Field(
        30.0, gt=0, description="time limit of one call of a tool, unless the tool has a lower one"
    )
    tool_set: Path | None = Field(
        None,
        description="TOML file with further tools: built-in ones under other names and with fixed "
        "arguments; and with combinations of tools",
    )
    tool_combinations: dict[str, tuple[str, ...]] = Field(
        {},
        description="tools that a plan often calls together, by purpose (JSON), besides those of "
        '`TOOL_SET`: `{"safety_and_penalties": ["regulation_search", "penalty_lookup"]}`. Each has '
        "at least two tools of the assistant, each once",
    )

    @field_validator("tool_set", mode="before")
    @classmethod
    def _treat_empty_as_unset(cls, value: object) -> object:
        return None if value == "" else value


MOST_WORKERS = 32


class SwarmSettings(BaseModel):
    """The way `swarm`; a part of `Settings`."""

    swarm_strategy: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")] = Field(
        "auto",
        description="how the swarm divides a question: `intelligent`: by the form of the question; "
        "`parallel`: independent sub-questions; `council`: several perspectives; `auto`: the "
        "planner chooses",
    )
    swarm_workers: int = Field(
        MOST_WORKERS, ge=1, le=MOST_WORKERS, description="maximum number of workers of a question"
    )
    swarm_parallel_workers: int = Field(
        8, ge=1, le=64, description="maximum number of workers of a question at the same time"
    )
    swarm_retries: int = Field(
        3, ge=0, le=10, description="how often a worker that failed begins again"
    )
    swarm_enough_share: float = Field(
        1.0,
        gt=0,
        le=1,
        description="the share of workers whose results are enough to write the answer; 1: all, "
        "but for those that fail or take too long",
    )
    swarm_above_complexity: int = Field(
        70,
        ge=0,
        le=101,
        description="with `WAY=auto`: questions of a higher complexity (0 to 100) are divided "
        "among workers",
    )


class LearningSettings(BaseModel):
    """Outcomes of swarms, and names of models in the check; a part of `Settings`."""

    swarm_learning: bool = Field(
        True,
        description="whether the outcomes of swarms (numbers, no text) are kept for 90 days, and "
        "advise strategy and number of workers; `refdesk swarm stats` shows them",
    )
    model_aliases: dict[str, str] = Field(
        {},
        description="names under which servers of models answer, by the requested name (JSON), "
        'such as `{"my-deployment": "gpt-5"}`; `*`: any name. Dated names need none. An answer by '
        "another model is a fault that the reply names",
    )


class OutsideSettings(BaseModel):
    """The file of MCP servers and HTTP interfaces; a part of `Settings`."""

    outside_tools: Path | None = Field(
        None,
        description="TOML file with MCP servers and HTTP interfaces whose tools may be called "
        "([tools.md](tools.md)); MCP servers need the extra `mcp`",
    )

    @field_validator("outside_tools", mode="before")
    @classmethod
    def _treat_blank_as_unset(cls, value: object) -> object:
        return None if value == "" else value
