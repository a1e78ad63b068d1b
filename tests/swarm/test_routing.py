"""Which requests are planned, and which are answered, asked back or cancelled."""

from itertools import pairwise

import pytest

from swarm.information.fields import RequiredInfoField
from swarm.planning.complexity import measure_complexity
from swarm.planning.plan import RoutingAction
from swarm.planning.routing import decide_route, is_topic_change


@pytest.mark.parametrize(
    "question",
    [
        "Compare the retention rules of Alfa, Beta and Gamma.",
        "Which contracts have an audit right but no cap on liability?",
        "What are the capitals of the five largest countries by population?",
        "Should we move to the new plan, and what do you recommend?",
    ],
)
def test_a_question_of_several_parts_is_planned(question: str) -> None:
    decision = decide_route(question, documents=12)

    assert decision.action is RoutingAction.ORCHESTRATE
    assert decision.requires_agents == ("worker",)


@pytest.mark.parametrize("question", ["What is the fee?", "How do I reset my password?", "  "])
def test_a_question_for_one_search_is_not_planned(question: str) -> None:
    assert decide_route(question).action is RoutingAction.SIMPLE_RESPONSE


def test_without_a_message_nothing_is_planned_or_asked() -> None:
    field = RequiredInfoField(name="country", question="Which country?")

    decision = decide_route("  ", missing=[field])

    assert decision.action is RoutingAction.SIMPLE_RESPONSE
    assert decision.reasoning == "there is no message"


def test_missing_facts_are_asked_before_a_plan() -> None:
    field = RequiredInfoField(name="country", question="Which country?")

    decision = decide_route("Compare the rules of Alfa, Beta and Gamma", missing=[field])

    assert decision.action is RoutingAction.GATHER_INFO
    assert "country" in decision.reasoning


def test_a_cancellation_counts_only_while_something_is_going_on() -> None:
    active = "Compare the retention rules of Alfa and Beta"

    assert decide_route("Please cancel that.", active_question=active).is_cancellation
    assert not decide_route("Please cancel that.").is_cancellation
    assert not decide_route("How do I cancel my plan?", active_question=active).is_cancellation


def test_two_topic_changes_in_a_row_are_both_seen() -> None:
    topics = [
        "Compare the retention rules of Alfa and Beta",
        "How many days of holiday do employees get?",
        "Where can a customer change the password of an account?",
    ]

    assert [
        decide_route(new, active_question=old).topic_change_detected
        for old, new in pairwise(topics)
    ] == [True, True]
    assert not is_topic_change(topics[0], "And what about the retention rules of Gamma?")


def test_a_plan_with_dangerous_tools_seeks_approval() -> None:
    decision = decide_route("Compare Alfa, Beta and Gamma", risky_tools=["file_write"])

    assert decision.should_seek_approval


def test_complexity_is_stated_by_dimension_and_bounds_the_workers() -> None:
    complexity = measure_complexity("Which contracts lack an audit right?", documents=500)

    assert complexity.suggested_workers == 32
    assert set(complexity.dimensions) == {
        "breadth", "depth", "judgement", "comparison", "length", "ambiguity",
    }  # fmt: skip
    assert all(0 <= value <= 1 for value in complexity.dimensions.values())
