"""Compares the declarations of agents with the table in the client's document 002.

The table states which attributes each agent in the main flow reads and writes.
`client_contract.toml` contains it, with a reason for every additional attribute.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agents.agent import MayAsk
from agents.roster import SPECS
from envelope.role import Role
from manager.state import MANAGER_READS, MANAGER_WRITES

Side = Literal["reads", "writes"]
SIDES: tuple[Side, ...] = ("reads", "writes")
_CONTRACT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_SECTION = """
## Beyond the client's table

Document 002 of the client has a table of what each agent of the main flow reads and writes. Agents
do more for these reasons:

| why | also reads | also writes |
|---|---|---|
"""
_LEFT_OUT = "\nIn that table, but not read or written by the agents:\n\n"


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why attributes that are not in the table are read or written; `agents` is empty if
    the reason applies to any agent.
    """

    why: str
    attributes: tuple[str, ...]
    agents: tuple[str, ...] = ()

    @classmethod
    def of(cls, entry: dict[str, Any]) -> "Reason":
        """Return the reason in an entry of the file."""
        return cls(entry["why"], tuple(entry["attributes"]), tuple(entry.get("agents", ())))


REASONS = tuple(map(Reason.of, _CONTRACT["reasons"]))
AGENTS: tuple[str, ...] = tuple(_CONTRACT["contract"])
LEFT_OUT: dict[str, str] = _CONTRACT["left_out"]


def list_additions(agent: str, side: Side) -> frozenset[str]:
    """Return the attributes that an agent declares but that are not in the client's table."""
    asking = frozenset(MayAsk.model_fields) if side == "writes" else frozenset[str]()
    return _list_declared(agent, side) - _list_agreed(agent, side) - asking


def list_omissions() -> frozenset[str]:
    """Return the entries in the client's table that no agent declares, in the format `agent reads
    attribute`.
    """
    return frozenset(
        f"{agent} {side} {name}"
        for agent in AGENTS
        for side in SIDES
        for name in _list_agreed(agent, side) - _list_declared(agent, side)
    )


def find_reason(agent: str, attribute: str) -> Reason:
    """Return why an agent uses an attribute; raises `LookupError` if no reason is stated."""
    stated = [reason for reason in REASONS if attribute in reason.attributes]
    own = [reason for reason in stated if agent in reason.agents]
    for reason in own or (reason for reason in stated if not reason.agents):
        return reason
    raise LookupError(f"expected a reason why {agent} uses {attribute!r}, found none")


def describe_additions() -> str:
    """Return the section of `contracts.md` about the client's table."""
    left_out = "".join(f"- `{what}`: {why}.\n" for what, why in LEFT_OUT.items())
    return _SECTION + "".join(map(_describe_reason, REASONS)) + _LEFT_OUT + left_out


def _describe_reason(reason: Reason) -> str:
    cells = (reason.why, *("; ".join(_list_uses(reason, side)) for side in SIDES))
    return "| " + " | ".join(cells) + " |\n"


def _list_uses(reason: Reason, side: Side) -> Iterator[str]:
    for agent in AGENTS:
        added = sorted(list_additions(agent, side))
        names = [f"`{name}`" for name in added if find_reason(agent, name) is reason]
        if names:
            yield f"{agent}: {', '.join(names)}"


def _list_agreed(agent: str, side: Side) -> frozenset[str]:
    return frozenset(_CONTRACT["contract"][agent][side])


def _list_declared(agent: str, side: Side) -> frozenset[str]:
    if agent == Role.MANAGER:
        return MANAGER_READS if side == "reads" else MANAGER_WRITES
    return frozenset(getattr(SPECS[agent], side))
