"""The flow `tools`: plan calls, run them in parallel, combine the results, write an answer, judge
it, and repeat.

If planning fails or nothing is found, a search answers instead. A further round that makes no new
call, or adds nothing to the sources, ends the loop with the best answer so far.
"""

from collections.abc import Sequence

from envelope.conversation import ClarificationReason as Reason
from manager.flow import Counter, Join, PauseFor, Return, Row, Scatter, StageEvent
from manager.flows import stages as at
from manager.flows.released import make_flow
from manager.flows.search_flow import SEARCHING
from manager.flows.shared_rows import (
    BEST,
    CLARIFYING,
    make_judgement,
    make_way_in,
    make_way_out,
)
from manager.state import BranchItem, PlannedCall, State

_LONGEST_TOOL, _LONGEST_TEXT = 60, 100
_JOIN = Join(seconds=60.0, at_once=64)
"""The setting `MAX_PARALLEL_TOOLS` can reduce `at_once`."""


def list_calls(state: State) -> Sequence[BranchItem]:
    """Return a branch for each planned call that has no result yet."""
    done = state.multi_tool_results
    return [_make_item(call) for call in state.tool_calls if call.call_id not in done]


def _make_item(call: PlannedCall) -> BranchItem:
    return BranchItem(call.call_id, {"tool_call": call.json}, label=_make_label(call))


def _make_label(call: PlannedCall) -> str:
    """Return a label that consists of the tool of a call and its string arguments."""
    values = [value for value in call.arguments.values() if isinstance(value, str)]
    texts = [" ".join(value[:_LONGEST_TEXT].split()) for value in values]
    named = call.tool[:_LONGEST_TOOL].replace("_", " ")
    text = ", ".join(filter(None, texts))[:_LONGEST_TEXT]
    return f"{named}: {text}" if text else named


_ACT = Scatter(at.ACT, at.RESULTS, list_calls, _JOIN)
_ACT_THEN_PLAN = Scatter(at.ACT, at.INTERIM_RESULTS, list_calls, _JOIN)
_ASK = PauseFor("approval", at.APPROVED_CALLS)
_RESULT = Return(("multi_tool_results", "tool_executions", "needs_input"))


# fmt: off
TOOL_LOOP: tuple[Row, ...] = (
    #   stage              event                       next stage        counter             at its limit       reason
    Row(at.REASON,         StageEvent.CALLS,           _ACT,             Counter.STEP,       at.REFLECT),
    Row(at.REASON,         StageEvent.CALLS_AND_PLANS, _ACT_THEN_PLAN,   Counter.STEP,       at.REFLECT),
    Row(at.REASON,         StageEvent.READY,           at.REFLECT),
    Row(at.REASON,         StageEvent.NOTHING_NEW,     at.CLARIFICATION, None,               None,              Reason.INSUFFICIENT_CONTEXT),
    Row(at.REASON,         StageEvent.ASKS,            at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
    Row(at.REASON,         StageEvent.OUTSIDE,         at.CLARIFICATION, None,               None,              Reason.OUT_OF_SCOPE),
    Row(at.REASON,         StageEvent.FAILED,          at.SEARCH,        is_fallback=True),
    Row(at.ACT,            StageEvent.DONE,            _RESULT),
    Row(at.ACT,            StageEvent.FAILED,          _RESULT),
    Row(at.RESULTS,        StageEvent.GATHERED,        at.REFLECT),
    Row(at.RESULTS,        StageEvent.MORE,            _ACT,             Counter.WAVE,       at.REFLECT),
    Row(at.RESULTS,        StageEvent.NEEDS_INPUT,     _ASK,             Counter.ROUND,      at.REFLECT),
    Row(at.RESULTS,        StageEvent.FAILED,          at.SEARCH,        is_fallback=True),
    Row(at.INTERIM_RESULTS, StageEvent.GATHERED,       at.REASON),
    Row(at.INTERIM_RESULTS, StageEvent.MORE,           _ACT_THEN_PLAN,   Counter.WAVE,       at.REFLECT),
    Row(at.INTERIM_RESULTS, StageEvent.NEEDS_INPUT,    _ASK,             Counter.ROUND,      at.REFLECT),
    Row(at.INTERIM_RESULTS, StageEvent.FAILED,         at.SEARCH,        is_fallback=True),
    Row(at.APPROVED_CALLS, StageEvent.REPLIED,         _ACT),
    Row(at.APPROVED_CALLS, StageEvent.DENIED,          at.REFLECT),
    Row(at.APPROVED_CALLS, StageEvent.FAILED,          BEST),
    Row(at.REFLECT,        StageEvent.FOUND,           at.WRITE),
    Row(at.REFLECT,        StageEvent.NOTHING_NEW,     at.CLARIFICATION, None,               None,              Reason.INSUFFICIENT_CONTEXT),
    Row(at.REFLECT,        StageEvent.ASKS,            at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
    Row(at.REFLECT,        StageEvent.NOTHING,         at.SEARCH,        is_fallback=True),
    Row(at.REFLECT,        StageEvent.FAILED,          at.SEARCH,        is_fallback=True),
    Row(at.WRITE,          StageEvent.DONE,            at.LOOP_JUDGE),
    Row(at.WRITE,          StageEvent.ASKS,            at.REASON,        Counter.ITERATION,  at.CLARIFICATION),
    Row(at.WRITE,          StageEvent.GENERATION_ERROR, at.WRITE,        Counter.NEXT_MODEL, BEST),
    Row(at.WRITE,          StageEvent.FAILED,          at.WRITE,         Counter.NEXT_MODEL, BEST),
    *make_judgement(at.LOOP_JUDGE, again=at.REASON, write=at.WRITE, rounds=Counter.ITERATION),
)
# fmt: on

TOOLS_FLOW = make_flow(
    "tools",
    (
        *make_way_in(at.REASON, rephrase=at.SEARCH),
        *TOOL_LOOP,
        *SEARCHING,
        *make_way_out(again=at.SEARCH, write=at.RESPONSE),
        *CLARIFYING,
    ),
)
