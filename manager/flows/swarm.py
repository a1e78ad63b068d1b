"""The flow `swarm`: plan, ask the user, run workers in rounds, write a combined answer, and judge
it.

If planning fails or nothing is found, a search answers instead. A further round that adds nothing
to the results ends the question with the best answer so far.
"""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import JsonValue

from envelope.conversation import ClarificationReason as Reason
from manager.flow import Counter, Join, PauseFor, Return, Row, Scatter, StageEvent
from manager.flows import stages as at
from manager.flows.released import make_flow
from manager.flows.search_flow import SEARCHING
from manager.flows.shared_rows import CLARIFYING, make_judgement, make_way_in, make_way_out
from manager.flows.tool_loop import list_calls
from manager.state import BranchItem, PlannedWorkerView, State, SwarmPlanView, WorkerOutputView

_LONGEST_LABEL = 100
_LONGEST_OUTPUT = 1_500
_TOOL_SECONDS = 60.0
_WORK_SECONDS = 3600.0
"""This only limits background jobs; in a question, workers get a share of the remaining time."""


def list_tasks(state: State) -> Sequence[BranchItem]:
    """Return a branch for each task that the ledger starts, with its brief."""
    plan = state.swarm_plan
    if plan is None:
        return []
    workers = {worker.id: worker for worker in plan.workers}
    ready = [workers[name] for name in state.ready_tasks if name in workers]
    return [_make_item(worker, plan, state, len(workers)) for worker in ready]


def list_worker_calls(state: State) -> Sequence[BranchItem]:
    """Return a branch for each tool call of a worker, restricted to the tools of its brief."""
    task = state.worker_task
    worker = None if task is None else task.worker
    caller: dict[str, JsonValue] = {"agent": None, "tools": []}
    if worker is not None:
        caller = {"agent": worker.id, "tools": worker.tools}
    return [replace(call, adds={**call.adds, "tool_caller": caller}) for call in list_calls(state)]


def _make_item(
    worker: PlannedWorkerView, plan: SwarmPlanView, state: State, workers: int
) -> BranchItem:
    outputs, progress = state.worker_outputs, state.worker_progress.get(worker.id)
    task: dict[str, JsonValue] = {
        "worker": worker.json,
        "question": state.canonical_question,
        "criteria": plan.criteria,
        "known": state.collected_info,
        "found": [_describe_output(outputs.get(name)) for name in worker.depends_on],
        "workers": workers,
    }
    if progress is not None:
        task["progress"] = progress
    label = worker.specialization or worker.objective or worker.id
    return BranchItem(
        worker.id,
        {"worker_task": task},
        priority=worker.priority,
        label=" ".join(label[:_LONGEST_LABEL].split()),
    )


def _describe_output(output: WorkerOutputView | None) -> str:
    """Return a short text with the results of a worker, for the workers that depend on it."""
    if output is None:
        return ""
    quoted = [passage.text for passage in output.passages[:3]]
    parts = (output.text, *quoted)
    return " ".join(" ".join(part.split()) for part in parts if part)[:_LONGEST_OUTPUT]


_JOIN = Join(seconds=_WORK_SECONDS, at_once=64)
_CALL = Scatter(
    at.WORKER_ACT, at.WORKER_RESULTS, list_worker_calls, Join(seconds=_TOOL_SECONDS, at_once=64)
)
_APPROVE = PauseFor("approval", at.APPROVED_PLAN)
_ASK_FACTS = PauseFor("information", at.GIVEN_FACTS)
_ASK_FOR_WORK = PauseFor("information", at.RESUMED_WORK)
_APPROVE_WORK = PauseFor("approval", at.RESUMED_WORK)
_FOUND = Return(("worker_outputs", "worker_progress", "needs_input", "tool_executions"))
_RESULT = Return(("multi_tool_results", "tool_executions", "needs_input"))
_SAME_TOPIC = Return(is_good=False)


_WORK = Scatter(at.WORK, at.WORKED, list_tasks, _JOIN, watch=at.SHOWN)

# fmt: off
_WATCH: tuple[Row, ...] = (
    #   stage                event                       next stage
    Row(at.SHOWN,             StageEvent.DONE,            at.SHOWN_LANG),
    Row(at.SHOWN,             StageEvent.FAILED,          _SAME_TOPIC),
    Row(at.SHOWN_LANG,        StageEvent.DONE,            at.SHOWN_TRANSLATION),
    Row(at.SHOWN_LANG,        StageEvent.ASKS,            _SAME_TOPIC),
    Row(at.SHOWN_LANG,        StageEvent.FAILED,          _SAME_TOPIC),
    Row(at.SHOWN_TRANSLATION, StageEvent.DONE,            at.SHOWN_ESSENCE),
    Row(at.SHOWN_TRANSLATION, StageEvent.ASKS,            _SAME_TOPIC),
    Row(at.SHOWN_TRANSLATION, StageEvent.FAILED,          _SAME_TOPIC),
    Row(at.SHOWN_ESSENCE,     StageEvent.OTHER_TOPIC,     Return()),
    Row(at.SHOWN_ESSENCE,     StageEvent.DONE,            _SAME_TOPIC),
    Row(at.SHOWN_ESSENCE,     StageEvent.FAILED,          _SAME_TOPIC),
)
# fmt: on
"""A waiting message passes through the first stages, in which a model determines its topic."""

