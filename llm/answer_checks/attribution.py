"""Finds the source of a sentence of an answer that has no citation."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from llm.offline.judge import SUPPORTED
from llm.offline.support import foreign_facts, support
from llm.tasks.respond import PromptSource

MOST_LOOKUPS = 60
"""The number of sentences of one answer that are compared with every source, to limit the time."""


class Attribution:
    """Finds the source that supports a sentence, by its words, numbers and identifiers.

    Words of different languages cannot be compared, so no source is found for a sentence in another
    language.
    """

    def __init__(self, sources: Iterable[PromptSource]) -> None:
        self._sources = tuple(sources)
        self._lookups = 0

    def find(self, sentence: str) -> int | None:
        """Return the number of the source that supports `sentence` best, or None without one."""
        if self._lookups >= MOST_LOOKUPS:
            return None
        self._lookups += 1
        found = [(support(sentence, text), -number) for number, text in self._texts]
        supporting = [one for one in found if one[0] >= SUPPORTED]
        for _, number in sorted(supporting, reverse=True):
            if not foreign_facts(sentence, dict(self._texts)[-number]):
                return -number
        return None

    @cached_property
    def _texts(self) -> Sequence[tuple[int, str]]:
        return [(source.number, f"{source.place}\n{source.text}") for source in self._sources]
