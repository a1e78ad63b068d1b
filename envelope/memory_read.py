"""Memory reads as data: which keys the broker reads when it starts a message."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MemoryRead:
    """A range of a list (indexes as in `LRANGE`), its length, and complete hashes."""

    list: str
    first: int
    last: int
    hashes: tuple[str, ...]


MemoryFound = Sequence[Any]
"""The result: the range of the list, its length, then each hash as alternating names and values."""
