"""The flow `auto`, in which triage chooses a way of answering for each question."""

from manager.flow import Counter, Row, StageEvent
from manager.flows import stages as at
from manager.flows.released import make_flow
from manager.flows.search_flow import SEARCHING
from manager.flows.shared_rows import CLARIFYING, make_way_in, make_way_out
from manager.flows.specialists import BEGIN, MOST_HOPS, TEAM
from manager.flows.swarm import SWARM
from manager.flows.tool_loop import TOOL_LOOP

# fmt: off
_TRIAGE: tuple[Row, ...] = (
    #   stage              event                         next stage        counter             at its limit
    Row(at.TRIAGE,         StageEvent.SEARCHES,          at.SEARCH),
    Row(at.TRIAGE,         StageEvent.USES_TOOLS,        at.REASON),
    Row(at.TRIAGE,         StageEvent.USES_SPECIALISTS,  BEGIN,            Counter.SEQUENCE,   at.SEARCH),
    Row(at.TRIAGE,         StageEvent.USES_SWARM,        at.PLAN),
    Row(at.TRIAGE,         StageEvent.ASKS,              at.CLARIFICATION, Counter.ROUND,      at.CLARIFICATION),
    Row(at.TRIAGE,         StageEvent.FAILED,            at.SEARCH,        is_fallback=True),
)
# fmt: on

AUTO_FLOW = make_flow(
    "auto",
    (
        *make_way_in(at.TRIAGE, rephrase=at.SEARCH),
        *_TRIAGE,
        *TOOL_LOOP,
        *TEAM,
        *SWARM,
        *SEARCHING,
        *make_way_out(again=at.SEARCH, write=at.RESPONSE),
        *CLARIFYING,
    ),
    most_hops=MOST_HOPS,
)
