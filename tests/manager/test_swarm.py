from pydantic import JsonValue

from manager.flows.swarm import list_tasks, list_worker_calls
from manager.state import State

PLAN: dict[str, JsonValue] = {
    "workers": [
        {"id": "w0", "role": "research", "objective": "Look up retries", "tools": ["search"]},
        {"id": "w1", "role": "research", "objective": "x" * 300, "depends_on": ["w0"],
         "priority": 7},
    ]
}  # fmt: skip


def test_ready_tasks_become_branches_with_the_results_of_their_dependencies() -> None:
    output: dict[str, JsonValue] = {"text": "It is 8.", "passages": [{"text": "Retries are 8."}]}
    payload: dict[str, JsonValue] = {
        "swarm_plan": PLAN,
        "ready_tasks": ["w1", "unknown"],
        "worker_outputs": {"w0": output},
        "collected_info": {"aspect": "cost"},
    }

    [item] = list_tasks(State(payload))

    task = item.adds["worker_task"]
    assert isinstance(task, dict)
    assert (item.key, item.priority, len(item.label)) == ("w1", 7, 100)
    assert task["found"] == ["It is 8. Retries are 8."]
    assert task["known"] == {"aspect": "cost"}
    assert item.depends_on == ()


def test_calls_of_a_worker_carry_its_name_and_its_tools() -> None:
    call: dict[str, JsonValue] = {"call_id": "s1-1", "tool": "search", "arguments": {}}
    workers = PLAN["workers"]
    assert isinstance(workers, list)
    payload: dict[str, JsonValue] = {
        "tool_calls": [call],
        "worker_task": {"worker": workers[0]},
    }

    [item] = list_worker_calls(State(payload))

    assert item.adds["tool_caller"] == {"agent": "w0", "tools": ["search"]}