# fmt: off
SWARM: tuple[Row, ...] = (
    #   stage              event                       next stage        counter             at its limit       reason
    Row(at.PLAN,           StageEvent.DONE,            at.GATHER),
    Row(at.PLAN,           StageEvent.NEEDS_APPROVAL,  _APPROVE,         Counter.ROUND,      at.SYNTHESIZE),
    Row(at.PLAN,           StageEvent.SEARCHES,        at.SEARCH),
    Row(at.PLAN,           StageEvent.FAILED,          at.SEARCH,        is_fallback=True),
    Row(at.APPROVED_PLAN,  StageEvent.REPLIED,         at.GATHER),
    Row(at.APPROVED_PLAN,  StageEvent.DENIED,          at.SYNTHESIZE),
    Row(at.APPROVED_PLAN,  StageEvent.FAILED,          at.SYNTHESIZE),
    Row(at.GATHER,         StageEvent.DONE,            at.LEDGER),
    Row(at.GATHER,         StageEvent.NEEDS_INPUT,     _ASK_FACTS,       Counter.ROUND,      at.LEDGER),
    Row(at.GATHER,         StageEvent.FAILED,          at.LEDGER),
    Row(at.GIVEN_FACTS,    StageEvent.REPLIED,         at.GATHER,        Counter.STEP,       at.LEDGER),
    Row(at.GIVEN_FACTS,    StageEvent.DENIED,          at.LEDGER),
    Row(at.GIVEN_FACTS,    StageEvent.FAILED,          at.LEDGER),
    Row(at.LEDGER,         StageEvent.DONE,            at.SYNTHESIZE),
    Row(at.LEDGER,         StageEvent.BEGINS,          _WORK,            Counter.WAVE,       at.SYNTHESIZE),
    Row(at.LEDGER,         StageEvent.NEEDS_INPUT,     _ASK_FOR_WORK,    Counter.ROUND,      at.SYNTHESIZE),
    Row(at.LEDGER,         StageEvent.NEEDS_APPROVAL,  _APPROVE_WORK,    Counter.ROUND,      at.SYNTHESIZE),
    Row(at.LEDGER,         StageEvent.AGAIN,           at.PLAN,          Counter.RESEARCH,   at.SYNTHESIZE),
    Row(at.LEDGER,         StageEvent.NOTHING_NEW,     at.CLARIFICATION, None,               None,              Reason.INSUFFICIENT_CONTEXT),
    Row(at.LEDGER,         StageEvent.FAILED,          at.SYNTHESIZE),
    Row(at.RESUMED_WORK,   StageEvent.REPLIED,         at.LEDGER,        Counter.STEP,       at.SYNTHESIZE),
    Row(at.RESUMED_WORK,   StageEvent.DENIED,          at.SYNTHESIZE),
    Row(at.RESUMED_WORK,   StageEvent.FAILED,          at.SYNTHESIZE),
    Row(at.WORK,           StageEvent.CALLS,           _CALL,            Counter.STEP,       _FOUND),
    Row(at.WORK,           StageEvent.DONE,            _FOUND),
    Row(at.WORK,           StageEvent.FAILED,          at.WORK,          Counter.RETRY,      _FOUND),
    Row(at.WORKER_ACT,     StageEvent.DONE,            _RESULT),
    Row(at.WORKER_ACT,     StageEvent.FAILED,          _RESULT),
    Row(at.WORKER_RESULTS, StageEvent.GATHERED,        at.WORK),
    Row(at.WORKER_RESULTS, StageEvent.MORE,            _CALL,            Counter.WAVE,       _FOUND),
    Row(at.WORKER_RESULTS, StageEvent.NEEDS_INPUT,     at.WORK),
    Row(at.WORKER_RESULTS, StageEvent.FAILED,          at.WORK),
    Row(at.WORKED,         StageEvent.GATHERED,        at.LEDGER),
    Row(at.WORKED,         StageEvent.MORE,            at.LEDGER),
    Row(at.WORKED,         StageEvent.FAILED,          at.LEDGER),
    Row(at.SYNTHESIZE,     StageEvent.DONE,            at.JUDGE),
    Row(at.SYNTHESIZE,     StageEvent.NOTHING,         at.SEARCH,        is_fallback=True),
    Row(at.SYNTHESIZE,     StageEvent.FAILED,          at.SEARCH,        is_fallback=True),
    *make_judgement(at.JUDGE, again=at.PLAN, write=at.SYNTHESIZE),
    *_WATCH,
)
# fmt: on

SWARM_FLOW = make_flow(
    "swarm",
    (
        *make_way_in(at.PLAN, rephrase=at.SEARCH),
        *SWARM,
        *SEARCHING,
        *make_way_out(again=at.SEARCH, write=at.RESPONSE),
        *CLARIFYING,
    ),
)
