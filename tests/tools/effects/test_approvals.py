from datetime import UTC, datetime, timedelta

import pytest

from tools.calls import ToolCall
from tools.effects.approvals import (
    APPROVAL_SECONDS,
    ApprovalAnswer,
    is_approval_of,
    judge_answer,
    request_approval,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
CALL = ToolCall(call_id="7", tool="delete", arguments={"ticket": 12})
REQUEST = request_approval(
    CALL, "delete", "Deletes a ticket.", now=NOW, asks="ada", most_cost_micros=500
)


def test_a_request_says_what_with_which_arguments_at_what_cost_and_until_when() -> None:
    assert (REQUEST.tool, REQUEST.arguments) == ("delete", {"ticket": 12})
    assert (REQUEST.description, REQUEST.most_cost_micros) == ("Deletes a ticket.", 500)
    assert REQUEST.expires == NOW + timedelta(seconds=APPROVAL_SECONDS)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({}, ApprovalAnswer.APPROVED),
        ({"approves": False}, ApprovalAnswer.DECLINED),
        ({"was_answered": True}, ApprovalAnswer.ALREADY_ANSWERED),
        ({"person": "eve"}, ApprovalAnswer.FOREIGN),
        ({"now": REQUEST.expires}, ApprovalAnswer.EXPIRED),
        ({"person": "eve", "now": REQUEST.expires}, ApprovalAnswer.FOREIGN),
    ],
)
def test_only_the_first_answer_of_the_asked_person_in_time_counts(
    answer: dict[str, object], expected: ApprovalAnswer
) -> None:
    given: dict[str, object] = {"approves": True, "person": "ada", "now": NOW, **answer}

    assert judge_answer(REQUEST, **given) is expected  # type: ignore[arg-type] # of the table


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, True),
        ({"arguments": {"ticket": 13}}, False),
        ({"call_id": "8"}, False),
    ],
)
def test_a_request_is_of_its_call_with_its_arguments(
    change: dict[str, object], holds: bool
) -> None:
    assert is_approval_of(REQUEST, CALL.model_copy(update=change), "delete") is holds


def test_a_request_is_of_its_tool() -> None:
    assert not is_approval_of(REQUEST, CALL, "delete_all")


def test_anybody_may_answer_a_request_that_asks_nobody_in_particular() -> None:
    request = request_approval(CALL, "delete", "Deletes a ticket.", now=NOW)

    answer = judge_answer(request, approves=True, person="eve", now=NOW)

    assert answer is ApprovalAnswer.APPROVED
