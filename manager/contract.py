"""Checks that the manager writes only the attributes that the payload catalogue assigns to it."""

from collections.abc import Mapping

from pydantic import JsonValue

from envelope.payload import CATALOGUE
from envelope.role import Role

MANAGER_WRITES = frozenset(
    attribute.name for attribute in CATALOGUE if Role.MANAGER in attribute.written_by
)


class ManagerContractError(Exception):
    """The manager tried to write an attribute that the catalogue does not give it."""


def write_payload(
    payload: Mapping[str, JsonValue], changes: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return the payload with these changes; raises `ManagerContractError` for a foreign one."""
    if not changes.keys() <= MANAGER_WRITES:
        foreign = ", ".join(sorted(changes.keys() - MANAGER_WRITES))
        raise ManagerContractError(f"the manager wrote attributes that are not its own: {foreign}")
    return {**payload, **changes}
