"""What a hop means for its question: rounds, and the flow of an answered clarification."""

from collections.abc import Mapping

import pytest
from pydantic import JsonValue

from envelope.envelope import Envelope
from envelope.role import Role
from manager.flow import StageEvent
from manager.flows import FLOWS, NEWEST
from manager.flows.stages import ESSENCE, LANG
from manager.hop_decision import record_progress

SEARCH, SPECIALISTS = NEWEST["search"], NEWEST["specialists"]


def envelope(payload: Mapping[str, JsonValue]) -> Envelope:
    return Envelope(
        tenant="t",
        assistant="a",
        channel="test",
        flow=SEARCH,
        conversation_id="c",
        message_id="m",
        create_ts=0.0,
        update_ts=0.0,
        deadline_ts=1.0,
        target_role=Role.MANAGER.value,
        payload=dict(payload),
    )


def reply_to(flow: str, context: str = "clarification") -> Envelope:
    return envelope({"context_type": context, "open_pause": make_pause(flow)})


def make_pause(flow: str, **more: JsonValue) -> dict[str, JsonValue]:
    asked = {"pause_id": "p", "original_question": "Q", "original_text": "q", "asked": "Which?"}
    return {**asked, "reason": "ambiguous_query", "flow": flow, "round": 2, **more}


def test_the_reply_to_a_clarification_goes_on_by_the_flow_of_its_question() -> None:
    gone_on = record_progress(reply_to(SPECIALISTS), ESSENCE, StageEvent.DONE, FLOWS)

    assert gone_on.flow == SPECIALISTS
    assert gone_on.payload["counters"] == {"round": 2}


@pytest.mark.parametrize("flow", ["", "specialists@99", SEARCH])
def test_without_a_known_flow_it_goes_on_by_its_own(flow: str) -> None:
    gone_on = record_progress(reply_to(flow), ESSENCE, StageEvent.DONE, FLOWS)

    assert (gone_on.flow, gone_on.payload["counters"]) == (SEARCH, {"round": 2})


@pytest.mark.parametrize("decided_by", ["rules", "combined_call"])
def test_a_turn_that_leans_on_the_open_question_counts_as_a_round_on_its_own_way(
    decided_by: str,
) -> None:
    vague: dict[str, JsonValue] = {
        "context_type": "follow_up",
        "decided_by": decided_by,
        "open_pause": make_pause(SPECIALISTS),
    }

    counted = record_progress(envelope(vague), ESSENCE, StageEvent.DONE, FLOWS)
    thanks = envelope({**vague, "conversation_act": "thanks"})
    offered = envelope({**vague, "open_pause": make_pause(SPECIALISTS, is_offer=True)})

    assert (counted.flow, counted.payload["counters"]) == (SEARCH, {"round": 2})
    assert record_progress(thanks, ESSENCE, StageEvent.DONE, FLOWS) is thanks
    assert record_progress(offered, ESSENCE, StageEvent.DONE, FLOWS) is offered


def test_another_question_keeps_its_own_way() -> None:
    other = reply_to(SPECIALISTS, context="new_topic")

    assert record_progress(other, ESSENCE, StageEvent.DONE, FLOWS) is other
    early = reply_to(SPECIALISTS)
    assert record_progress(early, LANG, StageEvent.DONE, FLOWS) is early


def test_every_flow_shares_the_stage_at_which_a_reply_is_recognised() -> None:
    assert all(flow.stages[ESSENCE.name] is ESSENCE for flow in FLOWS.values())
