"""The flow `tools`: a loop of planned tool calls; one search where the loop fails."""

from manager.flow import Flow
from manager.flows import stages as at
from manager.flows.search_flow import SEARCHING
from manager.flows.shared_rows import CLARIFYING, make_way_in, make_way_out
from manager.flows.tool_loop import TOOL_LOOP

TOOLS_FLOW = Flow(
    "tools",
    1,
    (
        *make_way_in(at.REASON, rephrase=at.SEARCH),
        *TOOL_LOOP,
        *SEARCHING,
        *make_way_out(again=at.REASON, write=at.WRITE),
        *CLARIFYING,
    ),
)
