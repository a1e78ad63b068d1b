"""The flow `tools`: a loop of planned tool calls; one search where the loop fails."""

from manager.flow import Flow, Row
from manager.flows import stages as at
from manager.flows.search_flow import SEARCHING
from manager.flows.shared_rows import CLARIFYING, make_way_in, make_way_out
from manager.flows.tool_loop import TOOL_LOOP, TOOL_LOOP_1


def _make_flow(version: int, loop: tuple[Row, ...]) -> Flow:
    return Flow(
        "tools",
        version,
        (
            *make_way_in(at.REASON, rephrase=at.SEARCH),
            *loop,
            *SEARCHING,
            *make_way_out(again=at.REASON, write=at.WRITE),
            *CLARIFYING,
        ),
    )


TOOLS_FLOW_1 = _make_flow(1, TOOL_LOOP_1)
"""For questions that began when a round without new calls wrote and assessed once more."""
TOOLS_FLOW = _make_flow(2, TOOL_LOOP)
