from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from envelope.envelope import Hop
from manager.classify import classify_result
from manager.flow import Stage, StageEvent
from manager.flows import stages
from manager.flows.search_flow import SEARCH_FLOW
from manager.state import State

Payload = dict[str, JsonValue]


def classify_payload(stage: Stage, writes: Payload, left: Payload | None = None) -> StageEvent:
    hop = Hop(role=stage.role.value, status="wrote", wrote=tuple(writes))
    before = left if left is not None else {}
    return classify_result(stage, hop, State({**before, **writes}), quality_threshold=0.7)


@pytest.mark.parametrize(
    ("stage", "writes", "did"),
    [
        (
            stages.ESSENCE,
            {"clarification_result": "exit", "needs_clarification": True},
            StageEvent.EXIT,
        ),
        (stages.ESSENCE, {"canonical_question": "?", "needs_clarification": True}, StageEvent.ASKS),
        (stages.GUARDRAILS, {"within_scope": True}, StageEvent.WITHIN),
        (stages.GUARDRAILS, {"within_scope": False}, StageEvent.OUTSIDE),
        (
            stages.GUARDRAILS,
            {
                "within_scope": False,
                "needs_clarification": True,
                "clarification_reason": "out_of_scope",
            },
            StageEvent.OUTSIDE,
        ),
        (
            stages.GUARDRAILS,
            {"needs_clarification": True, "clarification_reason": "scope_unclear"},
            StageEvent.ASKS,
        ),
        (stages.SEARCH, {"search_quality": "good"}, StageEvent.FOUND),
        (stages.SEARCH, {"search_quality": "poor"}, StageEvent.FOUND),
        (
            stages.SEARCH,
            {
                "search_quality": "poor",
                "needs_clarification": True,
                "clarification_reason": "insufficient_context",
            },
            StageEvent.NOTHING,
        ),
        (stages.SEARCH, {"search_quality": "good", "search_error": "no index"}, StageEvent.NOTHING),
        (
            stages.SEARCH,
            {
                "search_quality": "poor",
                "needs_clarification": True,
                "clarification_reason": "ambiguous_query",
            },
            StageEvent.MANY,
        ),
        (stages.RESPONSE, {"response": "a", "generation_error": "b"}, StageEvent.GENERATION_ERROR),
        (stages.RESPONSE, {"response": ""}, StageEvent.FAILED),
        (
            stages.RESPONSE,
            {"needs_clarification": True, "searches_again": True},
            StageEvent.RESEARCH,
        ),
        (stages.WRITE, {"needs_clarification": True, "searches_again": True}, StageEvent.ASKS),
        (
            stages.QUALITY,
            {"quality_decision": "approve", "quality_score": 0.7},
            StageEvent.APPROVED,
        ),
        (stages.QUALITY, {"quality_decision": "approve", "quality_score": 0.69}, StageEvent.LOW),
        (stages.QUALITY, {"quality_decision": "approve"}, StageEvent.LOW),
        (
            stages.QUALITY,
            {
                "quality_decision": "approve",
                "quality_score": 1.0,
                "validation_result": {"grounded": False},
            },
            StageEvent.LOW,
        ),
        (stages.QUALITY, {"quality_decision": "whatever"}, StageEvent.FAILED),
    ],
)
def test_a_hop_is_judged_by_its_writes(stage: Stage, writes: Payload, did: StageEvent) -> None:
    assert classify_payload(stage, writes) is did


def test_attributes_of_earlier_hops_are_never_classified() -> None:
    left: Payload = {"needs_clarification": True, "generation_error": "old", "response": "old"}

    assert classify_payload(stages.RESPONSE, {"response": "new"}, left) is StageEvent.DONE


def test_a_hop_of_another_role_is_a_failure() -> None:
    hop = Hop(role="lang", status="wrote", wrote=("response",))

    did = classify_result(
        stages.RESPONSE, hop, State({"response": "forged"}), quality_threshold=0.7
    )

    assert did is StageEvent.FAILED


@pytest.mark.parametrize("status", ["gave_up", "failed"])
def test_giving_up_is_a_failure_whatever_was_written(status: Literal["gave_up", "failed"]) -> None:
    hop = Hop(role="response", status=status, wrote=("response",))

    assert (
        classify_result(stages.RESPONSE, hop, State({"response": "x"}), quality_threshold=0.7)
        is StageEvent.FAILED
    )


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(0, 1),
    st.sampled_from(
        [
            "approve",
            "research",
            "regenerate",
            "clarify",
            "exit",
            "search_again",
            "poor",
            "good",
            "excellent",
            "out_of_scope",
            "ambiguous_query",
            "insufficient_context",
            "text",
            "",
        ]
    ),
)
NAMES = st.sampled_from(
    [
        "needs_clarification",
        "clarification_reason",
        "clarification_result",
        "canonical_question",
        "within_scope",
        "search_quality",
        "search_error",
        "response",
        "generation_error",
        "searches_again",
        "quality_score",
        "quality_decision",
        "validation_result",
        "language",
        "command",
    ]
)


@given(st.sampled_from(list(SEARCH_FLOW.stages.values())), st.dictionaries(NAMES, VALUES))
def test_every_combination_of_writes_is_an_outcome_the_table_answers(
    stage: Stage, writes: Payload
) -> None:
    assert classify_payload(stage, writes) in stage.events
