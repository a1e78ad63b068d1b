"""What a hop means for its question: rounds, and the flow of an answered clarification."""

from collections.abc import Mapping

import pytest
from pydantic import JsonValue

from envelope.envelope import Envelope, Hop
from envelope.role import Role
from manager import replies
from manager.flow import Ending, Stage, StageEvent
from manager.flows import FLOWS, NEWEST
from manager.flows.stages import ASSESS, ESSENCE, LANG, QUALITY, WRITE
from manager.hop_decision import record_progress
from manager.machine import Decision, End
from manager.state import State
from tests.support.worker_harness import FixedTexts

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


WRITTEN: dict[str, JsonValue] = {"response": "The fee is 3. [1]", "answered_by": "model"}


@pytest.mark.parametrize(
    ("reason", "note"),
    [
        ("deadline", "limit_reached/en"),
        ("process_count_limit", "steps_ended/en"),
        ("reason_failed", "fault_reached/en"),
    ],
)
@pytest.mark.parametrize(("stage", "did"), [(WRITE, StageEvent.DONE), (ASSESS, StageEvent.AGAIN)])
def test_an_unjudged_answer_of_the_tool_loop_survives_a_limit_with_a_note(
    stage: Stage, did: StageEvent, reason: str, note: str
) -> None:
    written = record_progress(envelope(WRITTEN), stage, did, FLOWS)
    later = written.replace(payload={**written.payload, "response": ""})

    end, decision = End(Ending.BEST, None), Decision("row", (), {}, None, reason)
    reply = replies.end_reply(later, decision, end, FixedTexts())

    assert reply["outcome"] == "answered"
    assert reply["text"] == f"{note}\n\nnot_checked/en\n\nThe fee is 3. [1]"
    assert "is_unjudged" not in reply


def test_the_judgement_of_an_answer_replaces_the_unjudged_one() -> None:
    written = record_progress(envelope(WRITTEN), ASSESS, StageEvent.ENOUGH, FLOWS)
    refused: dict[str, JsonValue] = {
        **written.payload,
        "quality_score": 0.0,
        "validation_result": {"grounded": False},
        "judged_answer": {"text": "The fee is 3. [2]", "sources_used": []},
    }
    judged = written.replace(
        payload=refused, hop=Hop(role=Role.QUALITY, status="wrote", wrote=("quality_score",))
    )

    after = record_progress(judged, QUALITY, StageEvent.LOW, FLOWS)
    again = record_progress(after, ASSESS, StageEvent.ENOUGH, FLOWS)
    other = after.replace(payload={**after.payload, "response": "The fee is 4. [1]"})
    searched = after.replace(payload={**other.payload, "answered_by": "search"})

    assert State(written.payload).best_answer is not None
    assert State(after.payload).best_answer is None
    assert State(again.payload).best_answer is None, "it is the answer that was turned down"
    assert State(record_progress(other, WRITE, StageEvent.DONE, FLOWS).payload).best_answer
    assert record_progress(searched, WRITE, StageEvent.DONE, FLOWS) is searched


def test_an_unjudged_answer_replaces_no_judged_one() -> None:
    judged = envelope({**WRITTEN, "best_answer": {"text": "judged", "quality_score": 0.4}})

    assert record_progress(judged, ASSESS, StageEvent.AGAIN, FLOWS) is judged


def test_another_question_keeps_its_own_way() -> None:
    other = reply_to(SPECIALISTS, context="new_topic")

    assert record_progress(other, ESSENCE, StageEvent.DONE, FLOWS) is other
    early = reply_to(SPECIALISTS)
    assert record_progress(early, LANG, StageEvent.DONE, FLOWS) is early


def test_every_flow_shares_the_stage_at_which_a_reply_is_recognised() -> None:
    assert all(flow.stages[ESSENCE.name] is ESSENCE for flow in FLOWS.values())
