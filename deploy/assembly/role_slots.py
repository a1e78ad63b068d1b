"""How many instances of each role run, and how many envelopes each of them processes at a time."""

from agents.roster import AGENTS
from config.settings import Settings
from manager.flows.search_flow import SEARCH_FLOW

INSTANCES = {"manager": 1, **{spec.role.value: spec.instances for spec in AGENTS}}
"""The instances of each role in one `refdesk up`; the agents declare theirs."""

CONCURRENCY = {"manager": 64, **{spec.role.value: spec.slots for spec in AGENTS}}
"""The number of envelopes that one instance processes concurrently; the agents declare theirs."""

_ALWAYS = ("manager", *(stage.name for stage in SEARCH_FLOW.main_path[1:]))
"""Roles that every answered question passes."""


def instances_of(settings: Settings, role: str) -> int:
    """Return the number of instances of a role in one `refdesk up`."""
    return settings.instances.get(role, INSTANCES[role])


def concurrency_of(settings: Settings, role: str) -> int:
    """Return the number of envelopes that one instance of a role processes concurrently."""
    return settings.concurrency.get(role, CONCURRENCY[role])


def count_smallest_role(settings: Settings) -> int:
    """Return the number of slots of the role that has the fewest in one `refdesk up`."""
    return min(instances_of(settings, role) * concurrency_of(settings, role) for role in _ALWAYS)
