"""The number of instances of each role, and the number of envelopes that each instance processes
concurrently.
"""

from collections.abc import Mapping

from agents.roster import AGENTS
from manager.flows.search_flow import SEARCH_FLOW

INSTANCES = {"manager": 1, **{spec.role.value: spec.instances for spec in AGENTS}}
"""The instances of each role in one `refdesk up`; agents declare their own numbers."""

CONCURRENCY = {"manager": 64, **{spec.role.value: spec.slots for spec in AGENTS}}
"""The number of envelopes that one instance processes concurrently; agents declare their own
numbers.
"""

_ALWAYS = ("manager", *(stage.name for stage in SEARCH_FLOW.main_path[1:]))
"""Roles that every answered question passes through."""


def count_smallest_role(instances: Mapping[str, int], concurrency: Mapping[str, int]) -> int:
    """Return the number of slots of the role with the fewest slots in one `refdesk up`.

    The arguments are settings that override the numbers of some roles.
    """
    every, slots = {**INSTANCES, **instances}, {**CONCURRENCY, **concurrency}
    return min(every[role] * slots[role] for role in _ALWAYS)
