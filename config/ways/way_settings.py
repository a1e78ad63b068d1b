"""Settings of the ways: which one answers, and the limits of the tool loop."""

from pathlib import Path

from pydantic import BaseModel, Field, field_validator

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
