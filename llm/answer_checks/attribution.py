"""Finds the source of a sentence that an answer left without a citation."""

from collections.abc import Iterable, Sequence
from functools import cached_property

from llm.offline.judge import SUPPORTED
from llm.offline.support import foreign_facts, support
from llm.tasks.respond import PromptSource

MOST_LOOKUPS = 60
"""Sentences of one answer that are compared with every source; each comparison costs time."""


class Attribution:
    """Finds which source says a sentence, by its words, numbers and identifiers.

    Words of different languages cannot be compared, so a sentence in another language than the
    sources finds none.
    """

    def __init__(self, sources: Iterable[PromptSource]) -> None:
        self._sources = tuple(sources)
        self._lookups = 0

    def find(self, sentence: str) -> int | None:
        """Return the number of the source that says `sentence` best; None where no source does."""
        if self._lookups >= MOST_LOOKUPS:
            return None
        self._lookups += 1
        found = [(support(sentence, text), -number) for number, text in self._texts]
        said = [one for one in found if one[0] >= SUPPORTED]
        for _, number in sorted(said, reverse=True):
            if not foreign_facts(sentence, dict(self._texts)[-number]):
                return -number
        return None

    @cached_property
    def _texts(self) -> Sequence[tuple[int, str]]:
        return [(source.number, f"{source.place}\n{source.text}") for source in self._sources]
