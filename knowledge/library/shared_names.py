"""Finds the passages that mention a rare name, code or quoted phrase.

Ingestion writes the names of each passage with its document. Names that many passages have are no
connection between two of them, and are not kept.
"""

from collections.abc import Iterable, Mapping

MOST_CHUNKS = 30_000
"""A larger index has no list of names: it would take too much memory in every process."""


class SharedNames:
    """The passages of each name that at most `most_common` passages mention."""

    def __init__(self, mentions: Iterable[tuple[str, Iterable[str]]], *, most_common: int) -> None:
        self.most_common = most_common
        found: dict[str, list[str]] = {}
        for chunk_id, names in mentions:
            for name in names:
                chunks = found.setdefault(name, [])
                if len(chunks) <= most_common:
                    chunks.append(chunk_id)
        self._chunks: Mapping[str, tuple[str, ...]] = {
            name: tuple(chunks) for name, chunks in found.items() if 1 < len(chunks) <= most_common
        }

    def find(self, name: str) -> tuple[str, ...]:
        """Return the ids of the passages that mention a name; none if it is too common."""
        return self._chunks.get(name, ())
