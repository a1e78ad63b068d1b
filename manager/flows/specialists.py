"""The flow `specialists`, in which each specialist runs in a branch, in parallel if its inputs are
available.

A branch starts at `specialist`, whose row leads to the stage of the specialist. A specialist that
calls tools runs again with their results. A specialist with too much text for one call splits the
text into parts, each of which is processed in a branch, and runs again to combine the results. A
failure becomes an entry of `errors`, and the other specialists continue.
"""

from collections.abc import Sequence

from envelope.conversation import ClarificationReason as Reason
from envelope.role import Role
from envelope.specialists import NEEDS, SpecialistName, list_waves
from manager.flow import (
    Counter,
    Join,
    Next,
    Return,
    Row,
    Scatter,
    Stage,
    StageEvent,
    make_gather_stage,
)
from manager.flows import stages as at
from manager.flows.released import make_flow
from manager.flows.search_flow import SEARCHING
from manager.flows.shared_rows import CLARIFYING, make_way_in, make_way_out
from manager.flows.tool_loop import list_calls
from manager.state import BranchItem, PartView, State

HANDED_OVER = (
    "extracted", "classification", "checklist", "verdicts", "risks", "citation_audit", "gaps",
    "errors",
)  # fmt: skip
"""Attributes that specialists write for later ones."""
_OUTPUTS = {
    SpecialistName.EXTRACTOR: "extracted",
    SpecialistName.CLASSIFIER: "classification",
    SpecialistName.REQUIREMENT_EXTRACTOR: "checklist",
    SpecialistName.COMPLIANCE: "verdicts",
    SpecialistName.RISK_VERIFIER: "risks",
    SpecialistName.CITATION_AUDITOR: "citation_audit",
    SpecialistName.GAP_SYNTHESIZER: "gaps",
    SpecialistName.REPORT_GENERATOR: "review_report",
}
"""The only attribute that each branch returns. Inherited attributes may be outdated in a further
round.
"""
_SHARED = ("errors", "tool_executions")
_RESULT = Return(_SHARED, notes_failure=True)
_PART_RESULT = Return(("stored_parts", "errors", "tool_executions"), notes_failure=True)
_LONGEST_LABEL = 100


def list_specialists(state: State) -> Sequence[BranchItem]:
    """Return a branch for each specialist of the next wave, or none after the last wave.

    If the synthesis requested a further round, its waves follow the waves of the plan.
    """
    further = state.further_round
    done, planned = state.counters.get(Counter.SEQUENCE.value, 0), list_waves(state.agent_sequence)
    waves = planned if further is None else (*planned, *list_waves(further.names))
    wave = waves[done] if done < len(waves) else ()
    focus = "" if further is None or done < len(planned) else further.focus
    return [
        BranchItem(
            name.value,
            {"agent_sequence": [name.value], "sequence_place": 0, "round_focus": focus},
            label=name.replace("_", " "),
        )
        for name in wave
    ]


def list_parts(state: State) -> Sequence[BranchItem]:
    """Return a branch for each planned part."""
    return [
        BranchItem(part.key, {"part": part.json}, label=_make_label(part))
        for part in state.part_plan
    ]


def _make_label(part: PartView) -> str:
    return " ".join((part.label or part.key)[:_LONGEST_LABEL].split())


def _make_rows(stage: Stage, result: Return, parts: Stage | None = None) -> tuple[Row, ...]:
    """Return the rows of a specialist, or of a part of its work, including its tool calls."""
    results = make_gather_stage(f"{stage}_results")
    calls = Scatter(at.ACT, results, list_calls, Join(seconds=120.0, at_once=64, share=0.4))
    # fmt: off
    rows = (
        Row(stage,   StageEvent.DONE,     result),
        Row(stage,   StageEvent.CALLS,    calls,  Counter.TURN, result),
        Row(stage,   StageEvent.FAILED,   result),
        Row(results, StageEvent.GATHERED, stage),
        Row(results, StageEvent.MORE,     calls,  Counter.WAVE, stage),
        Row(results, StageEvent.FAILED,   stage),
    )
    # fmt: on
    return rows if parts is None else (*rows, *_make_part_rows(stage, parts, result))


def _make_part_rows(stage: Stage, part: Stage, result: Return) -> tuple[Row, ...]:
    joined = make_gather_stage(f"{part}s")
    divide = Scatter(part, joined, list_parts, Join(seconds=86_400.0, at_once=8, share=0.6))
    # fmt: off
    return (
        Row(stage,  StageEvent.SPLITS,   divide, Counter.TURN, result),
        Row(joined, StageEvent.GATHERED, stage),
        Row(joined, StageEvent.MORE,     divide, Counter.WAVE, stage),
        Row(joined, StageEvent.FAILED,   stage),
        *_make_rows(part, _PART_RESULT),
    )
    # fmt: on


