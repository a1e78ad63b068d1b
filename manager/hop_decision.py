"""Holds the decision for one hop, writes its event of the journal, and records what it means.

What it means for the question is its best answer so far, and the clarification that it answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog
from pydantic import JsonValue

from broker.journal_events import EncodedEvent, JournalEvent
from broker.values import Delivery, Fields
from envelope.encoding import brief, to_json
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.role import Role
from manager import replies
from manager.branches import NONE, Branches, note_refused
from manager.evidence_checks import is_checked, list_faults
from manager.flow import RESUME_EVENTS, Counter, Ending, Flow, PauseFor, Scatter, Stage, StageEvent
from manager.flows.stages import ESSENCE
from manager.machine import Decision, End, read_counters, write_payload
from manager.pauses import Pauses
from memory.conversation import KeptPayload

READ_CHARACTERS = 200
"""The journal entry of a decision omits longer values; the hop that wrote them recorded them."""


@dataclass(slots=True)
class HopDecision:
    """The decision for one hop; `journal` has the events before it.

    `faults` are those of the work so far; they are looked for when the decision is journaled.
    """

    delivery: Delivery
    envelope: Envelope
    flow: Flow
    stage: Stage
    did: StageEvent
    decision: Decision
    journal: Sequence[JournalEvent]
    chosen: Branches = NONE
    kept: KeptPayload | None = None
    faults: Sequence[JsonValue] = ()
    resumed_flow: str = ""
    """The flow in which a reply to a clarification continues, if its own message began in another.
    """

    @property
    def is_fallback(self) -> bool:
        """Whether the row falls back from a way that failed."""
        return self.flow.row(self.stage, self.did).is_fallback

    def skip_branches(self, decide: Callable[[Stage, StageEvent], Decision]) -> None:
        """Continue at the gathering stage as if every branch had failed: none can begin."""
        action = self.decision.actions[0]
        if isinstance(action, Scatter):
            self.envelope = note_refused(self.envelope, self.chosen.refused)
            self.stage, self.did = action.gather, StageEvent.FAILED
            self.decision = decide(self.stage, self.did)

    def begin_pause(
        self, pauses: Pauses, now: float, decide: Callable[[Stage, StageEvent], Decision]
    ) -> None:
        """Begin the pause of the decision; if that is impossible, continue as if it was denied."""
        action = self.decision.actions[0]
        if not isinstance(action, PauseFor):
            return
        opened = pauses.begin(self.envelope, action, now)
        self.envelope, self.kept = opened.envelope, opened.kept
        if opened.problem:
            self.stage, self.did = action.resume, StageEvent.DENIED
            self.decision = decide(self.stage, self.did)
            changes: dict[str, JsonValue] = {"termination_reason": opened.problem}
            payload = write_payload(self.envelope.payload, changes)
            self.envelope = self.envelope.replace(payload=payload)
        else:
            end = End(Ending.PAUSE, Outcome.CLARIFICATION)
            self.decision = replace(self.decision, actions=(end,))

    def encode_events(self, target: str, more: Fields | None = None) -> Sequence[JournalEvent]:
        """Return the journal of the settlement that leads to `target`."""
        branch = self.envelope.branch
        if is_checked(self.stage, target, branch):
            self.faults = list_faults(self.envelope.payload, branch)
        return (*self.journal, self._encode_routing(target, more))

    def _encode_routing(self, target: str, more: Fields | None) -> EncodedEvent:
        decision, hop, payload = self.decision, self.envelope.hop, self.envelope.payload
        wrote = hop.wrote if hop is not None else ()
        read: Fields = {
            name: payload[name] for name in wrote if name in payload and _is_short(payload[name])
        }
        fields: Fields = {
            "row": decision.row,
            "stage": self.stage.name,
            "event": str(self.did),
            "result": read,
            "target": target,
            "counters": dict(decision.counters),
        }
        if hop is not None and hop.reason:
            fields["reason"] = hop.reason
        if decision.skipped:
            fields["skipped"] = [brief(name) for name in decision.skipped]
        if decision.termination_reason:
            fields["termination_reason"] = decision.termination_reason
        if self.resumed_flow:
            fields["flow"] = self.resumed_flow
        if self.stage.events == RESUME_EVENTS:
            fields["resumed"] = True
        if self.envelope.branch:
            fields["branch"] = self.envelope.branch
        if self.faults:
            fields["faults"] = [*self.faults]
        fields |= more or {}
        return EncodedEvent("routed", to_json(fields))


def _is_short(value: JsonValue) -> bool:
    if isinstance(value, str):
        return len(value) <= READ_CHARACTERS
    return not isinstance(value, (list, dict)) or len(str(value)) <= READ_CHARACTERS


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
        return _count_follow_up(envelope, pause)
    counters: dict[str, JsonValue] = {
        **read_counters(payload),
        Counter.ROUND.value: _read_round(pause),
    }
    changes: dict[str, JsonValue] = {"counters": counters, "best_answer": pause.get("best_answer")}
    return envelope.replace(
        flow=_choose_flow(envelope, stage, str(pause.get("flow") or ""), flows),
        payload=write_payload(payload, changes),
    )


def _count_follow_up(envelope: Envelope, pause: Mapping[str, JsonValue]) -> Envelope:
    """Record the round of a turn that leans on an open question without answering it.

    Otherwise a person whom nobody understands would be asked without an end.
    """
    payload = envelope.payload
    leans = payload.get("context_type") == "follow_up" and not payload.get("conversation_act")
    if not leans or pause.get("is_offer"):
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
