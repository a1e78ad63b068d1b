"""The flows of the manager, with one module for each way of answering."""

from manager.flow import Flow
from manager.flows.auto_flow import AUTO_FLOW
from manager.flows.released import read_released, restore_flows
from manager.flows.search_flow import SEARCH_FLOW
from manager.flows.specialists import SPECIALISTS_FLOW
from manager.flows.swarm import SWARM_FLOW
from manager.flows.tool_loop import TOOLS_FLOW

EVERY = (SEARCH_FLOW, TOOLS_FLOW, SPECIALISTS_FLOW, SWARM_FLOW, AUTO_FLOW)

NEWEST = {flow.name: flow.identifier for flow in EVERY}
"""The identifier of the current version of each flow, by flow name."""

_FIRST = "assistant"
"""The identifier of the flow `search` before flows had versions."""

FLOWS: dict[str, Flow] = {
    _FIRST: SEARCH_FLOW,
    **{flow.identifier: flow for flow in EVERY},
    **restore_flows(EVERY, read_released()),
}
"""Every flow that an open message may use, by the identifier in its envelope."""
