"""A small flow that pauses: tools ask the user for a value or an approval, and then go on."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, JsonValue

from agents.agent import Agent
from envelope.conversation import ClarificationReason as Reason
from envelope.conversation import InputField, PauseQuestion
from envelope.outcome import Wrote
from envelope.role import Role
from manager.classify import classify_done
from manager.flow import (
    Counter,
    Flow,
    PauseFor,
    Return,
    Row,
    Scatter,
    Stage,
    StageEvent,
    make_gather_stage,
    make_resume_stage,
)
from manager.flows import stages as at
from manager.flows.shared_rows import BEST, CLARIFYING, make_way_in, make_way_out
from manager.state import BranchItem, State

E = StageEvent
CALL = Stage("call", Role.TOOL, frozenset({E.DONE, E.FAILED}), classify_done)
ACT = make_gather_stage("act", may_ask=True)
RESUME = make_resume_stage("resume")
KEYS = ("free", "period", "amount")
PERIOD = InputField(name="period", type="choice", choices=("2024", "2025"))
AMOUNT = InputField(name="amount", type="number")


def plan_missing_calls(state: State) -> Sequence[BranchItem]:
    """Return the calls that have no result so far, with the values that the user gave."""
    done, given = state.multi_tool_results, state.user_inputs
    return [
        BranchItem(key, {"tool_call": {"key": key, "given": given.get(key)}})
        for key in KEYS
        if key not in done
    ]


def make_flow(kind: Literal["information", "approval"], name: str = "pausing") -> Flow:
    """Return the flow; all calls of one wave ask in one pause."""
    calls = Scatter(CALL, ACT, plan_missing_calls)
    way_in = [
        Row(row.after, row.did, calls) if (row.after, row.did) == (at.GUARDRAILS, E.WITHIN) else row
        for row in make_way_in(at.RESPONSE, rephrase=at.RESPONSE)
    ]
    return Flow(
        name,
        1,
        (
            *way_in,
            Row(CALL, E.DONE, Return(("multi_tool_results", "needs_input"))),
            Row(CALL, E.FAILED, Return()),
            Row(ACT, E.GATHERED, at.RESPONSE),
            Row(ACT, E.MORE, calls, Counter.WAVE, at.RESPONSE),
            Row(ACT, E.NEEDS_INPUT, PauseFor(kind, RESUME), Counter.ROUND, at.RESPONSE),
            Row(ACT, E.FAILED, BEST),
            Row(RESUME, E.REPLIED, calls),
            Row(RESUME, E.DENIED, at.RESPONSE),
            Row(RESUME, E.FAILED, BEST),
            Row(at.RESPONSE, E.DONE, at.QUALITY),
            Row(at.RESPONSE, E.GENERATION_ERROR, at.RESPONSE, Counter.NEXT_MODEL, BEST),
            Row(at.RESPONSE, E.RESEARCH, at.CLARIFICATION, None, None, Reason.INSUFFICIENT_CONTEXT),
            Row(at.RESPONSE, E.ASKS, at.CLARIFICATION, Counter.ROUND, at.CLARIFICATION),
            Row(at.RESPONSE, E.FAILED, at.RESPONSE, Counter.NEXT_MODEL, BEST),
            *make_way_out(again=at.RESPONSE, write=at.RESPONSE),
            *CLARIFYING,
        ),
    )


PAUSING_FLOW = make_flow("approval")


class AskingReads(BaseModel):
    """What the tool reads."""

    tool_call: dict[str, JsonValue]
    approvals: dict[str, bool] = {}


class AskingWrites(BaseModel):
    """What the tool writes: its result, or what it needs."""

    multi_tool_results: dict[str, JsonValue] = {}
    needs_input: tuple[PauseQuestion, ...] = ()


class AskingTool(Agent[AskingReads, AskingWrites]):
    """Needs a value for `period` and `amount`, or an approval of them; `free` needs nothing."""

    role = Role.TOOL
    reads = AskingReads
    writes = AskingWrites

    def __init__(self, kind: str, *, ballast: int = 0) -> None:
        self._kind = kind
        self._ballast = ballast
        self.ran: list[str] = []

    async def work(self, reads: AskingReads) -> Any:
        key = str(reads.tool_call["key"])
        self.ran.append(key)
        field = {"period": PERIOD, "amount": AMOUNT}.get(key)
        if field is None:
            return Wrote(AskingWrites(multi_tool_results={key: "x" * self._ballast or "free"}))
        is_value = self._kind == "information"
        known = reads.tool_call["given"] if is_value else reads.approvals.get(key)
        if known is not None:
            return Wrote(AskingWrites(multi_tool_results={key: known}))
        asked = PauseQuestion(
            id=key, text=f"Which {key}?", field=field if self._kind == "information" else None
        )
        return Wrote(AskingWrites(needs_input=(asked,)))
