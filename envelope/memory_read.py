"""Describes as data what is read of a conversation when a question of it starts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MemoryRead:
    """A part of a list (places as Redis counts them), how long it is, and whole hashes."""

    list: str
    first: int
    last: int
    hashes: tuple[str, ...]


MemoryFound = Sequence[Any]
"""What was found: the part of the list, its length, then each hash as names and values in turn."""
