"""The parts of a reply that describe the way of answering, and the open parts of the question.

The way includes triage, tool calls, tasks, and a fallback. Open parts are the parts of a swarm
question without a result, and further questions in the same message that have not been answered
yet.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pydantic import JsonValue

from citations.links import plain_line
from envelope.conversation import ClarificationReason, Pause
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.swarm import (
    CANCELLED,
    COMPLETED,
    NOTES,
    PENDING,
    SHOWN_PART,
    TOPIC_CHANGE,
    cancel_open,
)
from envelope.texts import Texts
from envelope.tool_loop import WayName
from llm.errors import explain_failed_lookup
from manager.state import Json, State, TaskView, ToolExecutionView

Reply = dict[str, JsonValue]
_MOST_CALLS = 100
_MOST_ROUNDS = 20
_MOST_TASKS = 256
_MOST_PARTS, _LONGEST_PART = 8, 120
_LONGEST_TITLE, _LONGEST_TASK = 100, 200
_TASK_FIELDS = (TaskView.task_id, TaskView.title, TaskView.attempts, TaskView.error)
_CALL_FIELDS = (
    ToolExecutionView.tool_name,
    ToolExecutionView.arguments,
    ToolExecutionView.success,
    ToolExecutionView.error_type,
    ToolExecutionView.error,
    ToolExecutionView.duration_ms,
    ToolExecutionView.attempts,
)
_PLANNER = "reason"
"""The agent of the tool loop, which is not reported as the caller of a tool."""
_BEYOND_SEARCH = frozenset(
    attribute.name
    for attribute in (
        State.triage,
        State.tool_executions,
        State.way_fallback,
        State.task_ledger,
        State.routing,
        State.exhausted_budget,
    )
)
"""The attributes that are set by other ways of answering. If none of them is set, a plain search
answered the question.
"""
_TEAM_FIELDS = (
    State.sequence_notes,
    State.further_round,
    State.errors,
    State.checklist,
    State.verdicts,
    State.citation_check,
    State.review_report,
)
_ENDS_A_QUESTION = frozenset({Outcome.ANSWERED.value, Outcome.REFUSED.value})


class PartEnd(NamedTuple):
    """How the work on a part of a question ended.

    `was_searched` is true if a worker searched, even if it found nothing; `error` is the reason of
    the first failed worker.
    """

    has_result: bool = False
    was_searched: bool = False
    error: str = ""


def describe_way(state: State, outcome: str = "") -> Reply:
    """Return the reply fields about the way of answering, or nothing for a plain search.

    `plan_rounds` contains the intent and the reasoning of each round of the tool loop; `tool_calls`
    are in the order in which their results arrived. Tasks are open only while the question waits
    for the user.
    """
    if _BEYOND_SEARCH.isdisjoint(state.json):
        return {}
    triage, fallback = state.triage, state.way_fallback
    calls = [_describe_call(call) for call in state.tool_executions[:_MOST_CALLS]]
    budget = _describe_budget(state)
    is_swarm = bool(state.copy_filled(State.task_ledger, State.swarm_plan))
    if not (triage or calls or fallback or is_swarm or state.routing):
        return {"budget": budget} if "exhausted" in budget else {}
    team = describe_team(state)
    way = WayName.SWARM if is_swarm else _find_way(state, team, has_calls=bool(calls))
    report: Reply = {
        "budget": budget,
        "way": WayName.SEARCH if fallback else way,
        "tool_calls": [*calls],
        **team,
        **_describe_swarm(state, waits=outcome == Outcome.CLARIFICATION.value),
        **state.copy_filled(State.way_fallback),
    }
    if triage is not None:
        report["triage"] = triage.json
    if planned := state.plan_rounds:
        report["plan_rounds"] = [json_object.json for json_object in planned[:_MOST_ROUNDS]]
    return report


def describe_team(state: State) -> Reply:
    """Return the reply fields of specialists, or only `errors` if none has run."""
    extracted = state.extracted
    if extracted is None:
        return state.copy_filled(State.errors)
    return {
        "agent_sequence": [*state.agent_sequence],
        "documents": extracted.documents,
        "against": extracted.against,
        **state.copy_filled(*_TEAM_FIELDS),
    }


def list_tasks(state: State) -> tuple[TaskView, ...]:
    """Return the tasks of the ledger, or none if the question was not split."""
    ledger = state.task_ledger
    return () if ledger is None else ledger.tasks


def add_planned_tasks(reply: Reply | None, state: State) -> Reply | None:
    """Return the reply to a question that ended while its workers were running, with cancelled
    tasks.

    A reply that already has tasks is returned unchanged.
    """
    plan = state.swarm_plan
    if reply is None or plan is None or not plan.workers or "tasks" in reply:
        return reply
    tasks: list[JsonValue] = [
        {
            "task_id": worker.id,
            "title": (worker.specialization or worker.objective)[:_LONGEST_TASK],
            "state": CANCELLED,
        }
        for worker in plan.workers[:_MOST_TASKS]
    ]
    return {**reply, "way": WayName.SWARM, "tasks": tasks, "tasks_completed": 0}


def list_completed(state: State) -> list[str]:
    """Return the shortened titles of completed tasks, for progress messages."""
    return [task.title[:_LONGEST_TITLE] for task in list_tasks(state) if task.state == COMPLETED]


def read_parts(state: State) -> dict[str, PartEnd]:
    """Map the title of each part of a split question to its end.

    Workers that look up the same item of a table belong to one part.
    """
    workers = () if state.swarm_plan is None else state.swarm_plan.workers
    items = {worker.id: worker.subject for worker in workers}
    outputs = state.worker_outputs
    parts: dict[str, PartEnd] = {}
    for task in list_tasks(state):
        title, output = items.get(task.task_id) or task.title, outputs.get(task.task_id)
        known = parts.get(title, PartEnd())
        if output is not None and output.status == "done":
            has_result = bool(output.effects or output.passages)
            parts[title] = PartEnd(known.has_result or has_result, True, known.error)
        else:
            parts[title] = known._replace(error=known.error or task.error)
    return parts


def list_effects(state: State) -> list[str]:
    """Return the tools with which the workers of a swarm changed external systems."""
    return [tool for output in state.worker_outputs.values() for tool in output.effects]


def make_offer(envelope: Envelope, reply: Reply) -> Pause | None:
    """Return the pause that lets the user choose an open question by number, or None."""
    state = State(envelope.payload)
    if not state.remaining_questions or reply["outcome"] not in _ENDS_A_QUESTION:
        return None
    return Pause(
        pause_id=envelope.message_id,
        original_question=state.canonical_question,
        original_text=state.text,
        reason=ClarificationReason.MULTIPLE_TOPICS,
        asked=str(reply["text"]),
        options=state.remaining_questions,
        is_offer=True,
        groups=envelope.groups or None,
        flow=envelope.flow,
    )


def add_open_parts(reply: Reply, state: State, texts: Texts, language: str) -> Reply:
    """Return the reply of a swarm, followed by its notes and the unanswered parts."""
    # The table row or the paragraph of a part already says that it was not found.
    shown = {note.value for note in state.report_notes if note.key == SHOWN_PART}
    parts = read_parts(state)
    missing = [
        f"{_shorten(title)} ({_explain_end(end, texts, language)})"
        for title, end in parts.items()
        if not end.has_result and title not in shown
    ]
    done = [plain_line(name)[:_LONGEST_PART] for name in list_effects(state)]
    if done and reply["outcome"] in _ENDS_A_QUESTION:
        note = texts.text("effects_done", language, value=", ".join(done))
        reply = {**reply, "text": f"{reply['text']}\n\n{note}"}
    if state.way_fallback or reply["outcome"] != Outcome.ANSWERED.value:
        return reply
    notes = list(_read_notes(state, texts, language))
    left = texts.text(TOPIC_CHANGE, language)
    if state.termination_reason == TOPIC_CHANGE and left not in str(reply["text"]):
        notes.append(left)
    if notes:
        reply = {**reply, "text": "\n\n".join((str(reply["text"]), *notes))}
    if not missing:
        return reply
    more = f" (+{len(missing) - _MOST_PARTS})" if len(missing) > _MOST_PARTS else ""
    note = texts.text(
        "parts_answered",
        language,
        done=str(len(parts) - len(missing)),
        total=str(len(parts)),
        missing=f"{'; '.join(missing[:_MOST_PARTS])}{more}",
    )
    return {**reply, "text": f"{reply['text']}\n\n{note}"}


def add_offer(reply: Reply, state: State, texts: Texts, language: str) -> Reply:
    """Return the reply with the open questions, as a list and as buttons."""
    remaining = [plain_line(question) for question in state.remaining_questions]
    if not remaining or reply["outcome"] not in _ENDS_A_QUESTION:
        return reply
    listed = [f"{number}. {question}" for number, question in enumerate(remaining, 1)]
    offered = "\n".join((texts.text("also_asked", language), *listed))
    actions: list[JsonValue] = [
        {"label": question, "value": question, "kind": "option"} for question in remaining
    ]
    return {
        **reply,
        "text": f"{reply['text']}\n\n{offered}",
        "suggested_actions": [*State(reply).suggested_actions, *actions],
    }


def _find_way(state: State, team: Reply, *, has_calls: bool) -> WayName:
    """Return the way of answering that produced a result or, if none did, the way that triage
    chose.
    """
    if team:
        return WayName.SPECIALISTS
    if has_calls:
        return WayName.TOOLS
    chosen = "" if state.triage is None else state.triage.way
    return next((way for way in WayName if way == chosen), WayName.SEARCH)


def _describe_budget(state: State) -> Json:
    """Return the number of calls that count against budgets, and the exhausted budget if there is
    one.

    A tool call that was rejected before it ran does not count.
    """
    usage, exhausted = state.model_usage, state.exhausted_budget
    budget: Json = {
        "model_calls": 0 if usage is None else usage.calls,
        "tool_calls": sum(1 for call in state.tool_executions if call.attempts),
    }
    return {**budget, "exhausted": exhausted} if exhausted else budget


def _describe_swarm(state: State, *, waits: bool) -> Reply:
    """Return the routing decision and the tasks with their states, if any."""
    report: Reply = {}
    if state.routing is not None:
        report["routing"] = state.routing.json
    tasks = list_tasks(state)
    if not tasks:
        return report
    if not waits:
        tasks = tuple(TaskView(json) for json in cancel_open(task.json for task in tasks))
    used = {} if state.model_usage is None else state.model_usage.by_worker
    shown: list[JsonValue] = []
    for task in tasks[:_MOST_TASKS]:
        described = {**task.copy(*_TASK_FIELDS), "state": task.state or PENDING}
        if task.task_id in used:
            described["model_usage"] = used[task.task_id].json
        shown.append(described)
    completed = sum(task.state == COMPLETED for task in tasks)
    return {**report, "tasks": shown, "tasks_completed": completed}


def _describe_call(execution: ToolExecutionView) -> Json:
    caller = execution.agent_name
    named: Json = {} if caller in {"", _PLANNER} else {"agent_name": caller}
    return named | execution.copy(*_CALL_FIELDS)


def _explain_end(end: PartEnd, texts: Texts, language: str) -> str:
    """Return why a part has no result: nothing was found, or it could not be looked up."""
    if end.was_searched:
        return texts.text("report_nothing", language)
    return explain_failed_lookup(texts, end.error, language)


def _shorten(title: str) -> str:
    """Return the shortened title of a part without its final punctuation."""
    return plain_line(title)[:_LONGEST_PART].rstrip("?.!\uff1f\u3002\uff01 ")


def _read_notes(state: State, texts: Texts, language: str) -> Iterator[str]:
    for note in state.report_notes:
        if note.key in NOTES:
            yield texts.text(note.key, language, value=plain_line(note.value))
