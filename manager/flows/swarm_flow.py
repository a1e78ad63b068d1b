"""The flow `swarm`: a question divided among workers; one search where that fails."""

from manager.flow import Flow, Row
from manager.flows import stages as at
from manager.flows.search_flow import SEARCHING
from manager.flows.shared_rows import CLARIFYING, make_way_in, make_way_out
from manager.flows.swarm import SWARM, SWARM_1


def _make_flow(version: int, swarm: tuple[Row, ...]) -> Flow:
    return Flow(
        "swarm",
        version,
        (
            *make_way_in(at.PLAN, rephrase=at.SEARCH),
            *swarm,
            *SEARCHING,
            *make_way_out(again=at.SEARCH, write=at.RESPONSE),
            *CLARIFYING,
        ),
    )


SWARM_FLOW_1 = _make_flow(1, SWARM_1)
"""For questions that began when messages that waited were not looked at."""
SWARM_FLOW = _make_flow(2, SWARM)
