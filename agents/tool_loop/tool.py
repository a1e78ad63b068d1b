"""Runs a tool call in its branch, or asks for the approval that it requires."""

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Self

from pydantic import BaseModel, JsonValue

from agents.agent import Agent, AgentParts, ProgressStep, ReadsLanguage
from citations.links import allow, keep_links, plain_line
from envelope.conversation import PauseQuestion
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from envelope.run import Run
from envelope.specialists import SpecialistProfile
from envelope.texts import Texts
from tools.calls import (
    ApprovalRequest,
    PassageText,
    ToolCall,
    ToolCaller,
    ToolErrorType,
    ToolExecution,
    ToolReceipts,
    ToolResult,
)
from tools.catalog import ToolCatalog
from tools.executor import ToolBudget, ToolExecutor
from tools.tool import TIMEOUT_SECONDS

_MARKS = frozenset("`<>[]@/:")
_INVISIBLE = range(0xE0000, 0xE1000)
"""Tags and variation selectors, which Unicode classifies as printable but replies do not show."""
_LEVELS = (frozenset("`"), _MARKS, _MARKS | frozenset(". "))
"""Characters that are escaped, from the most readable form to the safest."""
MOST_QUOTED_CHARACTERS = 12_000
"""Maximum number of characters of quoted passages in a result; further passages are omitted."""
_ARGUMENT_CHARACTERS = 300
_SHOWN_ARGUMENTS = 800
_PLANNER = "reason"
"""The caller of a call that does not name one: the tool loop."""


class Reads(ReadsLanguage, BaseModel, frozen=True):
    """The call, and the person for whom it is made, with their approvals."""

    tool_call: dict[str, JsonValue]
    groups: tuple[str, ...] = ()
    approvals: dict[str, bool] = {}
    tool_caller: dict[str, JsonValue] = {}


class Writes(BaseModel, frozen=True):
    """The result of the call by call id, with its record, or the approval that it requires."""

    multi_tool_results: dict[str, JsonValue] = {}
    tool_executions: tuple[dict[str, JsonValue], ...] = ()
    needs_input: tuple[PauseQuestion, ...] = ()


class ToolAgent(Agent[Reads, Writes]):
    """Runs a tool call. Every call has a result, including a failure of the tool or a denied
    approval.

    For a dangerous tool, the user is asked once, and the approval applies to this tool and these
    arguments. A specialist's call runs only if its profile allows the tool; other tools are treated
    as nonexistent.
    """

    role = Role.TOOL
    step = ProgressStep.SEARCH
    needs_index = True
    reads = Reads
    writes = Writes

    def __init__(
        self,
        *,
        catalog: ToolCatalog,
        texts: Texts,
        open_receipts: Callable[[Run], ToolReceipts] | None = None,
        open_budget: Callable[[Run], ToolBudget] | None = None,
        most_seconds: float = TIMEOUT_SECONDS,
        profiles: Mapping[str, SpecialistProfile] = MappingProxyType({}),
    ) -> None:
        self._open_receipts = open_receipts
        self._open_budget = open_budget
        self._most_seconds = most_seconds
        self._profiles = profiles
        self._catalog = catalog
        self._allowed = catalog.list_callable()
        self._texts = texts

    @classmethod
    def make(cls, parts: AgentParts) -> Self:
        return cls(
            catalog=parts.tools,
            texts=parts.texts,
            open_receipts=parts.open_receipts,
            open_budget=parts.open_budget,
            most_seconds=parts.settings.tool_timeout_seconds,
            profiles=parts.settings.specialists,
        )

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        asked_call = {
            name: argument for name, argument in reads.tool_call.items() if name != "agent"
        }
        call = ToolCall.model_validate(asked_call)
        agent, allowed = self._find_caller(reads)
        caller = ToolCaller(
            agent=agent,
            allowed=allowed,
            groups=reads.groups,
            language=reads.language,
            approved=frozenset(name for name, given in reads.approvals.items() if given),
            run=self.run,
        )
        budget = None if self._open_budget is None else self._open_budget(self.run)
        executor = self._make_executor(agent)
        result, execution = await executor.execute_recorded(call, caller, budget)
        asked = result.approval
        if asked is not None and asked.approval_id not in reads.approvals:
            question = self._make_question(asked, reads.reply_language)
            if question is not None:
                return Wrote(Writes(needs_input=(question,)))
            result = _refuse_long_arguments(result)
        return Wrote(
            Writes(
                multi_tool_results={call.call_id: self._carry(result).model_dump(mode="json")},
                tool_executions=(_describe(execution, call),),
            )
        )

    def _make_executor(self, agent: str) -> ToolExecutor:
        """Return the executor for this run, with the limits of a specialist if a specialist makes
        the call.
        """
        receipts = None if self._open_receipts is None else self._open_receipts(self.run)
        profile = self._profiles.get(agent)
        if profile is None:
            return ToolExecutor(self._catalog, receipts=receipts, most_seconds=self._most_seconds)
        return ToolExecutor(
            self._catalog,
            receipts=receipts,
            repeats=profile.retry_count,
            most_seconds=min(self._most_seconds, profile.timeout_seconds),
        )

    def _find_caller(self, reads: Reads) -> tuple[str, frozenset[str]]:
        """Return the name of the caller, and the tools that it may use.

        The planner of the tool loop may use all tools, a specialist may use those in its profile,
        and a caller without a profile may not use any.
        """
        named = reads.tool_caller.get("tools")
        if isinstance(named, list):
            worker = str(reads.tool_caller.get("agent"))
            return worker, self._allowed & {str(name) for name in named}
        agent = str(reads.tool_call.get("agent") or _PLANNER)
        if agent == _PLANNER:
            return agent, self._allowed
        profile = self._profiles.get(agent)
        return agent, frozenset() if profile is None else frozenset(profile.tools)

    def _make_question(self, asked: ApprovalRequest, language: str) -> PauseQuestion | None:
        """Return the question that shows the call exactly as it will run, or None if it is too long
        to be shown.
        """
        arguments = write_exactly(asked.arguments, _SHOWN_ARGUMENTS)
        if arguments is None:
            return None
        arguments = f"`{arguments}`"
        if asked.most_cost_micros is not None:
            arguments += f" (≤ {asked.most_cost_micros / 1_000_000:g} USD)"
        text = self._texts.text("approve_call", language, tool=asked.tool, arguments=arguments)
        return PauseQuestion(id=asked.approval_id, text=text)

    def _carry(self, result: ToolResult) -> ToolResult:
        """Return the part of a result that the next steps read: text, citations, and quotations."""
        quoted: list[PassageText] = []
        room = MOST_QUOTED_CHARACTERS
        for passage_text in result.quoted:
            room -= len(passage_text.text)
            if room < 0 and quoted:
                break
            quoted.append(passage_text)
        return result.model_copy(update={"data": None, "quoted": tuple(quoted), "approval": None})


