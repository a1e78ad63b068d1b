"""Memory reads and writes, represented as data that the manager creates and the broker applies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(slots=True, kw_only=True)
class Append:
    """Append to a list, and trim it to its newest `keep` entries."""

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
MemoryFound = Sequence[Any]
"""The result of a read: the range of the list, its length, and then each hash as alternating names
and values.
"""


@dataclass(frozen=True, slots=True)
class MemoryRead:
    """A read of a list range (indexes as in `LRANGE`), of the list's length, and of complete
    hashes.
    """

    list: str
    first: int
    last: int
    hashes: tuple[str, ...]
