"""Finds the passages that mention a rare name, code or quoted phrase.

The names are read from the texts of an index once after each change. Names that many passages have
are no connection between two of them, and are not kept.
"""

from collections.abc import Iterable, Mapping

from knowledge.library.mentioned_names import find_mentioned_names

MOST_CHUNKS = 30_000
"""A larger index has no list of names: it would take too much memory in every process."""


class SharedNames:
    """The passages of each name that at most `most_common` passages mention."""

    def __init__(self, texts: Iterable[tuple[str, str]], *, most_common: int) -> None:
        self.most_common = most_common
        found: dict[str, list[str]] = {}
        for chunk_id, text in texts:
            for name in find_mentioned_names(text):
                chunks = found.setdefault(name, [])
                if len(chunks) <= most_common:
                    chunks.append(chunk_id)
        self._chunks: Mapping[str, tuple[str, ...]] = {
            name: tuple(chunks) for name, chunks in found.items() if 1 < len(chunks) <= most_common
        }

    def find(self, name: str) -> tuple[str, ...]:
        """Return the ids of the passages that mention a name; none if it is too common."""
        return self._chunks.get(name, ())
