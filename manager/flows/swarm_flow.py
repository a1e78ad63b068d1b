"""The flow `swarm`: a question divided among workers; one search where that fails."""

from manager.flow import Flow
from manager.flows import stages as at
from manager.flows.search_flow import SEARCHING
from manager.flows.shared_rows import CLARIFYING, make_way_in, make_way_out
from manager.flows.swarm import SWARM

SWARM_FLOW = Flow(
    "swarm",
    1,
    (
        *make_way_in(at.PLAN, rephrase=at.SEARCH),
        *SWARM,
        *SEARCHING,
        *make_way_out(again=at.SEARCH, write=at.RESPONSE),
        *CLARIFYING,
    ),
)
