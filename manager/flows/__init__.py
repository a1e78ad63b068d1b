"""The flows of the manager: one file for each way of answering."""

from manager.flow import Flow
from manager.flows.auto_flow import AUTO_FLOW, AUTO_FLOW_1, AUTO_FLOW_2, AUTO_FLOW_3, AUTO_FLOW_4
from manager.flows.search_flow import SEARCH_FLOW
from manager.flows.specialists import SPECIALISTS_FLOW, SPECIALISTS_FLOW_1
from manager.flows.swarm import SWARM_FLOW, SWARM_FLOW_1
from manager.flows.tool_loop import TOOLS_FLOW, TOOLS_FLOW_1

EVERY = (SEARCH_FLOW, TOOLS_FLOW, SPECIALISTS_FLOW, SWARM_FLOW, AUTO_FLOW)

_FIRST = "assistant"
"""What envelopes called version 1 of the flow `search` before flows had versions."""

_EARLIER = (
    TOOLS_FLOW_1, SPECIALISTS_FLOW_1, SWARM_FLOW_1,
    AUTO_FLOW_1, AUTO_FLOW_2, AUTO_FLOW_3, AUTO_FLOW_4,
)  # fmt: skip

NEWEST = {flow.name: flow.identifier for flow in EVERY}
"""The version that a new message begins with, by the name of its flow."""

FLOWS: dict[str, Flow] = {
    _FIRST: SEARCH_FLOW,
    **{flow.identifier: flow for flow in (*EVERY, *_EARLIER)},
}
"""Every flow that an open message may have begun with, by the name in its envelope.

A changed flow is a new version; the version before it stays for one release.
"""
