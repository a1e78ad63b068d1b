import pytest

from tools.calls import ToolCall
from tools.effects.approvals import make_approval_id, request_approval

CALL = ToolCall(call_id="7", tool="delete", arguments={"ticket": 12})


def test_a_request_says_what_with_which_arguments_at_what_cost() -> None:
    request = request_approval(CALL, "delete", most_cost_micros=500)

    assert (request.tool, request.arguments) == ("delete", {"ticket": 12})
    assert request.most_cost_micros == 500


@pytest.mark.parametrize("change", [{"arguments": {"ticket": 13}}, {"call_id": "8"}])
def test_an_approval_is_of_its_call_with_its_arguments(change: dict[str, object]) -> None:
    other = CALL.model_copy(update=change)

    assert make_approval_id(other, "delete") != make_approval_id(CALL, "delete")


def test_an_approval_is_of_its_tool() -> None:
    assert make_approval_id(CALL, "delete_all") != make_approval_id(CALL, "delete")
