"""The parts of a reply about the way that answered, and about what the answer leaves open.

The way: triage, calls, tasks, and a fallback. The outcome of a swarm goes to the memory with the
end of its message. What is open: parts without a result, into which the swarm divided the question,
and further questions of the same message that are still to be answered.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pydantic import JsonValue

from citations.links import plain_line
from envelope.conversation import ClarificationReason, Pause
from envelope.encoding import to_json
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.swarm import (
    ANSWERED_ITEM,
    BY_WORKER,
    CANCELLED,
    COMPLETED,
    NOTES,
    PENDING,
    TOPIC_CHANGE,
    cancel_open,
    list_tasks,
)
from envelope.texts import Texts
from envelope.tool_loop import WayName
from memory.conversation import Ended

_MOST_CALLS = 100
_MOST_ROUNDS = 20
_MOST_TASKS = 256
_LONGEST_TITLE, _LONGEST_TASK = 100, 200
_TASK_FIELDS = ("task_id", "title", "state", "attempts", "error")
_CALL_FIELDS = (
    "tool_name", "arguments", "success", "error_type", "error", "duration_ms", "attempts",
)  # fmt: skip
_PLANNER = "reason"
"""The agent that calls in the tool loop: it is not named."""
_BEYOND_SEARCH = frozenset(
    {
        "triage", "tool_executions", "way_fallback", "task_ledger", "routing", "exhausted_budget",
    }
)  # fmt: skip
_TEAM_FIELDS = (
    "sequence_notes", "further_round", "errors", "checklist", "verdicts", "citation_check",
    "review_report",
)  # fmt: skip


def describe_way(payload: Mapping[str, JsonValue], outcome: str = "") -> dict[str, JsonValue]:
    """Return the fields of the reply about its way; none if one search answered from the start.

    `plan_rounds` has the intent and the reasoning of each round of the tool loop; `tool_calls` are
    in the order in which their results arrived. Tasks are open only while the question waits for
    its user.
    """
    if _BEYOND_SEARCH.isdisjoint(payload):
        return {}
    triage, executions = payload.get("triage"), payload.get("tool_executions")
    fallback, assessment = payload.get("way_fallback"), payload.get("assessment")
    calls = [_describe_call(one) for one in _list_objects(executions)[:_MOST_CALLS]]
    budget = _describe_budget(payload)
    is_swarm = bool(payload.get("task_ledger") or payload.get("swarm_plan"))
    if not (triage or calls or fallback or is_swarm or payload.get("routing")):
        return {"budget": budget} if "exhausted" in budget else {}
    team = describe_team(payload)
    way = WayName.SWARM if is_swarm else _find_way(team, triage, has_calls=bool(calls))
    report: dict[str, JsonValue] = {
        "budget": budget,
        "way": WayName.SEARCH if fallback else way,
        "tool_calls": [*calls],
        **team,
        **_describe_swarm(payload, waits=outcome == Outcome.CLARIFICATION.value),
    }
    if fallback:
        report["way_fallback"] = fallback
    if isinstance(triage, dict):
        report["triage"] = triage
    if isinstance(assessment, dict):
        report["assessment"] = assessment
    if planned := _list_objects(payload.get("plan_rounds")):
        report["plan_rounds"] = [*planned[:_MOST_ROUNDS]]
    return report


def _find_way(team: Mapping[str, JsonValue], triage: JsonValue, *, has_calls: bool) -> JsonValue:
    """Return the way that produced a result, or the one that triage chose if there is no result
    yet.
    """
    if team:
        return WayName.SPECIALISTS
    if has_calls:
        return WayName.TOOLS
    chosen = triage.get("way") if isinstance(triage, dict) else None
    return chosen if chosen in set(WayName) else WayName.SEARCH


def _describe_budget(payload: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return how many calls counted against the budgets, and the budget that was used up.

    A call of a tool that was refused before it ran counts against none.
    """
    usage, exhausted = payload.get("model_usage"), payload.get("exhausted_budget")
    made = [one for one in _list_objects(payload.get("tool_executions")) if one.get("attempts")]
    budget: dict[str, JsonValue] = {
        "model_calls": usage.get("calls") if isinstance(usage, dict) else 0,
        "tool_calls": len(made),
    }
    return {**budget, "exhausted": exhausted} if exhausted else budget


