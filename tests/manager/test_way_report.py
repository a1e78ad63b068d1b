import pytest
from pydantic import JsonValue

from config.texts import load_texts
from envelope.conversation import ClarificationReason
from manager import replies
from manager.state import State
from manager.way_report import (
    add_offer,
    add_open_parts,
    add_planned_tasks,
    describe_way,
    read_parts,
)
from tests.manager.test_replies import envelope
from tests.support.worker_harness import FixedTexts

CALL: dict[str, JsonValue] = {
    "tool_name": "search", "success": True, "error_type": "success", "duration_ms": 2.0,
    "agent_name": "reason",
}  # fmt: skip


def test_one_search_from_the_start_needs_no_report() -> None:
    assert describe_way(State({"search_results": []})) == {}


def test_the_report_lists_the_calls() -> None:
    report = describe_way(State({"tool_executions": [CALL]}))

    assert report["way"] == "tools"
    assert report["tool_calls"] == [
        {name: value for name, value in CALL.items() if name != "agent_name"}
    ]


def test_the_report_has_the_reasoning_of_each_round_and_not_of_more_than_twenty() -> None:
    planned: list[JsonValue] = [
        {"round": number, "intent": "search", "reasoning": "r"} for number in range(1, 31)
    ]

    report = describe_way(State({"tool_executions": [CALL], "plan_rounds": planned}))

    assert report["plan_rounds"] == planned[:20]


def test_a_fallback_is_named_and_the_search_is_the_way() -> None:
    report = describe_way(State({"tool_executions": [CALL], "way_fallback": "reason.failed"}))

    assert (report["way"], report["way_fallback"]) == ("search", "reason.failed")


def test_the_decision_of_triage_is_reported() -> None:
    assert describe_way(State({"triage": {"way": "search"}})) == {
        "way": "search", "tool_calls": [], "triage": {"way": "search"},
        "budget": {"model_calls": 0, "tool_calls": 0},
    }  # fmt: skip


def test_the_budget_counts_the_calls_that_ran_and_names_the_one_that_was_used_up() -> None:
    refused: dict[str, JsonValue] = {**CALL, "success": False, "error_type": "budget"}
    calls: list[JsonValue] = [{**CALL, "attempts": 1}, {**CALL, "attempts": 2}, refused]
    report = describe_way(
        State(
            {
                "tool_executions": calls,
                "model_usage": {"calls": 4},
                "exhausted_budget": "tool_calls",
            }
        )
    )

    assert report["budget"] == {"model_calls": 4, "tool_calls": 2, "exhausted": "tool_calls"}


def test_a_budget_that_ends_one_search_is_named() -> None:
    report = describe_way(State({"model_usage": {"calls": 2}, "exhausted_budget": "usd"}))

    assert report == {"budget": {"model_calls": 2, "tool_calls": 0, "exhausted": "usd"}}


def test_a_question_that_is_asked_back_went_the_way_that_was_chosen() -> None:
    assert describe_way(State({"triage": {"way": "specialists"}}))["way"] == "specialists"
    assert (
        describe_way(State({"triage": {"way": "tools"}, "way_fallback": "x.failed"}))["way"]
        == "search"
    )


def test_a_question_that_ends_while_workers_run_has_the_tasks_of_its_plan() -> None:
    plan: dict[str, JsonValue] = {"workers": [{"id": "w0", "objective": "Look up retries"}]}
    tasks: list[JsonValue] = [{"task_id": "w0", "title": "Look up retries", "state": "cancelled"}]

    planned = State({"swarm_plan": plan})
    reply = add_planned_tasks({"outcome": "failed"}, planned)

    assert reply == {"outcome": "failed", "way": "swarm", "tasks": tasks, "tasks_completed": 0}
    assert add_planned_tasks({"tasks": []}, planned) == {"tasks": []}
    assert add_planned_tasks({"outcome": "failed"}, State({})) == {"outcome": "failed"}
    assert add_planned_tasks(None, planned) is None


