"""The handler of the manager, which is the only role that routes envelopes and ends messages."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

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
from envelope.conversation import ClarificationReason, Preferences, Turn
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
    LOOP_JUDGE,
    QUALITY,
    RESPONSE,
    RESUMED_WORK,
    SEARCH,
    SHOWN,
    START,
    SYNTHESIS,
    SYNTHESIZE,
    WRITE,
)
from manager.hop_decision import HopDecision, awaits_judge, record_progress
from manager.machine import Context, Decision, End, Limits, Send, decide
from manager.pauses import Pauses, is_hidden_clarification, join_messages, take_shown
from manager.state import BranchResult, Changes, State
from manager.way_report import (
    add_offer,
    add_open_parts,
    add_planned_tasks,
    list_completed,
)
from memory.conversation import Ended, RedisMemory, RedisPeople, describe_earlier

MANAGER = Role.MANAGER.value
_GIVES_A_REASON = frozenset(
    {StageEvent.ASKS, StageEvent.MANY, StageEvent.NOTHING, StageEvent.OUTSIDE}
)
_SWARM = (GATHER, RESUMED_WORK, LEDGER)
_WRITERS = (RESPONSE, WRITE, SYNTHESIS, SYNTHESIZE)
_JUDGES = (QUALITY, LOOP_JUDGE, JUDGE)
_CHANGES_LAST_RESORT = frozenset(
    {
        "",
        *(stage.name for stage in (LANG, ESSENCE, SEARCH, *_WRITERS, *_JUDGES, *_SWARM)),
    }
)
OnRouted = Callable[[str, str], None]
"""Called with the stage and the event of each decision."""


def ignore_routing(_stage: str, _event: str) -> None:
    """Ignore the decision."""


class ManagerAgent:
    """Classifies each hop, and turns the decision of the state machine into a settlement."""

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
        contact: str = "",
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
        self._contact = contact
        self._on_routed = on_routed
        self._on_fault = on_fault
        self._people = people
        self._pauses = Pauses(flows, memory, texts, limits=limits)

    def prefetch_memory(self, question: Question) -> MemoryRead | None:
        """Return the memory read for the round trip that starts a message."""
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
        """Return the settlement, whose journal starts with the events in `journal`."""
        state = State(envelope.payload)
        flow, stage = self._find_stage(envelope, state)
        if stage is START:
            envelope = await self._begin(delivery, envelope)
            state = State(envelope.payload)
            flow, stage = self._find_stage(envelope, state)
        elif stage is SHOWN:
            envelope = take_shown(envelope, delivery.merged)
            state = State(envelope.payload)
        began = envelope
        envelope, did = await self._judge(envelope, state, stage)
        if envelope is not began:
            state = State(envelope.payload)
            flow = find_flow(self._flows, envelope.flow)
        counters = state.counters
        context = _make_context(envelope, state, stage, did, remaining_seconds)

        def take(stage: Stage, did: StageEvent) -> Decision:
            return decide(flow, stage, did, counters, self._limits, context)

        hop = HopDecision(delivery, envelope, state, stage, did, take(stage, did), journal)
        hop.resumed_flow = "" if envelope.flow == began.flow else envelope.flow
        if isinstance(pause := hop.decision.actions[0], PauseFor):
            hop.begin_pause(pause, self._pauses, time.time(), take)
        if isinstance(scatter := hop.decision.actions[0], Scatter):
            hop.choose_branches(scatter, take)
        return await self._settle(hop, flow, remaining_seconds)

    def _find_stage(self, envelope: Envelope, state: State) -> tuple[Flow, Stage]:
        flow = find_flow(self._flows, envelope.flow)
        return flow, flow.stage(state.stage or START.name)

    async def _judge(
        self, envelope: Envelope, state: State, stage: Stage
    ) -> tuple[Envelope, StageEvent]:
        """Return the envelope and the event of the hop.

        The envelope contains the results of branches, the best answer so far, and the round of a
        clarification.
        """
        threshold = self._quality_threshold
        if envelope.gathered is not None:
            may_ask = StageEvent.NEEDS_INPUT in stage.events
            envelope, did = branches.gather_results(envelope, may_ask=may_ask)
        else:
            did = classify_result(stage, envelope.hop, state, quality_threshold=threshold)
        record = partial(
            record_progress, envelope, stage, did, self._flows, quality_threshold=threshold
        )
        if awaits_judge(self._flows.get(envelope.flow), stage, did):
            # Checking a long answer takes seconds of processor time; other questions must not wait.
            return await asyncio.to_thread(record), did
        return record(), did

    async def _settle(self, hop: HopDecision, flow: Flow, remaining_seconds: float) -> Settlement:
        self._on_routed(hop.stage.name, str(hop.did))
        match hop.decision.actions[0]:
            case Send() as send:
                return self._forward(hop, send)
            case End() as end:
                return await self._finish(hop, end)
            case Return() as returned:
                return self._return(hop, flow, returned, remaining_seconds)
            case Scatter() as scatter:
                return self._scatter(hop, flow, scatter, remaining_seconds)
            case PauseFor() as pause:
                raise FlowError(f"expected a pause that has begun, found {pause.resume}")

    async def _begin(self, delivery: Delivery, envelope: Envelope) -> Envelope:
        """Return the envelope with which a message starts, or continues after its pause."""
        joined = join_messages(envelope, delivery.merged)
        remembered = await self._recall(delivery, joined)
        return await self._pauses.resume(delivery.question, remembered)

    async def _recall(self, delivery: Delivery, envelope: Envelope) -> Envelope:
        """Copy the conversation memory into the payload, so that a redelivery reads the same
        values.

        If the client stores the conversation, the history and pause in the request take precedence.
        Turns whose groups the user does not have are excluded.
        """
        if delivery.prefetched is not None:
            remembered = self._memory.parse_recall(delivery.prefetched)
        else:
            remembered = await self._memory.recall(delivery.question)
        state, groups = State(envelope.payload), envelope.groups
        earlier: list[Turn] = []
        chosen = await self._find_choice(delivery.question, envelope)
        if State.history not in state:
            turns = [turn for turn in remembered.history if has_all(turn.groups or (), groups)]
            state = state.changed(history=turns)
            earlier = [turn for turn in remembered.earlier if has_all(turn.groups or (), groups)]
        if State.open_pause not in state:
            state = state.changed(open_pause=remembered.pause)
        if is_hidden_clarification(state.open_pause, groups):
            state = state.changed(open_pause=None)
        if self._pauses.is_over(state.open_pause, envelope.create_ts):
            state = state.changed(open_pause=None, closes_pause=True)
        summary = [line for line in remembered.summary if has_all(line.groups, groups)]
        state = state.changed(
            history_summary=describe_earlier(summary, earlier),
            history_kept=remembered.kept,
            preferences=remembered.preferences.changed_by(chosen),
            statistics=dict(remembered.statistics),
        )
        return envelope.replace(payload=state.json)

    async def _find_choice(self, question: Question, envelope: Envelope) -> Preferences:
        """Return the preferences of the user, which override those of the conversation."""
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
        elif (chosen := State(envelope.payload).remember_preferences) is not None:
            await self._people.keep(question, person, chosen)
        if ended.pause is not None:
            await self._people.note_pause(question, person)

    def _scatter(
        self, hop: HopDecision, flow: Flow, scatter: Scatter, remaining_seconds: float
    ) -> ScatterBranches:
        decision, completed = hop.decision, list_completed(hop.state)
        hop.change(hop.state.changed(counters=decision.counters, attempt=decision.attempt))
        is_wave = hop.did is StageEvent.MORE
        parent, join, sends = branches.make_branches(
            hop.envelope, flow, scatter, hop.chosen, shard=hop.delivery.shard, is_wave=is_wave
        )
        return ScatterBranches(
            join,
            branches.make_gather_send(parent, scatter, hop.delivery.shard),
            sends,
            need=self._limits.find_needed(scatter, len(sends)),
            at_once=self._limits.find_at_once(scatter),
            seconds=min(scatter.join.seconds, scatter.join.share * max(0.0, remaining_seconds)),
            journal=hop.encode_events(
                scatter.gather.name, branches.describe_plan(sends, hop.chosen, completed)
            ),
            watch=branches.make_watch(hop.envelope, scatter, hop.delivery.shard),
        )

    def _return(
        self, hop: HopDecision, flow: Flow, action: Return, remaining_seconds: float
    ) -> ReturnResult:
        is_late = remaining_seconds <= self._limits.deadline_reserve_seconds
        reason = hop.decision.termination_reason
        result, is_good = branches.make_result(
            hop.envelope, action, hop.did, reason, is_late=is_late
        )
        journal = hop.encode_events("return", BranchResult(result).copy(BranchResult.left_out))
        return ReturnResult(result, is_good, branches.list_join_roles(flow), journal)

    def _forward(self, hop: HopDecision, send: Send) -> Forward:
        delivery, envelope, decision = hop.delivery, hop.envelope, hop.decision
        role, state = send.stage.role.value, hop.state
        changes: Changes = {
            "stage": send.stage.name,
            "counters": decision.counters,
            "attempt": decision.attempt,
        }
        if decision.is_fallback:
            changes["way_fallback"] = decision.row
        if decision.sequence_place is not None:
            changes["sequence_place"] = decision.sequence_place
        if send.stage is CLARIFICATION:
            reason = decision.reason or ClarificationReason.MISSING_DETAILS
            changes["needs_clarification"] = True
            changes["clarification_reason"] = reason.value
            changes["termination_reason"] = decision.termination_reason
            changes["message_reference"] = envelope.message_id
            changes["asking_stage"] = state.stage
        sent = state.changed(**changes)
        target = envelope.replace(
            payload=sent.json,
            hop=None,
            gathered=None,
            retries=0,
            sender_role=MANAGER,
            target_role=role,
            target_list=stream_key(role, delivery.shard),
        )
        resort, changes_if_dead = self._make_last_resort(state, sent, target)
        return Forward(
            sends=(BrokerSend(role, decoded=target),),
            journal=hop.encode_events(send.stage.name),
            last_resort=resort,
            dead_letter_changes=changes_if_dead,
        )

    def _make_last_resort(
        self, before: State, sent: State, target: Envelope
    ) -> tuple[Fields | None, Fields]:
        """Return a new fallback reply, or None if the last stage cannot have changed the reply."""
        if target.branch or before.stage not in _CHANGES_LAST_RESORT:
            return None, {}
        resort, changes_if_dead = replies.make_last_resort(target, self._texts)
        if State.swarm_plan in sent:
            resort = add_planned_tasks(resort, sent)
        return resort, changes_if_dead

    async def _finish(self, hop: HopDecision, end: End) -> Finish:
        delivery, envelope, decision, state = hop.delivery, hop.envelope, hop.decision, hop.state
        events = hop.encode_events("final")
        if state.termination_reason and decision.termination_reason == "":
            decision = replace(decision, termination_reason=state.termination_reason)
        topic = self._topics.get((envelope.tenant, envelope.assistant), "")
        reply = replies.end_reply(envelope, decision, end, self._texts, topic)
        ended = await self._with_dropped(delivery, state, replies.remember(envelope, reply))
        ended = ended if hop.kept is None else replace(ended, kept=hop.kept)
        await self._keep_choice(delivery.question, envelope, ended)
        language = replies.language_of(state)
        reply = add_open_parts(reply, state, self._texts, language)
        reply = add_offer(reply, state, self._texts, language)
        is_unmatched = state.search_quality == "poor"
        reply = replies.add_contact(
            reply, self._contact, self._texts, language, is_unmatched=is_unmatched
        )
        reply = report_faults(reply, hop.faults, self._on_fault)
        forget = state.forget
        if forget in {"all", "history"}:
            # Channels that store texts of the conversation must erase them as well.
            reply = {**reply, "forgot": forget}
        return Finish(
            outcome=Outcome(str(reply["outcome"])),
            reply=reply,
            journal=events,
            remember=self._memory.writes(delivery.question, ended),
            forget="all" if forget == "all" else "history" if forget == "history" else "",
        )

    async def _with_dropped(self, delivery: Delivery, state: State, ended: Ended) -> Ended:
        # The memory that was read at the start is still current: only the end of a message changes
        # it, and the messages of a conversation end one after the other.
        dropped = await self._memory.overflowing(
            delivery.question, kept=state.history_kept, added=len(ended.turns)
        )
        return replace(ended, dropped=dropped) if dropped.turns else ended


def _find_person(envelope: Envelope) -> str | None:
    """Return the digest of the author, or None unless the message has exactly one known author."""
    people = State(envelope.payload).people
    return people[0] if len(people) == 1 else None


def _make_context(
    envelope: Envelope, state: State, stage: Stage, did: StageEvent, remaining_seconds: float
) -> Context:
    best = state.best_answer
    # Hot path: positional arguments take half the time of keyword arguments here.
    context = Context(
        envelope.process_count - state.branch_hops,
        envelope.total_processing_time,
        remaining_seconds,
        best is not None and not best.is_unjudged,
        best is not None and best.is_unjudged,
        _find_reason(envelope, state, stage, did),
        envelope.branch != "",
        lifetime_seconds=envelope.deadline_ts - envelope.create_ts,
    )
    if state.exhausted_budget:
        context.stop_reason = f"budget_{state.exhausted_budget}"
    if state.termination_reason == TOPIC_CHANGE:
        context.stop_reason = TOPIC_CHANGE
    if sequence := state.agent_sequence:
        context.sequence, context.sequence_place = sequence, max(0, state.sequence_place)
    return context


def _find_reason(
    envelope: Envelope, state: State, stage: Stage, did: StageEvent
) -> ClarificationReason | None:
    """Return the reason that this hop wrote or, after the clarification agent, the recorded one."""
    if stage is not CLARIFICATION:
        wrote = envelope.hop.wrote if envelope.hop is not None else ()
        if did not in _GIVES_A_REASON or State.clarification_reason.name not in wrote:
            return None
    return state.clarification_reason