_STAGES = {
    name: at.make_specialist_stage(
        Role(name), splits=name in {"requirement_extractor", "compliance"}
    )
    for name in NEEDS
    if name is not SpecialistName.SYNTHESIS
}
_PARTS = {
    SpecialistName.REQUIREMENT_EXTRACTOR: at.make_specialist_stage(
        Role.REQUIREMENT_EXTRACTOR, name="requirement_part"
    ),
    SpecialistName.COMPLIANCE: at.make_specialist_stage(Role.COMPLIANCE, name="compliance_part"),
}


def _return_own(name: SpecialistName) -> Return:
    return Return((_OUTPUTS[name], *_SHARED), notes_failure=True)


_ACT_RESULT = Return(("multi_tool_results", "tool_executions"))
BEGIN = Scatter(
    at.SPECIALIST,
    at.FINDINGS,
    list_specialists,
    Join(seconds=86_400.0, at_once=8, share=0.8),
    HANDED_OVER,
)


# fmt: off
TEAM: tuple[Row, ...] = (
    #   stage              event                       next stage        counter             at its limit       reason
    Row(at.FINDINGS,       StageEvent.GATHERED,        BEGIN,            Counter.SEQUENCE,   at.SYNTHESIS),
    Row(at.FINDINGS,       StageEvent.MORE,            BEGIN,            Counter.SEQUENCE,   at.SYNTHESIS),
    Row(at.FINDINGS,       StageEvent.FAILED,          at.SYNTHESIS),
    Row(at.SPECIALIST,     StageEvent.DONE,            Next(tuple(_STAGES.values()), _RESULT)),
    Row(at.SPECIALIST,     StageEvent.FAILED,          _RESULT),
    *(row for name, stage in _STAGES.items() for row in _make_rows(stage, _return_own(name), _PARTS.get(name))),
    Row(at.SYNTHESIS,      StageEvent.DONE,            at.QUALITY),
    Row(at.SYNTHESIS,      StageEvent.AGAIN,           BEGIN,            Counter.SEQUENCE,   at.QUALITY),
    Row(at.SYNTHESIS,      StageEvent.NOTHING_NEW,     at.CLARIFICATION, None,               None,              Reason.INSUFFICIENT_CONTEXT),
    Row(at.SYNTHESIS,      StageEvent.ASKS,            at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
    Row(at.SYNTHESIS,      StageEvent.NOTHING,         at.SEARCH,        is_fallback=True),
    Row(at.SYNTHESIS,      StageEvent.FAILED,          at.SEARCH,        is_fallback=True),
)
# fmt: on
CALLED: tuple[Row, ...] = (
    Row(at.ACT, StageEvent.DONE, _ACT_RESULT),
    Row(at.ACT, StageEvent.FAILED, _ACT_RESULT),
)
"""The rows of a tool call, for flows without the tool loop."""


MOST_HOPS = 20_000
"""The limit is high because every branch has its own counters, and a plan has up to 256
branches.
"""

# fmt: off
_TRIAGE: tuple[Row, ...] = (
    #   stage              event                         next stage        counter             at its limit
    Row(at.TRIAGE,         StageEvent.USES_SPECIALISTS,  BEGIN,            Counter.SEQUENCE,   at.SYNTHESIS),
    Row(at.TRIAGE,         StageEvent.SEARCHES,          BEGIN,            Counter.SEQUENCE,   at.SYNTHESIS),
    Row(at.TRIAGE,         StageEvent.USES_TOOLS,        BEGIN,            Counter.SEQUENCE,   at.SYNTHESIS),
    Row(at.TRIAGE,         StageEvent.USES_SWARM,        BEGIN,            Counter.SEQUENCE,   at.SYNTHESIS),
    Row(at.TRIAGE,         StageEvent.ASKS,              at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
    Row(at.TRIAGE,         StageEvent.FAILED,            at.SEARCH,        is_fallback=True),
)
# fmt: on


SPECIALISTS_FLOW = make_flow(
    "specialists",
    (
        *make_way_in(at.TRIAGE, rephrase=at.SEARCH),
        *_TRIAGE,
        *TEAM,
        *CALLED,
        *SEARCHING,
        *make_way_out(again=at.SYNTHESIS, write=at.SYNTHESIS),
        *CLARIFYING,
    ),
    most_hops=MOST_HOPS,
)
