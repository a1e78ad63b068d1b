"""A small flow with branches: the text says how many, and a role `tool` works on each."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import BaseModel, JsonValue

from agents.agent import Agent
from envelope.conversation import ClarificationReason as Reason
from envelope.outcome import Wrote
from envelope.role import Role
from manager.classify import classify_done
from manager.flow import (
    Counter,
    Flow,
    Join,
    Return,
    Row,
    Scatter,
    Stage,
    StageEvent,
    make_gather_stage,
)
from manager.flows import stages as at
from manager.flows.shared_rows import BEST, CLARIFYING, make_way_in, make_way_out
from manager.state import BranchItem, State

E = StageEvent
_EITHER = frozenset({E.DONE, E.FAILED})
CALL = Stage("call", Role.TOOL, _EITHER, classify_done)
ACT = make_gather_stage("act")
BRANCHES = 3
"""Calls of a question, the last of which depends on the first."""


def plan_calls(state: State) -> Sequence[BranchItem]:
    """Return the calls that the text asks for: `... calls=5`, else `BRANCHES`."""
    words = state.text.split()
    wanted = next((int(w.partition("=")[2]) for w in words if w.startswith("calls=")), BRANCHES)
    return [
        BranchItem(
            f"call_{number}",
            {"tool_call": _describe(number, words)},
            depends_on=("call_1",) if number == wanted > 1 else (),
        )
        for number in range(1, wanted + 1)
    ]


def _describe(number: int, words: Sequence[str]) -> dict[str, JsonValue]:
    return {"key": f"call_{number}", "number": number, "what": words[0] if words else ""}


ALL = Join()


def make_flow(join: Join = ALL, name: str = "branching") -> Flow:
    """Return the flow; calls follow on the scope, and the answer on their results."""
    calls = Scatter(CALL, ACT, plan_calls, join)
    return Flow(
        name,
        1,
        (
            *_with_scatter(calls),
            Row(CALL, E.DONE, Return(("multi_tool_results",))),
            Row(CALL, E.FAILED, Return()),
            Row(ACT, E.GATHERED, at.RESPONSE),
            Row(ACT, E.MORE, calls, Counter.WAVE, at.RESPONSE),
            Row(ACT, E.FAILED, BEST),
            Row(at.RESPONSE, E.DONE, at.QUALITY),
            Row(at.RESPONSE, E.GENERATION_ERROR, at.RESPONSE, Counter.NEXT_MODEL, BEST),
            Row(at.RESPONSE, E.RESEARCH, at.CLARIFICATION, None, None, Reason.INSUFFICIENT_CONTEXT),
            Row(at.RESPONSE, E.ASKS, at.CLARIFICATION, Counter.ROUND, at.CLARIFICATION),
            Row(at.RESPONSE, E.FAILED, at.RESPONSE, Counter.NEXT_MODEL, BEST),
            *make_way_out(again=at.RESPONSE, write=at.RESPONSE),
            *CLARIFYING,
        ),
    )


def _with_scatter(calls: Scatter) -> Sequence[Row]:
    """Return the way in, where a question within the scope scatters."""
    rows = make_way_in(at.RESPONSE, rephrase=at.RESPONSE)
    return [
        Row(row.after, row.did, calls) if (row.after, row.did) == (at.GUARDRAILS, E.WITHIN) else row
        for row in rows
    ]


BRANCHING_FLOW = make_flow()


class ToolCall(BaseModel):
    """One call of the plan; `what` is the first word of the question."""

    key: str
    number: int
    what: str = ""


class ToolReads(BaseModel):
    """What a tool reads."""

    tool_call: ToolCall


class ToolWrites(BaseModel):
    """What a tool writes."""

    multi_tool_results: dict[str, int]


class ToolAgent(Agent[ToolReads, ToolWrites]):
    """Returns the number of its call, after `act` has done what it does."""

    role = Role.TOOL
    reads = ToolReads
    writes = ToolWrites

    def __init__(self, act: Callable[[ToolCall], Awaitable[Any]] | None = None) -> None:
        self._act = act
        self.ran: list[str] = []

    async def work(self, reads: ToolReads) -> Any:
        call = reads.tool_call
        self.ran.append(call.key)
        acted = await self._act(call) if self._act is not None else None
        if acted is not None:
            return acted
        return Wrote(ToolWrites(multi_tool_results={call.key: call.number}))
