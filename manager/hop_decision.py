"""The decision for a hop, its journal event, and its effect on the question.

The effect concerns the best answer so far, and the state of an open clarification.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from broker.journal_events import EncodedEvent, JournalEvent
from broker.values import Delivery, Fields
from envelope.encoding import brief, to_json
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from envelope.role import Role
from manager import replies
from manager.branches import (
    NONE,
    Branches,
    note_refused,
    select_branches,
    select_next_branches,
)
from manager.evidence_checks import list_faults
from manager.flow import RESUME_EVENTS, Counter, Ending, Flow, PauseFor, Scatter, Stage, StageEvent
from manager.flows.stages import ESSENCE
from manager.machine import Decision, End
from manager.pauses import Pauses
from manager.state import State
from manager.unjudged import unjudged_answer
from memory.conversation import KeptPayload

READ_CHARACTERS = 200
"""Longer values are omitted from the journal entry of a decision, because the hop that wrote them
has recorded them.
"""
Decide = Callable[[Stage, StageEvent], Decision]
"""Returns the decision for another stage and event of the same hop."""
log = structlog.get_logger("manager")


@dataclass(slots=True)
class HopDecision:
    """The decision for a hop; `journal` contains the events before the decision.

    `state` is the parsed payload of `envelope`. `faults` are the evidence faults so far, which are
    checked at the end and where branches join.
    """

    delivery: Delivery
    envelope: Envelope
    state: State
    stage: Stage
    did: StageEvent
    decision: Decision
    journal: Sequence[JournalEvent]
    chosen: Branches = NONE
    kept: KeptPayload | None = None
    faults: Sequence[Fields] = ()
    resumed_flow: str = ""
    """The flow in which a reply to a clarification continues, if its message started in a different
    flow.
    """

    def change(self, state: State) -> None:
        """Replace the state and the payload of the envelope."""
        self.state, self.envelope = state, self.envelope.replace(payload=state.json)

    def choose_branches(self, scatter: Scatter, decide: Decide) -> None:
        """Select the branches to start now, from the waiting ones or from the plan.

        If none can start, continue at the gather stage as if every branch had failed.
        """
        if self.did is StageEvent.MORE:
            self.chosen = select_next_branches(self.state)
        else:
            self.chosen = select_branches(scatter.plan(self.state))
        if not self.chosen.begin:
            self.change(note_refused(self.state, self.chosen.refused))
            self.stage, self.did = scatter.gather, StageEvent.FAILED
            self.decision = decide(self.stage, self.did)

    def begin_pause(self, action: PauseFor, pauses: Pauses, now: float, decide: Decide) -> None:
        """Begin the pause. If that is impossible, continue as if the user had declined."""
        opened = pauses.begin(self.envelope, action, now)
        self.change(State(opened.envelope.payload))
        self.kept = opened.kept
        if opened.problem:
            self.stage, self.did = action.resume, StageEvent.DENIED
            self.decision = decide(self.stage, self.did)
            self.change(self.state.changed(termination_reason=opened.problem))
        else:
            end = End(Ending.PAUSE, Outcome.CLARIFICATION)
            self.decision = replace(self.decision, actions=(end,))

    def encode_events(self, target: str, more: Fields | None = None) -> Sequence[JournalEvent]:
        """Return the journal events for the settlement that leads to `target`."""
        branch = self.envelope.branch
        # Joins in the trunk are checked at the end; the payload of a branch is gone by then.
        joins = branch != "" and StageEvent.GATHERED in self.stage.events
        if target == "final" or joins:
            self.faults = list_faults(self.state, branch)
        return (*self.journal, self._encode_routing(target, more))

    def _encode_routing(self, target: str, more: Fields | None) -> EncodedEvent:
        decision, hop = self.decision, self.envelope.hop
        wrote = hop.wrote if hop is not None else ()
        fields: Fields = {
            "row": decision.row,
            "stage": self.stage.name,
            "event": str(self.did),
            "result": self.state.copy_short(wrote, READ_CHARACTERS),
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


def record_progress(
    envelope: Envelope,
    stage: Stage,
    did: StageEvent,
    flows: Mapping[str, Flow],
    *,
    quality_threshold: float = 0.0,
) -> Envelope:
    """Record the best answer after a judgement, the answer that a judge is about to read, and the
    round of an answered clarification.

    The reply to a clarification continues in the flow of the original question, whichever flow its
    own message names. All of `flows` share their first stages, so the current stage exists in each
    of them.
    """
    if stage.role is Role.QUALITY and did is not StageEvent.FAILED:
        return _record_best_answer(envelope, quality_threshold)
    if awaits_judge(flows.get(envelope.flow), stage, did):
        return _record_unjudged(envelope)
    if stage is not ESSENCE:
        return envelope
    state = State(envelope.payload)
    pause = state.open_pause
    if pause is None:
        return envelope
    counters = {**state.counters, Counter.ROUND.value: pause.round}
    if state.context_type == "clarification":
        answered = state.changed(counters=counters, best_answer=pause.best_answer)
        flow = _choose_flow(envelope, stage, pause.flow, flows)
        return envelope.replace(flow=flow, payload=answered.json)
    # A follow-up that does not answer the clarification also counts as a round; otherwise the user
    # could be asked endlessly.
    is_follow_up = state.context_type == "follow_up" and state.conversation_act is None
    if not is_follow_up or pause.is_offer:
        return envelope
    return envelope.replace(payload=state.changed(counters=counters).json)


def awaits_judge(flow: Flow | None, stage: Stage, did: StageEvent) -> bool:
    """Return whether this stage has written what a judge reads next.

    `record_progress` then checks the answer with rules, in processor time that grows with it.
    """
    if did is not StageEvent.DONE or flow is None or stage.name not in flow.stages:
        return False
    target = flow.row(stage, StageEvent.DONE).go_to
    return isinstance(target, Stage) and target.role is Role.QUALITY


def _record_best_answer(envelope: Envelope, quality_threshold: float) -> Envelope:
    if envelope.hop is None or State.quality_score.name not in envelope.hop.wrote:
        return envelope
    state = State(envelope.payload)
    best = replies.best_answer(state, quality_threshold)
    return envelope.replace(payload=state.changed(best_answer=best).json)


def _record_unjudged(envelope: Envelope) -> Envelope:
    """Record an answer that has not been judged yet, so that it is not lost if the question ends
    before it is judged.
    """
    state = State(envelope.payload)
    before = state.best_answer
    if before is not None and not before.is_unjudged:
        return envelope
    if (best := unjudged_answer(state)) is None:
        return envelope
    best = {**replies.describe_answer(state), **best}
    return envelope.replace(payload=state.changed(best_answer=best).json)


def _choose_flow(envelope: Envelope, stage: Stage, named: str, flows: Mapping[str, Flow]) -> str:
    """Return the flow of a clarification or, if that flow does not have this stage, the flow of the
    message.
    """
    if not named or named == envelope.flow:
        return envelope.flow
    flow = flows.get(named)
    if flow is None or flow.stages.get(stage.name) is not stage:
        log.warning("pause_of_unknown_flow", flow=named, stage=stage.name)
        return envelope.flow
    log.info("pause_flow_resumed", flow=named, message_flow=envelope.flow)
    return named
