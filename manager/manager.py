"""Decides where each envelope goes next, and ends messages. No other role does either."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from broker.journal_events import JournalEvent
from broker.keys import stream_key
from broker.values import (
    Delivery,
    Fields,
    Finish,
    Forward,
    ReturnResult,
    ScatterBranches,
    Settlement,
)
from broker.values import FrameSend as BrokerSend
from envelope.conversation import ClarificationReason, Preferences
from envelope.encoding import to_json
from envelope.envelope import Envelope
from envelope.memory_access import MemoryRead
from envelope.outcome import Outcome
from envelope.question import Question, has_all
from envelope.role import Role
from envelope.swarm import TOPIC_CHANGE
from envelope.texts import Texts
from manager import branches, replies
from manager.classify import classify_result
from manager.evidence_checks import OnFault, ignore_fault, report_faults
from manager.flow import Flow, FlowError, PauseFor, Return, Scatter, Stage, StageEvent, find_flow
from manager.flows.stages import (
    CLARIFICATION,
    ESSENCE,
    GATHER,
    JUDGE,
    LANG,
    LEDGER,
    QUALITY,
    RESUMED_WORK,
    SEARCH,
    SHOWN,
    START,
)
from manager.hop_decision import HopDecision, record_progress
from manager.machine import (
    Context,
    End,
    Limits,
    Send,
    count_attempts,
    decide,
    read_counters,
    write_payload,
)
from manager.pauses import Pauses, is_hidden_clarification, join_messages, take_shown
from manager.way_report import (
    add_offer,
    add_open_parts,
    add_planned_tasks,
    list_completed,
    note_outcome,
)
from memory.conversation import Ended, RedisMemory, RedisPeople

MANAGER = Role.MANAGER.value
# Every hop uses these: in Python 3.11 an enum member costs four times as much as a variable.
_FAILED = StageEvent.FAILED
_GIVES_A_REASON = frozenset(
    {StageEvent.ASKS, StageEvent.MANY, StageEvent.NOTHING, StageEvent.OUTSIDE}
)
_SWARM = (GATHER, RESUMED_WORK, LEDGER)
_CHANGES_LAST_RESORT = frozenset(
    {None, *(one.name for one in (LANG, ESSENCE, SEARCH, QUALITY, JUDGE, *_SWARM))}
)
OnRouted = Callable[[str, str], None]
"""Receives the stage and the event of each decision."""


def ignore_routing(_stage: str, _event: str) -> None:
    """Count nothing."""


class Manager:
    """Classifies a hop, asks the state machine, and returns its decision as one settlement."""

    role = Role.MANAGER

    def __init__(
        self,
        flows: Mapping[str, Flow],
        memory: RedisMemory,
        texts: Texts,
        *,
        limits: Limits,
        quality_threshold: float,
        topics: Mapping[tuple[str, str], str] | None = None,
        on_routed: OnRouted = ignore_routing,
        on_fault: OnFault = ignore_fault,
        people: RedisPeople | None = None,
    ) -> None:
        self._flows = flows
        self._memory = memory
        self._texts = texts
        self._limits = limits
        self._quality_threshold = quality_threshold
        self._topics = topics if topics is not None else {}
        self._on_routed = on_routed
        self._on_fault = on_fault
        self._people = people
        self._pauses = Pauses(flows, memory, texts, limits=limits)

    def prefetch_memory(self, question: Question) -> MemoryRead | None:
        """Return the memory read that the broker does in the round trip that starts a message."""
        return self._memory.reads(question)

    async def handle(self, delivery: Delivery, envelope: Envelope) -> Settlement:
        """Return the settlement of this envelope."""
        return await self.decide(delivery, envelope, delivery.remaining_seconds)

    async def decide(
        self,
        delivery: Delivery,
        envelope: Envelope,
        remaining_seconds: float,
        journal: Sequence[JournalEvent] = (),
    ) -> Settlement:
        """Return the settlement; its journal has the events of `journal` before the decision."""
        flow = find_flow(self._flows, envelope.flow)
        stage = flow.stage(str(envelope.payload.get("stage") or START))
        if stage is START:
            begun = self._start(delivery, join_messages(envelope, delivery.merged))
            envelope = await self._pauses.resume(delivery.question, await begun)
            flow = find_flow(self._flows, envelope.flow)
            stage = flow.stage(str(envelope.payload.get("stage") or START))
        if stage is SHOWN:
            envelope = take_shown(envelope, delivery.merged)
        if envelope.gathered is not None:
            may_ask = StageEvent.NEEDS_INPUT in stage.events
            envelope, did = branches.gather_results(envelope, may_ask=may_ask)
        else:
            did = classify_result(
                stage, envelope.hop, envelope.payload, quality_threshold=self._quality_threshold
            )
        began = envelope.flow
        envelope = record_progress(
            envelope, stage, did, self._flows, quality_threshold=self._quality_threshold
        )
        flow = find_flow(self._flows, envelope.flow)
        facts = _facts(envelope, remaining_seconds, did, stage)
        counters = read_counters(envelope.payload)
        decision = decide(flow, stage, did, counters, self._limits, facts)
        hop = HopDecision(delivery, envelope, flow, stage, did, decision, journal)
        hop.resumed_flow = "" if envelope.flow == began else envelope.flow
        if isinstance(decision.actions[0], PauseFor):
            hop.begin_pause(
                self._pauses,
                time.time(),
                lambda stage, did: decide(flow, stage, did, counters, self._limits, facts),
            )
        if isinstance(hop.decision.actions[0], Scatter):
            hop.chosen = _choose_branches(hop)
            if not hop.chosen.begin:
                hop.skip_branches(
                    lambda stage, did: decide(flow, stage, did, counters, self._limits, facts)
                )
        return await self._settle(hop, remaining_seconds)

    async def _settle(self, hop: HopDecision, remaining_seconds: float) -> Settlement:
        self._on_routed(hop.stage.name, str(hop.did))
        match hop.decision.actions[0]:
            case Send() as send:
                return self._forward(hop, send)
            case End() as end:
                return await self._finish(hop, end)
            case Return() as returned:
                return self._return(hop, returned, remaining_seconds)
            case Scatter() as scatter:
                return self._scatter(hop, scatter, remaining_seconds)
            case PauseFor() as pause:
                raise FlowError(f"expected a pause that has begun, found {pause.resume}")

    async def _start(self, delivery: Delivery, envelope: Envelope) -> Envelope:
        """Copy the conversation's memory into the payload, so that a redelivery reads the same.

        If the client stores the conversation, the request has history and pause; they are kept.
        Turns for a person of other groups, and those before a person lost one, are left out.
        """
        found = delivery.prefetched
        if found is not None:
            remembered = self._memory.parse_recall(found)
        else:
            remembered = await self._memory.recall(delivery.question)
        groups = envelope.groups
        turns = (turn for turn in remembered.history if has_all(turn.groups or (), groups))
        earlier = (line for line in remembered.summary if has_all(line.groups, groups))
        pause = remembered.pause
        changes: dict[str, JsonValue] = {
            "history": [_json(turn) for turn in turns],
            "open_pause": _json(pause) if pause is not None else None,
        }
        changes = {name: value for name, value in changes.items() if name not in envelope.payload}
        asked = {**envelope.payload, **changes}.get("open_pause")
        if is_hidden_clarification(asked, groups):
            changes["open_pause"] = None
        changes |= {
            "history_summary": "\n".join(to_json(line.text).decode() for line in earlier),
            "history_kept": remembered.kept,
            "preferences": _json(
                remembered.preferences.changed_by(
                    await self._find_choice(delivery.question, envelope)
                )
            ),
            "statistics": dict(remembered.statistics),
        }
        return envelope.replace(payload=write_payload(envelope.payload, changes))

    async def _find_choice(self, question: Question, envelope: Envelope) -> Preferences:
        """Return what the person chose in any conversation; it takes precedence over that of this
        one.
        """
        person = _find_person(envelope)
        if self._people is None or person is None:
            return Preferences()
        return await self._people.read(question, person)

    async def _keep_choice(self, question: Question, envelope: Envelope, ended: Ended) -> None:
        person = _find_person(envelope)
        if self._people is None or person is None:
            return
        if ended.forget == "all":
            await self._people.forget(question, person)
        elif (chosen := replies.find_choice(envelope.payload)) is not None:
            await self._people.keep(question, person, chosen)
        if ended.pause is not None:
            await self._people.note_pause(question, person)

    def _scatter(
        self, hop: HopDecision, scatter: Scatter, remaining_seconds: float
    ) -> ScatterBranches:
        counters = hop.decision.counters
        changes: dict[str, JsonValue] = {
            "counters": dict(counters),
            "attempt": count_attempts(counters),
        }
        counted = hop.envelope.replace(payload=write_payload(hop.envelope.payload, changes))
        is_wave = hop.did is StageEvent.MORE
        parent, join, sends = branches.make_branches(
            counted, hop.flow, scatter, hop.chosen, shard=hop.delivery.shard, is_wave=is_wave
        )
        return ScatterBranches(
            join,
            branches.make_gather_send(parent, scatter, hop.delivery.shard),
            sends,
            need=self._limits.find_needed(scatter, len(sends)),
            at_once=self._limits.find_at_once(scatter),
            seconds=min(scatter.join.seconds, scatter.join.share * max(0.0, remaining_seconds)),
            journal=hop.encode_events(
                scatter.gather.name,
                branches.describe_plan(sends, hop.chosen, list_completed(counted.payload)),
            ),
            watch=branches.make_watch(counted, scatter, hop.delivery.shard),
        )

    def _return(self, hop: HopDecision, action: Return, remaining_seconds: float) -> ReturnResult:
        reason = hop.decision.termination_reason
        is_late = remaining_seconds <= self._limits.deadline_reserve_seconds
        return branches.make_return(
            hop.envelope,
            hop.flow,
            action,
            hop.did,
            reason,
            hop.encode_events("return"),
            is_late=is_late,
        )

    def _forward(self, hop: HopDecision, send: Send) -> Forward:
        delivery, envelope, decision = hop.delivery, hop.envelope, hop.decision
        role = str(send.stage.role)
        changes: dict[str, JsonValue] = {
            "stage": send.stage.name,
            "counters": dict(decision.counters),
            "attempt": count_attempts(decision.counters),
        }
        if hop.is_fallback:
            changes["way_fallback"] = decision.row
        if decision.sequence_place is not None:
            changes["sequence_place"] = decision.sequence_place
        if send.stage is CLARIFICATION:
            changes |= {
                "needs_clarification": True,
                "clarification_reason": (
                    decision.reason or ClarificationReason.MISSING_DETAILS
                ).value,
                "termination_reason": decision.termination_reason,
                "message_reference": envelope.message_id,
                "asking_stage": envelope.payload.get("stage"),
            }
        target = envelope.replace(
            payload=write_payload(envelope.payload, changes),
            hop=None,
            gathered=None,
            retries=0,
            sender_role=MANAGER,
            target_role=role,
            target_list=stream_key(role, delivery.shard),
        )
        resort = self._last_resort(envelope, target)
        return Forward(
            sends=(BrokerSend(role, decoded=target),),
            journal=hop.encode_events(send.stage.name),
            last_resort=resort,
            dead_letter_changes=(
                {} if resort is None else replies.dead_letter_changes(target, self._texts)
            ),
        )

    def _last_resort(self, before: Envelope, target: Envelope) -> Fields | None:
        """Return a new last resort only after stages that may change its content."""
        if before.branch or before.payload.get("stage") not in _CHANGES_LAST_RESORT:
            return None
        return add_planned_tasks(replies.last_resort(target, self._texts), target.payload)

    async def _finish(self, hop: HopDecision, end: End) -> Finish:
        delivery, envelope, decision = hop.delivery, hop.envelope, hop.decision
        events = hop.encode_events("final")
        reason = envelope.payload.get("termination_reason")
        if reason and decision.termination_reason == "":
            decision = replace(decision, termination_reason=str(reason))
        topic = self._topics.get((envelope.tenant, envelope.assistant), "")
        reply = replies.end_reply(envelope, decision, end, self._texts, topic)
        ended = await self._with_dropped(delivery, envelope, replies.remember(envelope, reply))
        ended = note_outcome(ended, envelope, reply)
        ended = ended if hop.kept is None else replace(ended, kept=hop.kept)
        await self._keep_choice(delivery.question, envelope, ended)
        language = replies.language_of(envelope.payload)
        reply = add_open_parts(reply, envelope.payload, self._texts, language)
        reply = add_offer(reply, envelope.payload, self._texts, language)
        reply = report_faults(reply, hop.faults, self._on_fault)
        forget = envelope.payload.get("forget")
        if forget in {"all", "history"}:
            # Channels that store text of the conversation have to erase it too.
            reply = {**reply, "forgot": forget}
        return Finish(
            outcome=Outcome(str(reply["outcome"])),
            reply=reply,
            journal=events,
            remember=self._memory.writes(delivery.question, ended),
            forget="all" if forget == "all" else "history" if forget == "history" else "",
        )

    async def _with_dropped(self, delivery: Delivery, envelope: Envelope, ended: Ended) -> Ended:
        # The memory read at the start is still current: only the end of a message changes it, and
        # the messages of a conversation end one after the other.
        dropped = await self._memory.overflowing(
            delivery.question,
            kept=_whole(envelope.payload.get("history_kept")),
            added=len(ended.turns),
        )
        return replace(ended, dropped=dropped) if dropped.turns else ended


def _find_person(envelope: Envelope) -> str | None:
    """Return the digest of who wrote the message; None if the channel knows nobody, or several."""
    people = envelope.payload.get("people")
    one = people[0] if isinstance(people, list) and len(people) == 1 else None
    return one if isinstance(one, str) else None


def _facts(envelope: Envelope, remaining_seconds: float, did: StageEvent, stage: Stage) -> Context:
    # Positional arguments take half the time of keyword arguments here.
    facts = Context(
        envelope.process_count,
        envelope.total_processing_time,
        remaining_seconds,
        isinstance(envelope.payload.get("best_answer"), dict),
        _reason(envelope, did, stage),
        envelope.branch != "",
        lifetime_seconds=envelope.deadline_ts - envelope.create_ts,
    )
    payload = envelope.payload
    if "branch_hops" in payload:
        facts.process_count -= _whole(payload["branch_hops"])
    if payload.get("exhausted_budget"):
        facts.stop_reason = f"budget_{payload['exhausted_budget']}"
    if payload.get("termination_reason") == TOPIC_CHANGE:
        facts.stop_reason = TOPIC_CHANGE
    if "agent_sequence" in payload:
        facts.sequence, facts.sequence_place = _sequence(payload)
    return facts


def _sequence(payload: Mapping[str, JsonValue]) -> tuple[tuple[str, ...], int]:
    """Return the planned sequence and the place of the next one in it."""
    names = payload.get("agent_sequence")
    if not isinstance(names, list):
        return (), 0
    return tuple(map(str, names)), max(0, _whole(payload.get("sequence_place")))


def _reason(envelope: Envelope, did: StageEvent, stage: Stage) -> ClarificationReason | None:
    """Return the reason of this hop; after the clarification agent, the recorded reason."""
    if stage is not CLARIFICATION:
        wrote = envelope.hop.wrote if envelope.hop is not None else ()
        if did not in _GIVES_A_REASON or "clarification_reason" not in wrote:
            return None
    value = envelope.payload.get("clarification_reason")
    return ClarificationReason(value) if value in set(ClarificationReason) else None


def _choose_branches(hop: HopDecision) -> branches.Branches:
    """Return the branches that begin now: those that waited, or those of the plan."""
    action, payload = hop.decision.actions[0], hop.envelope.payload
    if hop.did is StageEvent.MORE or not isinstance(action, Scatter):
        return branches.select_next_branches(hop.envelope)
    return branches.select_branches(action.plan(payload))


def _whole(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def _json(value: object) -> JsonValue:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", exclude_none=True) if callable(dump) else None
