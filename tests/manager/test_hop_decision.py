"""What a hop means for its question: rounds, and the flow of an answered clarification."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import JsonValue

from broker.values import Delivery
from envelope.envelope import Envelope, Hop
from envelope.question import Question
from envelope.role import Role
from manager import replies
from manager.flow import Ending, Stage, StageEvent
from manager.flows import FLOWS, NEWEST
from manager.flows.stages import (
    ESSENCE,
    GUARDRAILS,
    LANG,
    QUALITY,
    RESPONSE,
    SYNTHESIS,
    SYNTHESIZE,
    WRITE,
)
from manager.hop_decision import record_progress
from manager.machine import Decision, End, Limits
from manager.manager import ManagerAgent
from manager.state import State
from tests.support.worker_harness import FixedTexts

SEARCH, SPECIALISTS = NEWEST["search"], NEWEST["specialists"]
ASKED = Question(tenant="t", assistant="a", conversation_id="c", message_id="m")
DELIVERY = Delivery("1-0", "manager", 0, "w", 1, ASKED, b"", 40.0)


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


SOURCE: dict[str, JsonValue] = {
    "number": 1,
    "chunk_id": "fees#0",
    "title": "Fees",
    "path": "fees.md",
}
ANSWER = "The fee is 3. [1]"
WRITTEN: dict[str, JsonValue] = {
    "canonical_question": "What is the fee?",
    "response": ANSWER,
    "answered_by": "model",
    "search_context": "The fee is 3. It is due in May.",
    "source_references": [{**SOURCE, "span": [0, 31]}],
    "sources_used": [SOURCE],
}
WRITERS = [
    ("search", RESPONSE), ("tools", WRITE), ("specialists", SYNTHESIS), ("swarm", SYNTHESIZE),
]  # fmt: skip


def write(way: str = "search", stage: Stage = RESPONSE, **changes: JsonValue) -> Envelope:
    written = envelope({**WRITTEN, **changes}).replace(flow=NEWEST[way])
    return record_progress(written, stage, StageEvent.DONE, FLOWS)


def end(written: Envelope, reason: str = "deadline") -> dict[str, JsonValue]:
    best, decision = End(Ending.BEST, None), Decision("row", (), {}, None, reason)
    return replies.end_reply(written, decision, best, FixedTexts())


@pytest.mark.parametrize(
    ("reason", "note"),
    [
        ("deadline", "limit_reached/en"),
        ("process_count_limit", "steps_ended/en"),
        ("reason_failed", "fault_reached/en"),
    ],
)
@pytest.mark.parametrize(("way", "stage"), WRITERS)
def test_a_written_answer_of_each_way_outlives_a_limit_and_says_that_it_is_not_judged(
    way: str, stage: Stage, reason: str, note: str
) -> None:
    written = write(way, stage)

    reply = end(written.replace(payload={**written.payload, "response": ""}), reason)

    assert (reply["outcome"], reply["quality_score"]) == ("answered", None)
    assert reply["text"] == f"{note}\n\n{ANSWER}\n\nnot_yet_judged/en"
    assert reply.keys().isdisjoint({"is_unjudged", "is_cut", "lacks"})


def test_an_unjudged_answer_omits_and_reports_what_rules_prove_false() -> None:
    false = "It was 4711 in spring. [1]"

    reply = end(write(response=f"{ANSWER}\n\n{false}", missing="the fee of next year"))

    assert reply["text"] == (
        f"limit_reached/en\n\n{ANSWER}\n\nleft_out/en\n\nmissing_part/en\n\nnot_yet_judged/en"
    )
    assert end(write(response=false))["outcome"] == "failed", "nothing is left of it"


async def test_other_questions_do_not_wait_while_a_long_answer_is_checked() -> None:
    memory: Any = None
    manager = ManagerAgent(FLOWS, memory, FixedTexts(), limits=Limits(), quality_threshold=0.7)
    inside = Hop(role=Role.GUARDRAILS, status="wrote", wrote=("within_scope",))
    other = envelope({"stage": GUARDRAILS.name, "within_scope": True}).replace(hop=inside)
    wrote = Hop(role=Role.RESPONSE, status="wrote", wrote=("response",))
    long = envelope({**WRITTEN, "stage": RESPONSE.name, "response": f"{ANSWER}\n\n" * 500})
    ended: list[str] = []

    async def decide(name: str, sent: Envelope) -> None:
        await manager.decide(DELIVERY, sent, 40.0)
        ended.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(decide("long answer", long.replace(hop=wrote)))
        group.create_task(decide("other", other))

    assert ended == ["other", "long answer"]


def test_the_judgement_of_an_answer_replaces_the_unjudged_one() -> None:
    written = write()
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
    again = record_progress(after, RESPONSE, StageEvent.DONE, FLOWS)
    other = after.replace(payload={**after.payload, "response": "The fee is 3 in May. [1]"})
    shown = after.replace(payload={**other.payload, "answered_by": "search"})

    assert State(written.payload).best_answer is not None
    assert State(after.payload).best_answer is None
    assert State(again.payload).best_answer is None, "it is the answer that was turned down"
    assert State(record_progress(other, RESPONSE, StageEvent.DONE, FLOWS).payload).best_answer
    assert record_progress(shown, RESPONSE, StageEvent.DONE, FLOWS) is shown


def test_an_unjudged_answer_replaces_no_judged_one() -> None:
    judged = envelope({**WRITTEN, "best_answer": {"text": "judged", "quality_score": 0.4}})

    assert record_progress(judged, RESPONSE, StageEvent.DONE, FLOWS) is judged


def test_another_question_keeps_its_own_way() -> None:
    other = reply_to(SPECIALISTS, context="new_topic")

    assert record_progress(other, ESSENCE, StageEvent.DONE, FLOWS) is other
    early = reply_to(SPECIALISTS)
    assert record_progress(early, LANG, StageEvent.DONE, FLOWS) is early


def test_every_flow_shares_the_stage_at_which_a_reply_is_recognised() -> None:
    assert all(flow.stages[ESSENCE.name] is ESSENCE for flow in FLOWS.values())
