"""Proves that a text is in a source, either verbatim or by identifiers that only this source
contains.

Case, punctuation, Markdown, and white space are ignored; in code, only white space is ignored. Text
that cannot be proven by these rules may still be supported; a judge decides this.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from citations.marking import LiteralBrackets, LiteralWords, remove_marks

_WORD = re.compile(r"[^\W_]+")
_CODE_SPAN = re.compile(r"(?<!`)(`{1,3})(?!`)([^`\n]+)\1(?!`)")
_NUMBER = re.compile(r"\d{2,}")
_LEAST_VERBATIM = 12
_RUN = 6
_RUN_SHARE = 0.6
_MOST_WORDS = 120
_LONG_SPAN = 6
_LEAST_SPAN = 3
_Find = Callable[[str], Iterable[int]]


@dataclass(frozen=True)
class ProofSource:
    """A source with its number in the answer.

    `names` are the texts with which a list of sources may refer to it: title, headings, and path.
    """

    number: int
    text: str
    names: tuple[str, ...] = ()

    @cached_property
    def words(self) -> str:
        """The words in lower case, separated and surrounded by spaces."""
        return f" {_fold(self.text)} "

    @cached_property
    def letters(self) -> str:
        """The text without white space."""
        return "".join(self.text.split())

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The words of each line; see `words`."""
        return tuple(f" {_fold(line)} " for line in self.text.split("\n"))


class SourceTexts:
    """The sources that were given for an answer."""

    def __init__(self, sources: Iterable[ProofSource]) -> None:
        self.sources: Sequence[ProofSource] = tuple(sources)
        self.literal = LiteralBrackets(source.text for source in self.sources)
        self.words = LiteralWords([source.text for source in self.sources])
        self._matches: dict[tuple[str, str], tuple[int, ...]] = {}

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the sources."""
        return frozenset(source.number for source in self.sources)

    def find_tool(self, brackets: str, name: str) -> tuple[int, ...] | None:
        """Return the numbers of a tool's results, or None if a source contains the same
        brackets.
        """
        if any(brackets in source.text for source in self.sources):
            return None
        return tuple(source.number for source in self.sources if name in source.names)

    def contains(self, text: str) -> bool:
        """Return whether a source contains the text word for word."""
        folded = _fold(remove_marks(text))
        return bool(folded) and any(f" {folded} " in source.words for source in self.sources)

    def contains_most(self, text: str) -> bool:
        """Return whether a source contains the text, or most of it in long runs of its words."""
        return bool(self._find_verbatim(text))

    def find_prose(self, text: str, preferred: Collection[int] = ()) -> int | None:
        """Return the number of a source that contains this paragraph or, as the only source, its
        identifiers.
        """
        return _choose(self._remember("prose", text, self._find_prose), preferred)

    def find_code(self, code: str, preferred: Collection[int] = ()) -> int | None:
        """Return the number of a source that contains every line of this code, or None."""
        return _choose(self._remember("code", code, self._find_code), preferred)

    def find_row(self, cells: Sequence[str], preferred: Collection[int] = ()) -> int | None:
        """Return the number of a source that contains all cells in one line, or None."""
        folded = [_fold(cell) for cell in cells]
        parts = [f" {cell} " for cell in folded if cell]
        row = "\n".join(parts)
        return _choose(self._remember("row", row, lambda _: self._find_row(parts)), preferred)

    def _remember(self, kind: str, text: str, find: _Find) -> tuple[int, ...]:
        # Cached, because drafts check the same blocks again with every new sentence.
        if (kind, text) not in self._matches:
            self._matches[kind, text] = tuple(find(text))
        return self._matches[kind, text]

    def _find_prose(self, text: str) -> Iterable[int]:
        if verbatim := self._find_verbatim(text):
            return verbatim
        unique = self._find_by_identifiers(remove_marks(text))
        return unique if len(unique) == 1 else ()

    def _find_verbatim(self, text: str) -> list[int]:
        folded = _fold(remove_marks(text))
        if len(folded) < _LEAST_VERBATIM:
            return []
        whole = [source.number for source in self.sources if f" {folded} " in source.words]
        return whole or list(self._find_runs(folded.split()[:_MOST_WORDS]))

    def _find_runs(self, words: Sequence[str]) -> Iterable[int]:
        """Yield the sources that contain most of these words in long sequences."""
        starts = range(len(words) - _RUN + 1)
        runs = [f" {' '.join(words[at : at + _RUN])} " for at in starts]
        for source in self.sources:
            covered: set[int] = set()
            for at, run in enumerate(runs):
                if run in source.words:
                    covered.update(range(at, at + _RUN))
            if len(covered) >= _RUN_SHARE * len(words) and covered:
                yield source.number

    def _find_by_identifiers(self, text: str) -> list[int]:
        spans = {"".join(match[2].split()) for match in _CODE_SPAN.finditer(text)}
        spans = {span for span in spans if len(span) >= _LEAST_SPAN}
        numbers = set(_NUMBER.findall(_CODE_SPAN.sub(" ", text)))
        if len(spans) + len(numbers) < 2 and not any(len(span) >= _LONG_SPAN for span in spans):
            return []
        return [
            source.number
            for source in self.sources
            if all(span in source.letters for span in spans)
            and numbers <= set(_NUMBER.findall(source.text))
        ]

    def _find_code(self, code: str) -> Iterable[int]:
        lines = ["".join(line.split()) for line in code.split("\n")]
        lines = [line for line in lines if line]
        return [
            source.number
            for source in self.sources
            if lines and all(line in source.letters for line in lines)
        ]

    def _find_row(self, parts: Sequence[str]) -> Iterable[int]:
        return [
            source.number
            for source in self.sources
            if len(parts) > 1 and any(all(part in line for part in parts) for line in source.lines)
        ]


def _choose(numbers: Sequence[int], preferred: Collection[int]) -> int | None:
    return next(
        (number for number in numbers if number in preferred), numbers[0] if numbers else None
    )


def _fold(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