def describe_team(payload: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return what specialists wrote for the reply; empty if none has worked."""
    found = payload.get("extracted")
    if not isinstance(found, dict):
        return {name: payload[name] for name in ("errors",) if payload.get(name)}
    report: dict[str, JsonValue] = {
        "agent_sequence": payload.get("agent_sequence") or [],
        "documents": found.get("documents") or [],
        "against": found.get("against") or [],
    }
    return report | {name: payload[name] for name in _TEAM_FIELDS if payload.get(name)}


def _describe_swarm(payload: Mapping[str, JsonValue], *, waits: bool) -> dict[str, JsonValue]:
    """Return the routing decision and the tasks with their states, where there are any."""
    report: dict[str, JsonValue] = {}
    if isinstance(payload.get("routing"), dict):
        report["routing"] = payload["routing"]
    tasks = list_tasks(payload) if waits else cancel_open(list_tasks(payload))
    usage = payload.get("model_usage")
    taken = usage.get(BY_WORKER) if isinstance(usage, dict) else None
    used = taken if isinstance(taken, dict) else {}
    if tasks:
        states = [str(one.get("state", PENDING)) for one in tasks]
        shown: list[JsonValue] = [
            {
                name: one.get(name, PENDING)
                for name in _TASK_FIELDS
                if name in one or name == "state"
            }
            | ({"model_usage": used[key]} if (key := str(one.get("task_id"))) in used else {})
            for one in tasks[:_MOST_TASKS]
        ]
        report["tasks"] = shown
        report["tasks_completed"] = states.count(COMPLETED)
    return report


def add_planned_tasks(
    reply: dict[str, JsonValue] | None, payload: Mapping[str, JsonValue]
) -> dict[str, JsonValue] | None:
    """Return a reply for a question that ends while its workers run, with the tasks of the plan.

    All are cancelled: later results are not read. A reply with tasks is unchanged.
    """
    plan = payload.get("swarm_plan")
    workers = _list_objects(plan.get("workers")) if isinstance(plan, dict) else []
    if reply is None or not workers or "tasks" in reply:
        return reply
    tasks: list[JsonValue] = [
        {
            "task_id": one.get("id"),
            "title": str(one.get("specialization") or one.get("objective"))[:_LONGEST_TASK],
            "state": CANCELLED,
        }
        for one in workers[:_MOST_TASKS]
    ]
    return {**reply, "way": WayName.SWARM, "tasks": tasks, "tasks_completed": 0}


def list_completed(payload: Mapping[str, JsonValue]) -> list[str]:
    """Return the titles of the tasks that are completed, shortened, for those who wait."""
    return [
        str(one.get("title"))[:_LONGEST_TITLE]
        for one in list_tasks(payload)
        if one.get("state") == COMPLETED
    ]


def read_parts(payload: Mapping[str, JsonValue]) -> dict[str, bool]:
    """Return the parts of a divided question by their titles, and whether anything was found.

    Workers that look up one item of a table work on one part.
    """
    plan = payload.get("swarm_plan")
    workers = _list_objects(plan.get("workers")) if isinstance(plan, dict) else []
    items = {str(one.get("id")): str(one.get("subject") or "") for one in workers}
    outputs = payload.get("worker_outputs")
    found = outputs if isinstance(outputs, dict) else {}
    parts: dict[str, bool] = {}
    for task in list_tasks(payload):
        name = str(task.get("task_id"))
        title, output = items.get(name) or str(task.get("title")), found.get(name)
        has_result = (
            isinstance(output, dict) and output.get("status") == "done" and _has_result(output)
        )
        parts[title] = parts.get(title, False) or has_result
    return parts


def list_effects(payload: Mapping[str, JsonValue]) -> list[str]:
    """Return the tools by which the workers of a swarm changed something outside."""
    outputs = payload.get("worker_outputs")
    found = outputs.values() if isinstance(outputs, dict) else ()
    return [
        str(tool)
        for output in found
        if isinstance(output, dict) and isinstance(tools := output.get("effects"), list)
        for tool in tools
    ]


def _has_result(output: Mapping[str, JsonValue]) -> bool:
    return bool(output.get("effects") or output.get("passages"))


def _describe_call(execution: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    caller = execution.get("agent_name")
    named = {} if caller in {None, _PLANNER} else {"agent_name": caller}
    return named | {name: execution[name] for name in _CALL_FIELDS if name in execution}


def _list_objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


_ENDS = frozenset({Outcome.ANSWERED.value, Outcome.REFUSED.value, Outcome.FAILED.value})
_WORST, _SPAN = 1.0, 9.0
"""The scale of the judge: a score of 0 is 1, one of 1 is 10."""


def note_outcome(ended: Ended, envelope: Envelope, reply: Mapping[str, JsonValue]) -> Ended:
    """Return the changes with the outcome of the swarm of a message, if it had a finished one.

    A swarm that fell back to one search or has no answer gets the lowest score. A question that a
    person stopped, replaced or still has to answer is not counted.
    """
    payload = envelope.payload
    routing, plan = payload.get("routing"), payload.get("swarm_plan")
    kind = routing.get("question_kind") if isinstance(routing, dict) else None
    workers = plan.get("workers") if isinstance(plan, dict) else None
    if not (isinstance(plan, dict) and isinstance(workers, list) and workers and kind):
        return ended
    if reply.get("outcome") not in _ENDS:
        return ended
    fields: dict[str, JsonValue] = {
        "kind": kind,
        "strategy": str(plan.get("strategy"))[:60],
        "workers": len(workers),
        "judge": _rate(payload, reply),
        "cost_usd": _read_cost(payload.get("model_usage")),
        "seconds": round(envelope.total_processing_time, 3),
    }
    return replace(ended, learned=to_json(fields).decode())


def _rate(payload: Mapping[str, JsonValue], reply: Mapping[str, JsonValue]) -> float | None:
    """Return the score of the judge, 1 to 10; None for an answer that nobody judged."""
    score = reply.get("quality_score")
    if reply.get("outcome") != Outcome.ANSWERED.value or payload.get("way_fallback"):
        return _WORST
    if not isinstance(score, int | float):
        return None
    return round(_WORST + _SPAN * min(1.0, max(0.0, float(score))), 2)


def _read_cost(usage: JsonValue) -> float:
    """Return the cost of the models in USD; 0 where it is unknown."""
    cost = usage.get("cost_usd") if isinstance(usage, dict) else None
    try:
        return max(0.0, float(str(cost))) if cost is not None else 0.0
    except ValueError:
        return 0.0


Reply = dict[str, JsonValue]
_MOST_PARTS, _LONGEST_PART = 8, 120
_ENDS_A_QUESTION = frozenset({Outcome.ANSWERED.value, Outcome.REFUSED.value})


def find_remaining(payload: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Return the questions of the message, or of an earlier one, that are still open."""
    value = payload.get("remaining_questions")
    return tuple(str(one) for one in value) if isinstance(value, list) else ()


def make_offer(envelope: Envelope, reply: Reply) -> Pause | None:
    """Return the pause that lets the next turn choose an open question by its number."""
    remaining = find_remaining(envelope.payload)
    if not remaining or reply["outcome"] not in _ENDS_A_QUESTION:
        return None
    return Pause(
        pause_id=envelope.message_id,
        original_question=str(envelope.payload.get("canonical_question") or ""),
        original_text=str(envelope.payload.get("text") or ""),
        reason=ClarificationReason.MULTIPLE_TOPICS,
        asked=str(reply["text"]),
        options=remaining,
        is_offer=True,
        groups=envelope.groups or None,
        flow=envelope.flow,
    )


def add_open_parts(
    reply: Reply, payload: Mapping[str, JsonValue], texts: Texts, language: str
) -> Reply:
    """Return the answer of a swarm, followed by its notes and the unanswered parts."""
    # The pages of other workers may answer an item whose own worker failed.
    answered = frozenset(_list_answered(payload))
    parts = {title: found or title in answered for title, found in read_parts(payload).items()}
    missing = [_shorten(title) for title, found in parts.items() if not found]
    done = [plain_line(name)[:_LONGEST_PART] for name in list_effects(payload)]
    if done and reply["outcome"] in _ENDS_A_QUESTION:
        note = texts.text("effects_done", language, value=", ".join(done))
        reply = {**reply, "text": f"{reply['text']}\n\n{note}"}
    is_fallback = bool(payload.get("way_fallback"))
    if is_fallback or reply["outcome"] != Outcome.ANSWERED.value:
        return reply
    notes = list(_read_notes(payload, texts, language))
    left = texts.text(TOPIC_CHANGE, language)
    if payload.get("termination_reason") == TOPIC_CHANGE and left not in str(reply["text"]):
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


def _list_answered(payload: Mapping[str, JsonValue]) -> Iterator[str]:
    notes = _list_objects(payload.get("report_notes"))
    return (str(one.get("value")) for one in notes if one.get("key") == ANSWERED_ITEM)


def _shorten(title: str) -> str:
    """Return the title of a part without its end: a full stop follows the list of parts."""
    return plain_line(title)[:_LONGEST_PART].rstrip("?.!\uff1f\u3002\uff01 ")


def _read_notes(payload: Mapping[str, JsonValue], texts: Texts, language: str) -> Iterator[str]:
    notes = payload.get("report_notes")
    for note in notes if isinstance(notes, list) else ():
        if isinstance(note, dict) and note.get("key") in NOTES:
            value = plain_line(str(note.get("value") or ""))
            yield texts.text(str(note["key"]), language, value=value)


def add_offer(reply: Reply, payload: Mapping[str, JsonValue], texts: Texts, language: str) -> Reply:
    """Return the reply with the open questions below it: as a list, and as buttons."""
    remaining = [plain_line(one) for one in find_remaining(payload)]
    if not remaining or reply["outcome"] not in _ENDS_A_QUESTION:
        return reply
    listed = [f"{number}. {one}" for number, one in enumerate(remaining, 1)]
    offered = "\n".join((texts.text("also_asked", language), *listed))
    known = reply.get("suggested_actions")
    actions: list[JsonValue] = [{"label": one, "value": one, "kind": "option"} for one in remaining]
    return {
        **reply,
        "text": f"{reply['text']}\n\n{offered}",
        "suggested_actions": [*(known if isinstance(known, list) else ()), *actions],
    }
