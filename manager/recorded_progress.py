"""Records the progress of a question: its best answer, and the answered clarification."""

from collections.abc import Mapping

import structlog
from pydantic import JsonValue

from envelope.envelope import Envelope
from envelope.role import Role
from manager import replies
from manager.contract import write_payload
from manager.flow import Counter, Flow, Stage
from manager.flows.stages import ESSENCE
from manager.machine import read_counters
from manager.stage_event import StageEvent

log = structlog.get_logger("manager")


def record_progress(
    envelope: Envelope,
    stage: Stage,
    did: StageEvent,
    flows: Mapping[str, Flow],
    *,
    quality_threshold: float = 0.0,
) -> Envelope:
    """Record the best answer after a judgement, and the round of an answered clarification.

    The reply to a clarification belongs to the question that was asked: it goes on by the flow of
    that question, whichever way its own message names. All of `flows` share the road in, so that
    the present stage is in each of them.
    """
    payload = envelope.payload
    if stage.role is Role.QUALITY and did is not StageEvent.FAILED:
        if envelope.hop is None or "quality_score" not in envelope.hop.wrote:
            return envelope
        best = replies.best_answer(payload, quality_threshold)
        return envelope.replace(payload=write_payload(payload, {"best_answer": best}))
    pause = payload.get("open_pause")
    if stage is not ESSENCE or not isinstance(pause, dict):
        return envelope
    if payload.get("context_type") != "clarification":
        return _count_unread_reply(envelope, pause)
    counters: dict[str, JsonValue] = {
        **read_counters(payload),
        Counter.ROUND.value: _read_round(pause),
    }
    changes: dict[str, JsonValue] = {"counters": counters, "best_answer": pause.get("best_answer")}
    return envelope.replace(
        flow=_choose_flow(envelope, stage, str(pause.get("flow") or ""), flows),
        payload=write_payload(payload, changes),
    )


def _count_unread_reply(envelope: Envelope, pause: Mapping[str, JsonValue]) -> Envelope:
    """Record the round of a turn of which no model says whether it answers the open question.

    Otherwise a person whom nobody understands would be asked without an end.
    """
    payload = envelope.payload
    is_unread = payload.get("decided_by") == "rules" and not payload.get("conversation_act")
    if not is_unread or payload.get("context_type") != "follow_up" or pause.get("is_offer"):
        return envelope
    counters: dict[str, JsonValue] = {
        **read_counters(payload),
        Counter.ROUND.value: _read_round(pause),
    }
    return envelope.replace(payload=write_payload(payload, {"counters": counters}))


def _choose_flow(envelope: Envelope, stage: Stage, named: str, flows: Mapping[str, Flow]) -> str:
    """Return the flow of a clarification; that of the message where nobody noted or has it."""
    if not named or named == envelope.flow:
        return envelope.flow
    found = flows.get(named)
    if found is None or found.stages.get(stage.name) is not stage:
        log.warning("pause_of_unknown_flow", flow=named, stage=stage.name)
        return envelope.flow
    log.info("pause_flow_resumed", flow=named, message_flow=envelope.flow)
    return named


def _read_round(pause: Mapping[str, JsonValue]) -> int:
    value = pause.get("round")
    return value if isinstance(value, int) else 0
