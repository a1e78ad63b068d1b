"""The flow `auto`: triage chooses a way for each question."""

from manager.flow import Counter, Flow, Row, StageEvent, Target
from manager.flows import stages as at
from manager.flows.search_flow import SEARCHING
from manager.flows.shared_rows import CLARIFYING, make_way_in, make_way_out
from manager.flows.specialists import BEGIN, MOST_HOPS, TEAM, TEAM_1
from manager.flows.swarm import SWARM, SWARM_1
from manager.flows.tool_loop import TOOL_LOOP, TOOL_LOOP_1


def _make_triage(specialists: Target, swarm: Target) -> tuple[Row, ...]:
    # fmt: off
    return (
        #   stage              event                         next stage        counter             at its limit
        Row(at.TRIAGE,         StageEvent.SEARCHES,          at.SEARCH),
        Row(at.TRIAGE,         StageEvent.USES_TOOLS,        at.REASON),
        Row(at.TRIAGE,         StageEvent.USES_SPECIALISTS,  specialists,      Counter.SEQUENCE,   at.SEARCH),
        Row(at.TRIAGE,         StageEvent.USES_SWARM,        swarm),
        Row(at.TRIAGE,         StageEvent.ASKS,              at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
        Row(at.TRIAGE,         StageEvent.FAILED,            at.SEARCH,        is_fallback=True),
    )
    # fmt: on


AUTO_FLOW_1 = Flow(
    "auto",
    1,
    (
        *make_way_in(at.TRIAGE, rephrase=at.SEARCH),
        *_make_triage(at.REASON, at.REASON),
        *TOOL_LOOP_1,
        *SEARCHING,
        *make_way_out(again=at.SEARCH, write=at.WRITE),
        *CLARIFYING,
    ),
)
"""For questions that began before there were specialists and swarms."""


def _make_auto_flow(
    version: int, team: tuple[Row, ...], loop: tuple[Row, ...], swarm: tuple[Row, ...]
) -> Flow:
    return Flow(
        "auto",
        version,
        (
            *make_way_in(at.TRIAGE, rephrase=at.SEARCH),
            *_make_triage(BEGIN, at.PLAN),
            *loop,
            *team,
            *swarm,
            *SEARCHING,
            *make_way_out(again=at.SEARCH, write=at.WRITE),
            *CLARIFYING,
        ),
        most_hops=MOST_HOPS,
    )


AUTO_FLOW_2 = _make_auto_flow(2, TEAM_1, TOOL_LOOP_1, SWARM_1)
"""For questions that began before specialists could work in a further round."""
AUTO_FLOW_3 = _make_auto_flow(3, TEAM, TOOL_LOOP_1, SWARM_1)
"""For questions that began when a round without new calls wrote and assessed once more."""
AUTO_FLOW_4 = _make_auto_flow(4, TEAM, TOOL_LOOP, SWARM_1)
"""For questions that began when messages that waited were not looked at."""
AUTO_FLOW = _make_auto_flow(5, TEAM, TOOL_LOOP, SWARM)
