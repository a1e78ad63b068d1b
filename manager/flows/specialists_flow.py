"""The flow `specialists`: triage plans a sequence of specialists, whose findings are synthesised."""

from manager.flow import Counter, Flow, Row
from manager.flows import stages as at
from manager.flows.search_flow import SEARCHING
from manager.flows.shared_rows import CLARIFYING, make_way_in, make_way_out
from manager.flows.specialists import BEGIN, CALLED, TEAM, TEAM_1
from manager.stage_event import StageEvent

MOST_HOPS = 20_000
"""Every branch has its own counters, and plans have at most 256 branches."""

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


def _make_flow(version: int, team: tuple[Row, ...]) -> Flow:
    return Flow(
        "specialists",
        version,
        (
            *make_way_in(at.TRIAGE, rephrase=at.SEARCH),
            *_TRIAGE,
            *team,
            *CALLED,
            *SEARCHING,
            *make_way_out(again=at.SYNTHESIS, write=at.SYNTHESIS),
            *CLARIFYING,
        ),
        most_hops=MOST_HOPS,
    )


SPECIALISTS_FLOW_1 = _make_flow(1, TEAM_1)
"""For questions that began before there were further rounds."""
SPECIALISTS_FLOW = _make_flow(2, TEAM)
