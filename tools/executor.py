"""Executes tool calls: checks the name, permission, arguments, approval, and budget, then runs the
tool.

Every call has a result. Unknown tools, invalid input, and tools that raise an exception, hang, or
return a wrong type lead to a result with an error type; only cancellation propagates. Results are
never interpreted as calls. A call with a side effect has a receipt, so that it is executed at most
once; see `tools.calls`.
"""

import asyncio
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Protocol

import structlog
from pydantic import BaseModel, JsonValue, ValidationError

from envelope.encoding import remove_hidden_characters
from knowledge.sections import count_tokens
from tools.calls import (
    CHANGES,
    LONGEST_NAME,
    MOST_RECEIPT_BYTES,
    EffectClass,
    ReceiptState,
    ToolCall,
    ToolCaller,
    ToolErrorType,
    ToolExecution,
    ToolReceipts,
    ToolResult,
    make_approval_id,
    make_receipt_key,
    request_approval,
)
from tools.catalog import ToolCatalog
from tools.errors import InvalidInput, OutcomeUnknown, ToolFailed, ToolRejected
from tools.tool import TIMEOUT_SECONDS, Tool

LONGEST_TEXT = 1_500
"""Maximum number of characters of a result for a model whose context window is unknown."""
LONGEST_STORED = 12_000
"""Maximum number of characters of a stored result, for models with a large context window."""
RETRY_COUNT = 2
MOST_DATA_BYTES = 32_000
MOST_ARGUMENT_BYTES = 64_000
MOST_QUOTED = 60
_SUMMARY_CHARACTERS = 200
_ERROR_CHARACTERS = 500
_MOST_PROBLEMS = 5
_CAUSE = "cause"
_STATUS = "status"
_FAULTS = {ToolErrorType.EXECUTION, ToolErrorType.TIMEOUT, ToolErrorType.UNKNOWN}
CRITICAL = frozenset(
    {
        "hierarchical_search", "similarity_search", "graph_search", "get_document_info",
        "bm25_search", "hybrid_search", "search",
    }
)  # fmt: skip
"""Tools whose failures are reported, because the answer may be incomplete without them."""

log = structlog.get_logger("tools")
AnyTool = Tool[Any, Any]
_FIRST_SHARE, _LAST_SHARE = 0.6, 0.35
_CITATION = re.compile(r"\[[^\[\]\s]{1,300}\]")
"""A chunk id in brackets, as built-in tools write it before each passage."""


class ToolBudget(Protocol):
    """Counts tool calls against a limit."""

    async def reserve(self, call: ToolCall) -> bool:
        """Reserve one call; return False if the limit is reached."""
        ...


