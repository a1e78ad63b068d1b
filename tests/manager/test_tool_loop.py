from pydantic import JsonValue

from manager.flows.tool_loop import list_calls
from manager.state import State


def test_planned_calls_become_branches_in_their_order() -> None:
    calls: list[JsonValue] = [
        {"call_id": "r1-1", "tool": "search"},
        {"call_id": "r1-2", "tool": "calculator"},
    ]

    items = list_calls(State({"tool_calls": [*calls, "no call"]}))

    assert [item.key for item in items] == ["r1-1", "r1-2"]
    assert items[0].adds == {"tool_call": calls[0]}
    assert list_calls(State({})) == []
