"""The flow `swarm`: plan, ask the user, work in rounds, write one answer, judge it. If nothing is found or no plan can be made, one search answers instead."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from manager.flow import (
    BranchItem,
    Counter,
    Join,
    PauseFor,
    Return,
    Row,
    Scatter,
    StageEvent,
    Writes,
)
from manager.flows import stages as at
from manager.flows.released import make_flow
from manager.flows.search_flow import SEARCHING
from manager.flows.shared_rows import CLARIFYING, make_judgement, make_way_in, make_way_out
from manager.flows.tool_loop import list_calls

_LONGEST_LABEL = 100
_LONGEST_FOUND = 1_500
_TOOL_SECONDS = 60.0
_WORK_SECONDS = 3600.0
"""A limit for jobs; in a question, workers have their share of the remaining time."""


def list_tasks(payload: Writes) -> Sequence[BranchItem]:
    """Return a branch for each task that the ledger begins, with its brief."""
    plan = _read_object(payload, "swarm_plan")
    workers = [one for one in _list(plan.get("workers")) if isinstance(one, dict)]
    by_id = {str(one.get("id")): one for one in workers}
    ids = [str(one) for one in _list(payload.get("ready_tasks"))]
    return [_make_item(by_id[one], payload, len(by_id)) for one in ids if one in by_id]


def list_worker_calls(payload: Writes) -> Sequence[BranchItem]:
    """Return a branch for each call of a worker, which may use the tools of its brief alone."""
    worker = _read_object(_read_object(payload, "worker_task"), "worker")
    caller: dict[str, JsonValue] = {"agent": worker.get("id"), "tools": worker.get("tools") or []}
    return [
        BranchItem(
            one.key, {**one.adds, "tool_caller": caller}, one.depends_on, one.priority, one.label
        )
        for one in list_calls(payload)
    ]


def _make_item(worker: Mapping[str, JsonValue], payload: Writes, workers: int) -> BranchItem:
    name = str(worker.get("id"))
    outputs = _read_object(payload, "worker_outputs")
    plan = _read_object(payload, "swarm_plan")
    before = [str(one) for one in _list(worker.get("depends_on"))]
    task: dict[str, JsonValue] = {
        "worker": dict(worker),
        "question": payload.get("canonical_question") or "",
        "criteria": plan.get("criteria") or [],
        "known": _read_object(payload, "collected_info"),
        "found": [_describe_found(outputs, one) for one in before],
        "workers": workers,
    }
    progress = _read_object(payload, "worker_progress").get(name)
    if progress is not None:
        task["progress"] = progress
    priority = worker.get("priority")
    label = str(worker.get("specialization") or worker.get("objective") or name)
    return BranchItem(
        name,
        {"worker_task": task},
        priority=priority if isinstance(priority, int) else 5,
        label=" ".join(label[:_LONGEST_LABEL].split()),
    )


def _describe_found(outputs: Mapping[str, JsonValue], name: str) -> str:
    """Return what a worker found, shortened, for those that depend on it."""
    output = _read_object(outputs, name)
    passages, items = output.get("passages"), output.get("items")
    quoted = [one.get("text") for one in _list(passages)[:3] if isinstance(one, dict)]
    parts = (output.get("text"), "; ".join(str(one) for one in _list(items)), *quoted)
    return " ".join(" ".join(str(one).split()) for one in parts if one)[:_LONGEST_FOUND]


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _read_object(payload: Mapping[str, JsonValue], name: str) -> dict[str, JsonValue]:
    found = payload.get(name)
    return dict(found) if isinstance(found, dict) else {}


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
_LOOK: tuple[Row, ...] = (
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
"""A waiting message passes the first stages, where a model decides what it is about."""

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
    *_LOOK,
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