def write_exactly(value: JsonValue, longest: int) -> str | None:
    """Return a value as JSON that replies show unchanged, or None if it is longer than
    `longest`.
    """
    text = json.dumps(value, ensure_ascii=False)
    for escaped in _LEVELS:
        shown = "".join(_escape(text, escaped))
        if len(shown) <= longest and is_shown_unchanged(f"`{shown}`"):
            return shown
    return None


def is_shown_unchanged(text: str) -> bool:
    """Return whether a reply shows the text unchanged."""
    return plain_line(text) == text and keep_links(text, allow(())).text == text


def _escape(text: str, escaped: frozenset[str]) -> Iterator[str]:
    r"""Yield the characters of a JSON text, with those in strings that must be escaped as
    `\uXXXX`.
    """
    in_string = after_backslash = False
    for sign in text:
        if sign == '"' and not after_backslash:
            in_string = not in_string
        after_backslash = in_string and sign == "\\" and not after_backslash
        yield _write_sign(sign, escaped) if in_string else sign


def _write_sign(sign: str, escaped: frozenset[str]) -> str:
    if not sign.isprintable() or ord(sign) in _INVISIBLE:
        return json.dumps(sign)[1:-1]
    return f"\\u{ord(sign):04x}" if sign in escaped else sign


def _refuse_long_arguments(asking: ToolResult) -> ToolResult:
    reason = (
        f"the arguments are longer than {_SHOWN_ARGUMENTS} characters as JSON, so a person "
        "cannot read and approve them; the call was not executed"
    )
    kind = ToolErrorType.VALIDATION
    return asking.model_copy(
        update={"error_type": kind, "text": f"error ({kind.value}): {reason}", "error": reason}
    )


def _describe(execution: ToolExecution, call: ToolCall) -> dict[str, JsonValue]:
    record = execution.model_dump(mode="json", exclude_none=True)
    return {**record, "arguments": _shorten_arguments(call)}


def _shorten_arguments(call: ToolCall) -> JsonValue:
    if not isinstance(call.arguments, dict):
        return str(call.arguments)[:_ARGUMENT_CHARACTERS]
    return {
        name: value[:_ARGUMENT_CHARACTERS] if isinstance(value, str) else value
        for name, value in call.arguments.items()
        if isinstance(value, str | int | float | bool)
    }
