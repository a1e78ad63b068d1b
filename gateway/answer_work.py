"""The parts of an answer about the work behind it, which only the operator's programs read."""

from pydantic import BaseModel, Field, JsonValue, computed_field

CENTS = 100


class AgentUsage(BaseModel, frozen=True, extra="ignore"):
    """What the model calls of one agent took; see `ModelUsage`."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cost_usd: float | None = None

    @computed_field  # type: ignore[prop-decorator] # see the documentation of pydantic
    @property
    def cost_cents(self) -> float | None:
        """`cost_usd` in cents."""
        return to_cents(self.cost_usd)


class ModelUsage(BaseModel, frozen=True, extra="ignore"):
    """The use of vendors' models for one message."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = Field(0, description="part of the input tokens")
    cost_usd: float | None = Field(None, description="omitted if a price is unknown")
    cache_hits: int = Field(
        0, description="answers of models that were reused from an earlier message"
    )
    saved_usd: float | None = Field(None, description="the cost of those answers")
    by_agent: dict[str, AgentUsage] | None = Field(
        None, description="the usage of each agent, by its task, such as `compliance`"
    )

    @computed_field  # type: ignore[prop-decorator] # see the documentation of pydantic
    @property
    def cost_cents(self) -> float | None:
        """`cost_usd` in cents; omitted if a price is unknown."""
        return to_cents(self.cost_usd)


def to_cents(usd: float | None) -> float | None:
    """Return an amount of USD in cents, which are never stored."""
    return None if usd is None else round(usd * CENTS, 6)


class BudgetUse(BaseModel, frozen=True, extra="ignore"):
    """The calls of one message that counted against its budgets."""

    model_calls: int = 0
    tool_calls: int = Field(
        0, description="calls that were executed; refused calls do not count against a budget"
    )
    exhausted: str | None = Field(
        None, description="the budget that was used up", examples=["tool_calls"]
    )


class ReportedCall(BaseModel, frozen=True, extra="ignore"):
    """One call of a tool that was made for a message."""

    tool_name: str = Field(examples=["search"])
    arguments: dict[str, JsonValue] | str | None = Field(None, description="shortened")
    success: bool
    error_type: str = Field(description="`success`, or why there is no result")
    error: str | None = None
    duration_ms: float = 0.0
    attempts: int = 0


class PlannedRound(BaseModel, frozen=True, extra="ignore"):
    """The plan of one round of the tool loop, with its reasons."""

    round: int = Field(examples=[1])
    intent: str = Field(examples=["penalty"])
    is_multi_tool: bool = Field(
        False, description="whether it calls other tools than the round before"
    )
    strategy: str | None = Field(
        None,
        description="how it differs from the round before: `REFINE_QUERY`, `SWITCH_TOOL` or "
        "`MULTI_TOOL_ORCHESTRATION`",
    )
    reasoning: str = ""
    tools: tuple[str, ...] = Field((), description="that were called")


class ChecklistSummary(BaseModel, frozen=True, extra="ignore"):
    """What a checklist has; `GET /v1/reviews/{conversation_id}~{message_id}/checklist` returns
    it."""

    target_law: str
    requirements: int
    units_read: int = Field(0, description="units of the law, such as articles")
    units_unread: tuple[str, ...] = ()


class ReportedTask(BaseModel, frozen=True, extra="ignore"):
    """One part of a question that was divided among workers."""

    task_id: str = Field(examples=["worker_0_research"])
    title: str | None = Field(None, examples=["What does SMPP say about retries?"])
    state: str = Field(
        description="`pending`, `in_progress`, `awaiting_input`, `completed`, `failed`, "
        "`cancelled` or `skipped`"
    )
    attempts: int = 0
    error: str | None = None
    model_usage: AgentUsage | None = Field(
        None, description="usage of the model calls of its worker; omitted if it made none"
    )


class ReportSummary(BaseModel, frozen=True, extra="ignore"):
    """What a report has; `GET /v1/reviews/{conversation_id}~{message_id}/report` returns it."""

    title: str
    language: str
    requirements: int
    compliant: int
    violations: int
    gaps: int
    bytes: int
