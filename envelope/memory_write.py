"""Describes memory writes as data: decided by the manager, applied when a question ends."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(slots=True, kw_only=True)
class Append:
    """Append to a list and keep its newest `keep` entries; 1 or more, as all of these numbers."""

    key: str
    values: tuple[str, ...]
    keep: int
    ttl_seconds: int
    kind: Literal["append"] = field(default="append", init=False)


@dataclass(slots=True, kw_only=True)
class SetFields:
    """Set fields of a hash."""

    key: str
    fields: dict[str, str]
    ttl_seconds: int
    kind: Literal["set_fields"] = field(default="set_fields", init=False)


@dataclass(slots=True, kw_only=True)
class Increment:
    """Add to numeric fields of a hash."""

    key: str
    fields: dict[str, float]
    ttl_seconds: int
    kind: Literal["increment"] = field(default="increment", init=False)


@dataclass(slots=True, kw_only=True)
class Delete:
    """Delete a key."""

    key: str
    kind: Literal["delete"] = field(default="delete", init=False)


MemoryWrite = Append | SetFields | Increment | Delete