class ToolExecutor:
    """Runs tool calls of an assistant.

    `repeats` is the number of retries of a failed tool, if its effect class allows them.
    `most_seconds` limits each attempt, in addition to the limit of the tool. There is no retry
    after a timeout. Tools with side effects run only if there are `receipts`. Errors of the
    receipts propagate, because a call that cannot be recorded must not run.
    """

    def __init__(
        self,
        catalog: ToolCatalog,
        *,
        receipts: ToolReceipts | None = None,
        repeats: int = RETRY_COUNT,
        most_seconds: float = TIMEOUT_SECONDS,
        longest_text: int = LONGEST_STORED,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._catalog = catalog
        self._receipts = receipts
        self._repeats = repeats
        self._most_seconds = most_seconds
        self._longest_text = longest_text
        self._clock = clock

    async def execute(
        self, call: ToolCall, caller: ToolCaller, budget: ToolBudget | None = None
    ) -> ToolResult:
        """Return the result of a call, even if the call is rejected."""
        return (await self.execute_recorded(call, caller, budget))[0]

    async def execute_recorded(
        self, call: ToolCall, caller: ToolCaller, budget: ToolBudget | None = None
    ) -> tuple[ToolResult, ToolExecution]:
        """Return the result of a call and its record."""
        started, timestamp = perf_counter(), self._clock().isoformat()
        result, attempts = await self._check_and_run(call, caller, budget)
        milliseconds = (perf_counter() - started) * 1000
        return result, self._note(call, caller, result, attempts, milliseconds, timestamp)

    async def _check_and_run(
        self, call: ToolCall, caller: ToolCaller, budget: ToolBudget | None
    ) -> tuple[ToolResult, int]:
        refused = await self._refuse(call, caller, budget)
        if isinstance(refused, ToolResult):
            return refused, 0
        tool, inputs = refused
        if tool.effect.may_repeat:
            return await self._run_repeatedly(tool, call, inputs, caller)
        return await self._run_noted(tool, call, inputs, caller)

    async def _refuse(
        self, call: ToolCall, caller: ToolCaller, budget: ToolBudget | None
    ) -> ToolResult | tuple[AnyTool, BaseModel]:
        """Return the tool and its input or, if the call is rejected, its result."""
        tool = self._catalog.find(call.tool)
        if tool is None or not _is_allowed(tool, caller):
            return self._report_unknown(call, caller)
        inputs = _read_inputs(tool, call)
        if isinstance(inputs, str):
            return _fail(call, ToolErrorType.VALIDATION, inputs)
        if tool.effect is EffectClass.DANGEROUS and not _is_approved(tool, call, caller):
            return self._ask_approval(tool, call)
        if budget is not None and not await budget.reserve(call):
            reason = "the budget of tool calls is used up: answer from the results so far"
            return _fail(call, ToolErrorType.BUDGET, reason)
        return tool, inputs

    def _ask_approval(self, tool: AnyTool, call: ToolCall) -> ToolResult:
        asked = request_approval(call, tool.name, most_cost_micros=tool.most_cost_micros)
        reason = f"the tool {tool.name!r} requires the approval of a person"
        failed = _fail(call, ToolErrorType.APPROVAL, reason)
        return failed.model_copy(update={"approval": asked})

    async def _run_noted(
        self, tool: AnyTool, call: ToolCall, inputs: BaseModel, caller: ToolCaller
    ) -> tuple[ToolResult, int]:
        """Run a call with a side effect, unless its receipt shows that it may have been executed
        before.
        """
        receipts = self._receipts
        if receipts is None:
            reason = (
                f"the tool {tool.name!r} has side effects, and no store is available to "
                "record the call, so it was not executed"
            )
            return _fail(call, ToolErrorType.EXECUTION, reason), 0
        key = make_receipt_key(call, tool.name)
        state, stored = await receipts.claim(key, was_approved=_is_approved(tool, call, caller))
        if state == ReceiptState.DONE:
            return ToolResult.model_validate_json(stored), 0
        if state == ReceiptState.FULL:
            reason = (
                "this conversation has reached the limit of calls with side effects; no "
                "further calls are executed"
            )
            return _fail(call, ToolErrorType.EXECUTION, reason), 0
        if state != ReceiptState.CLAIMED:
            log.warning("tool_outcome_unknown", tool=tool.name, agent=caller.agent)
            return _fail(call, ToolErrorType.UNKNOWN, _report_doubt(tool)), 0
        result, _ = await self._run_once(tool, call, inputs, caller)
        if result.error_type is ToolErrorType.UNKNOWN:
            await receipts.mark_unknown(key)
        else:
            await receipts.finish(key, _write_receipt(result))
        return result, 1

    async def _run_repeatedly(
        self, tool: AnyTool, call: ToolCall, inputs: BaseModel, caller: ToolCaller
    ) -> tuple[ToolResult, int]:
        most = 1 + (self._repeats if tool.effect.may_repeat else 0)
        for attempt in range(1, most + 1):
            result, may_repeat = await self._run_once(tool, call, inputs, caller)
            if result.success or not may_repeat or attempt == most:
                return result, attempt
        raise ValueError(f"expected at least 0 repeats, found {self._repeats}")

    async def _run_once(
        self, tool: AnyTool, call: ToolCall, inputs: BaseModel, caller: ToolCaller
    ) -> tuple[ToolResult, bool]:
        """Return the result of one attempt, and whether a retry may succeed."""
        seconds = min(tool.timeout_seconds, self._most_seconds)
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                output = await tool.run(inputs, caller)
            if not isinstance(output, tool.output):
                kind = type(output).__name__
                reason = f"expected {tool.output.__qualname__} as a result, found {kind}"
                return _fail(call, ToolErrorType.EXECUTION, reason), False
            return self._make_success(tool, call, output), False
        except TimeoutError as error:
            if not limit.expired():
                return _fail_running(tool, call, _describe(error)), True
            reason = f"the tool returned no result within {seconds:g} s"
            return _fail_running(tool, call, reason, ToolErrorType.TIMEOUT), False
        except InvalidInput as error:
            return _fail(call, ToolErrorType.VALIDATION, str(error)), False
        except OutcomeUnknown as error:
            return _name_cause(_fail_running(tool, call, str(error)), error), True
        except ToolFailed as error:
            may_repeat = not isinstance(error, ToolRejected)
            failed = _fail(call, ToolErrorType.EXECUTION, str(error))
            return _name_cause(failed, error), may_repeat
        except Exception as error:  # noqa: BLE001 - the fault of one tool is a result, and logged
            return _name_cause(_fail_running(tool, call, _describe(error)), error), True

    def _make_success(self, tool: AnyTool, call: ToolCall, output: BaseModel) -> ToolResult:
        text = remove_hidden_characters(tool.render(output))
        data = output.model_dump(mode="json")
        is_small = len(json.dumps(data)) <= MOST_DATA_BYTES
        citations = tuple(tool.cite(output))
        quoted = tuple(tool.quote(output))[:MOST_QUOTED]
        changes: dict[str, JsonValue] = {} if tool.effect.may_repeat else {CHANGES: True}
        return ToolResult(
            call_id=call.call_id,
            tool=tool.name,
            success=True,
            error_type=ToolErrorType.SUCCESS,
            text=shorten(text, self._longest_text),
            data=data if is_small else None,
            citations=citations,
            quoted=quoted,
            is_source=tool.is_source and bool(text.strip()),
            metadata={"characters": len(text), "citations": len(citations), **changes},
        )

    def _report_unknown(self, call: ToolCall, caller: ToolCaller) -> ToolResult:
        allowed = self._catalog.names(caller.allowed)
        nearest = self._catalog.find_nearest(call.tool, caller.allowed)
        name = call.tool[:LONGEST_NAME]
        log.warning("tool_unknown", tool=name, agent=caller.agent, nearest=nearest)
        meant = f"; did you mean {nearest!r}?" if nearest else ""
        reason = f"expected one of {', '.join(allowed) or 'no tools'}, found {name!r}{meant}"
        failed = _fail(call, ToolErrorType.HALLUCINATION, reason)
        return failed.model_copy(update={"tool": name, "nearest": nearest})

    def _note(
        self,
        call: ToolCall,
        caller: ToolCaller,
        result: ToolResult,
        attempts: int,
        milliseconds: float,
        timestamp: str,
    ) -> ToolExecution:
        execution = ToolExecution(
            call_id=call.call_id,
            tool_name=result.tool,
            agent_name=caller.agent,
            timestamp=timestamp,
            duration_ms=milliseconds,
            attempts=attempts,
            success=result.success,
            error_type=result.error_type,
            error=result.error,
            input_tokens=count_estimated_tokens(json.dumps(call.arguments)),
            output_tokens=count_estimated_tokens(result.text),
            result_summary=result.text[:_SUMMARY_CHARACTERS],
        )
        if result.error_type in _FAULTS:
            log.warning(
                "tool_failed",
                tool=result.tool,
                agent=caller.agent,
                error_type=result.error_type.value,
                # The error message is never logged, because it may contain user data or secrets.
                cause=result.metadata.get(_CAUSE),
                status=result.metadata.get(_STATUS),
                attempts=attempts,
            )
        return execution


def shorten(text: str, longest: int = LONGEST_TEXT) -> str:
    """Shorten a text to about `longest` characters: its first 60 %, a marker, and its last 35 %.

    The marker states the number of omitted characters. A citation that would be cut is omitted
    completely, so that no partial ID is quoted.
    """
    if len(text) <= longest:
        return text
    start = _move_before_citation(text, int(longest * _FIRST_SHARE))
    end = _move_after_citation(text, len(text) - int(longest * _LAST_SHARE))
    return f"{text[:start]}\n... [{end - start} characters left out] ...\n{text[end:]}"


def count_estimated_tokens(text: str) -> int:
    """Return the estimated number of tokens of a text."""
    return count_tokens(text)


def _is_allowed(tool: AnyTool, caller: ToolCaller) -> bool:
    if caller.allowed is None:
        return tool.effect is not EffectClass.DANGEROUS
    return tool.name in caller.allowed


def _is_approved(tool: AnyTool, call: ToolCall, caller: ToolCaller) -> bool:
    return make_approval_id(call, tool.name) in caller.approved


def _write_receipt(result: ToolResult) -> bytes:
    written = result.model_dump_json().encode()
    if len(written) <= MOST_RECEIPT_BYTES:
        return written
    return result.model_copy(update={"data": None, "citations": ()}).model_dump_json().encode()


def _read_inputs(tool: AnyTool, call: ToolCall) -> BaseModel | str:
    """Return the validated input, or an error message."""
    size = len(json.dumps(call.arguments))
    if size > MOST_ARGUMENT_BYTES:
        return f"expected arguments of at most {MOST_ARGUMENT_BYTES} bytes, found {size}"
    try:
        inputs: BaseModel = tool.read_inputs(call.arguments)
    except ValidationError as error:
        return _list_problems(error)
    except InvalidInput as error:
        return str(error)
    return inputs


def _list_problems(error: ValidationError) -> str:
    problems = [
        f"{'.'.join(str(part)[:80] for part in details['loc']) or 'arguments'}: {details['msg']}"
        for details in error.errors(include_url=False, include_input=False)[:_MOST_PROBLEMS]
    ]
    return "; ".join(problems)


def _fail_running(
    tool: AnyTool,
    call: ToolCall,
    reason: str,
    kind: ToolErrorType = ToolErrorType.EXECUTION,
) -> ToolResult:
    """Return the failure of a running tool; if the tool has side effects, its outcome is
    unknown.
    """
    if tool.effect.may_repeat:
        return _fail(call, kind, reason)
    return _fail(call, ToolErrorType.UNKNOWN, f"{reason}; {_report_doubt(tool)}")


def _report_doubt(tool: AnyTool) -> str:
    return (
        f"it is unknown whether {tool.name!r} changed anything, so the call is not repeated: say "
        f"so, and ask the person to check"
    )


def _name_cause(failed: ToolResult, error: Exception) -> ToolResult:
    """Return the result, with the error type and the status code of the server as metadata."""
    named: dict[str, JsonValue] = {_CAUSE: type(error).__name__}
    if isinstance(error, ToolFailed) and error.status is not None:
        named[_STATUS] = error.status
    return failed.model_copy(update={"metadata": named})


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _fail(call: ToolCall, kind: ToolErrorType, reason: str) -> ToolResult:
    shown = remove_hidden_characters(reason)[:_ERROR_CHARACTERS]
    data: JsonValue = None
    return ToolResult(
        call_id=call.call_id,
        tool=call.tool[:LONGEST_NAME],
        success=False,
        error_type=kind,
        text=f"error ({kind.value}): {shown}",
        data=data,
        error=shown,
    )


def _move_before_citation(text: str, position: int) -> int:
    span = _find_split_citation(text, position)
    return position if span is None else span[0]


def _move_after_citation(text: str, position: int) -> int:
    span = _find_split_citation(text, position)
    return position if span is None else span[1]


def _find_split_citation(text: str, position: int) -> tuple[int, int] | None:
    """Return the span of the citation that a cut at `position` would split, or None."""
    begin = text.rfind("[", max(0, position - 302), position)
    if begin < 0:
        return None
    citation = _CITATION.match(text, begin)
    return citation.span() if citation is not None and citation.end() > position else None
