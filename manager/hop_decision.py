"""Holds the decision for one hop, and writes its event of the journal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from broker.journal_events import EncodedEvent, JournalEvent
from broker.values import Delivery, Fields
from envelope.encoding import brief, to_json
from envelope.envelope import Envelope
from envelope.outcome import Outcome
from manager.branches import NONE, Branches, note_refused
from manager.contract import write_payload
from manager.evidence_checks import is_checked, list_faults
from manager.flow import Ending, Flow, PauseFor, Scatter, Stage
from manager.machine import Decision, End
from manager.pauses import Pauses
from manager.stage_event import RESUME_EVENTS, StageEvent
from memory.port import KeptPayload

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
