"""Payload values of the swarm.

The models of plans, ledgers and outputs are in `agents/swarm`.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Literal

from pydantic import JsonValue

COMPLETED, PENDING, CANCELLED = "completed", "pending", "cancelled"
"""The states of a task; a ledger omits the state of a task that has not started."""
BY_WORKER = "by_worker"
"""The field of `model_usage` that contains the usage of each swarm worker, by worker id."""
TOPIC_CHANGE = "topic_change"
"""The termination reason of a question that ended because the user changed the topic."""
NO_DISSENT, NO_PERSONA, SEPARATE_PARTS = "report_no_dissent", "report_persona", "report_parts"
NOTES = frozenset({NO_DISSENT, NO_PERSONA, SEPARATE_PARTS})
"""The keys of the fixed texts below the answer of a swarm."""
SHOWN_PART = "shown_part"
"""The key of an internal note about a part whose result, or missing result, is shown at its own
position in the answer.
"""
_OPEN = frozenset({PENDING, "in_progress", "awaiting_input"})
Task = dict[str, JsonValue]
StrategyChoice = Literal["auto", "council", "intelligent", "parallel"]
"""The strategies that a setting can choose; with `auto`, the planner chooses."""


class PlanStep(StrEnum):
    """The next step after a plan."""

    WORK = "work"
    APPROVE = "approve"
    SEARCH = "search"


class LedgerStep(StrEnum):
    """The next step after an update of the ledger."""

    WORK = "work"
    ASK_INFORMATION = "ask_information"
    ASK_APPROVAL = "ask_approval"
    REPLAN = "replan"
    FINISH = "finish"
    NOTHING_NEW = "nothing_new"


def list_tasks(payload: Mapping[str, JsonValue]) -> list[Task]:
    """Return the tasks in the ledger, or none if the question was not divided."""
    ledger = payload.get("task_ledger")
    tasks = ledger.get("tasks") if isinstance(ledger, dict) else None
    return [task for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []


def list_open(tasks: Iterable[Mapping[str, JsonValue]]) -> list[str]:
    """Return the titles of the tasks that have not ended."""
    return [str(task.get("title")) for task in tasks if task.get("state", PENDING) in _OPEN]


def cancel_open(
    tasks: Iterable[Mapping[str, JsonValue]], completed: Iterable[str] = ()
) -> list[Task]:
    """Return the tasks at the end of their question, with open ones marked as cancelled.

    `completed` contains the IDs of tasks that completed after the ledger was written.
    """
    done = frozenset(completed)
    return [
        {**task, "state": COMPLETED if task.get("task_id") in done else CANCELLED}
        if task.get("state", PENDING) in _OPEN
        else dict(task)
        for task in tasks
    ]


def read_cancelled(runs: Iterable[Mapping[str, JsonValue]]) -> list[Task]:
    """Return the tasks of a cancelled question; `runs` are its `agent_run` events so far.

    Tasks whose worker had returned are marked as completed; all other open tasks are marked as
    cancelled.
    """
    tasks: list[Task] = []
    completed: set[str] = set()
    for run in runs:
        writes = run.get("writes")
        if not isinstance(writes, dict):
            continue
        if "task_ledger" in writes:
            tasks, completed = list_tasks(writes), set()
        outputs = writes.get("worker_outputs")
        if isinstance(outputs, dict) and not writes.get("tool_calls"):
            completed |= {
                name
                for name, output in outputs.items()
                if isinstance(output, dict) and output.get("status", "done") == "done"
            }
    return cancel_open(tasks, completed)
