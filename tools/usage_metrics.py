"""Counts calls of tools, in all and for each tool."""

from pydantic import BaseModel, Field

from tools.calls import ToolErrorType, ToolExecution

OTHER = "other"
"""Under this name calls of tools that do not exist are counted: models invent any name."""


class ToolStats(BaseModel):
    """The counts of one tool."""

    calls: int = 0
    successes: int = 0
    failures: int = 0
    timeouts: int = 0
    total_ms: float = 0.0


class ToolUsageMetrics(BaseModel):
    """The counts of all tools; a call that was not made counts as failed."""

    total_calls: int = 0
    successful_calls: int = 0
    failed_calls: int = 0
    hallucinated_calls: int = 0
    validation_errors: int = 0
    tool_stats: dict[str, ToolStats] = Field(default_factory=dict)

    def hallucination_rate(self) -> float:
        """Return the share of calls that named no existing tool; 0.0 without calls."""
        return self.hallucinated_calls / self.total_calls if self.total_calls else 0.0

    def add(self, execution: ToolExecution) -> None:
        """Count one call."""
        self.total_calls += 1
        self.successful_calls += execution.success
        self.failed_calls += not execution.success
        is_invented = execution.error_type is ToolErrorType.HALLUCINATION
        self.hallucinated_calls += is_invented
        self.validation_errors += execution.error_type is ToolErrorType.VALIDATION
        name = OTHER if is_invented else execution.tool_name
        stats = self.tool_stats.setdefault(name, ToolStats())
        stats.calls += 1
        stats.successes += execution.success
        stats.failures += not execution.success
        stats.timeouts += execution.error_type is ToolErrorType.TIMEOUT
        stats.total_ms += execution.duration_ms
