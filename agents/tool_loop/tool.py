"""Runs one call of a tool in its branch."""

from typing import Protocol, Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from tools.budget import ToolBudget
from tools.calls import QuotedPassage, ToolCall, ToolCaller, ToolResult
from tools.executor import ToolExecutor

MOST_QUOTED_CHARACTERS = 12_000
"""The characters of quoted passages that one result carries; further passages are left out."""
_ARGUMENT_CHARACTERS = 300


class ToolSettings(Protocol):
    """The settings that the agent needs."""

    @property
    def tool_timeout_seconds(self) -> float: ...


class Reads(BaseModel, frozen=True):
    """The call, and the person for whom it is made."""

    tool_call: dict[str, JsonValue]
    language: str = "en"
    groups: tuple[str, ...] = ()


class Writes(BaseModel, frozen=True):
    """The result of the call by its id, and the record of it."""

    multi_tool_results: dict[str, JsonValue]
    tool_executions: tuple[dict[str, JsonValue], ...]


class ToolAgent(Agent[Reads, Writes]):
    """Every call has a result: a failure of the tool is one, too."""

    role = Role.TOOL
    reads = Reads
    writes = Writes

    def __init__(self, *, executor: ToolExecutor, budget: ToolBudget | None = None) -> None:
        self._executor = executor
        self._budget = budget

    @classmethod
    def make(cls, parts: AgentParts[ToolSettings]) -> Self:
        seconds = parts.settings.tool_timeout_seconds
        executor = ToolExecutor(parts.tools, most_seconds=seconds)
        return cls(executor=executor, budget=parts.tool_budget)

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        call = ToolCall.model_validate(reads.tool_call)
        caller = ToolCaller(agent="reason", groups=reads.groups, language=reads.language)
        result, execution = await self._executor.execute_recorded(call, caller, self._budget)
        record = execution.model_dump(mode="json", exclude_none=True)
        return Wrote(
            Writes(
                multi_tool_results={call.call_id: _carry(result).model_dump(mode="json")},
                tool_executions=({**record, "arguments": _shorten_arguments(call)},),
            )
        )


def _carry(result: ToolResult) -> ToolResult:
    """Return the part of a result that the next steps read: text, citations, quoted passages."""
    quoted: list[QuotedPassage] = []
    room = MOST_QUOTED_CHARACTERS
    for one in result.quoted:
        room -= len(one.text)
        if room < 0 and quoted:
            break
        quoted.append(one)
    return result.model_copy(update={"data": None, "quoted": tuple(quoted)})


def _shorten_arguments(call: ToolCall) -> JsonValue:
    if not isinstance(call.arguments, dict):
        return str(call.arguments)[:_ARGUMENT_CHARACTERS]
    return {
        name: value[:_ARGUMENT_CHARACTERS] if isinstance(value, str) else value
        for name, value in call.arguments.items()
        if isinstance(value, str | int | float | bool)
    }
