"""Derives from the flow which stages a question passes, and what an agent can write."""

from agents.roster import SPECS
from envelope.role import Role
from manager.flows.search_flow import SEARCH_FLOW


def main_path() -> list[str]:
    """Return the stages of a question that is answered at the first attempt, `start` first."""
    return [stage.name for stage in SEARCH_FLOW.main_path]


def plain_writes(role: Role) -> dict[str, object]:
    """Return writes that let a question pass a stage which only needs some writes."""
    return {min(SPECS[role.value].writes): "-"}