def test_workers_that_look_up_one_item_work_on_one_part() -> None:
    payload: dict[str, JsonValue] = {
        "swarm_plan": {
            "workers": [{"id": "w0", "subject": "Alder"}, {"id": "w1", "subject": "Alder"}]
        },
        "task_ledger": {
            "tasks": [
                {"task_id": "w0", "title": "vendor Alder"},
                {"task_id": "w1", "title": "document alder"},
            ]
        },
        "worker_outputs": {"w1": {"status": "done", "passages": [{}]}},
    }

    assert {title: end.has_result for title, end in read_parts(State(payload)).items()} == {
        "Alder": True
    }


def test_a_part_without_a_result_was_searched_or_could_not_be_looked_up() -> None:
    failed = "too_slow: no answer within 30 s"
    payload: dict[str, JsonValue] = {
        "swarm_plan": {"workers": [{"id": "w0"}, {"id": "w1"}, {"id": "w2"}]},
        "task_ledger": {
            "tasks": [
                {"task_id": "w0", "title": "Alder?", "state": "completed"},
                {"task_id": "w1", "title": "Birch?", "state": "failed", "error": failed},
                {"task_id": "w2", "title": "Cedar?", "state": "cancelled"},
            ]
        },
        "worker_outputs": {"w0": {"status": "done"}},
    }

    reply = add_open_parts(make_reply(), State(payload), load_texts(), "en")

    assert str(reply["text"]).endswith(
        "Not answered: Alder (not found in the passages); Birch (could not be looked up: the model "
        "took too long); Cedar (could not be looked up)."
    )


@pytest.mark.parametrize(
    ("notes", "is_open"), [([], True), ([{"key": "shown_part", "value": "Birch"}], False)]
)
def test_a_part_without_a_result_is_named_below_the_answer_unless_it_has_a_place_in_it(
    notes: list[JsonValue], is_open: bool
) -> None:
    payload: dict[str, JsonValue] = {
        "swarm_plan": {
            "workers": [{"id": "w0", "subject": "Alder"}, {"id": "w1", "subject": "Birch"}]
        },
        "task_ledger": {"tasks": [{"task_id": "w0"}, {"task_id": "w1"}]},
        "worker_outputs": {"w0": {"status": "done", "passages": [{}]}},
        "report_notes": notes,
    }

    reply = add_open_parts(make_reply(), State(payload), FixedTexts(), "en")

    assert ("parts_answered" in str(reply["text"])) is is_open


REMAINING: list[JsonValue] = ["How do I add a user?", "Who may?"]


def make_reply(outcome: str = "answered") -> dict[str, JsonValue]:
    return {"outcome": outcome, "text": "Open it. [1]", "suggested_actions": []}


def test_the_open_questions_follow_the_answer_as_a_list_and_as_buttons() -> None:
    reply = add_offer(make_reply(), State({"remaining_questions": REMAINING}), FixedTexts(), "de")

    offered = "also_asked/de\n1. How do I add a user?\n2. Who may?"
    assert reply["text"] == f"Open it. [1]\n\n{offered}"
    assert reply["suggested_actions"] == [
        {"label": question, "value": question, "kind": "option"} for question in REMAINING
    ]


@pytest.mark.parametrize("outcome", ["answered", "refused"])
def test_an_end_with_open_questions_leaves_a_choice_that_needs_no_reply(outcome: str) -> None:
    ended = replies.remember(envelope(remaining_questions=REMAINING), make_reply(outcome))

    assert ended.pause is not None
    assert (ended.pause.options, ended.pause.is_offer) == (tuple(REMAINING), True)
    assert ended.turns[-1].text == "Open it. [1]"


def test_a_question_back_about_one_question_keeps_the_others() -> None:
    asks = {"clarification_reason": ClarificationReason.AMBIGUOUS_QUERY.value}

    ended = replies.remember(
        envelope(remaining_questions=REMAINING, **asks), make_reply("clarification")
    )

    assert ended.pause is not None
    assert (ended.pause.remaining, ended.pause.is_offer) == (tuple(REMAINING), False)
