"""Builds the texts that make a backtracking matcher work hardest, from the pattern's own parts.

Each attack is a beginning, something that is repeated to any length, and an end that does not fit.
The beginning leads to a repetition of the pattern; what is repeated is accepted by it; a second
kind repeats the pattern's own beginnings, so that every place looks like the start of a match.
"""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import re._constants as ops  # type: ignore[import-not-found]
    import re._parser as parser  # type: ignore[import-not-found]

ALPHABET = " \n\taA0z_-.,:;!?\"'`*~#|/\\<>()[]{}=+@$%&^\u00e9\u044f\u4e2d\u3002\u0301\x00"
ENDS = ("", "\x01", "x", "\n")
_REPEATS = {ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT}
_CATEGORIES = {
    ops.CATEGORY_DIGIT: r"\d",
    ops.CATEGORY_NOT_DIGIT: r"\D",
    ops.CATEGORY_SPACE: r"\s",
    ops.CATEGORY_NOT_SPACE: r"\S",
    ops.CATEGORY_WORD: r"\w",
    ops.CATEGORY_NOT_WORD: r"\W",
}
_LONGEST_PUMP = 80
_CHARACTERS_TRIED = 8
Items = list[tuple[Any, Any]]


@dataclass(frozen=True, order=True)
class Attack:
    """A text of any length: `before`, as many `pump` as fit, and `after`."""

    before: str
    pump: str
    after: str

    def text(self, length: int) -> str:
        """Return the text with about `length` characters."""
        return self.before + self.pump * max(1, length // len(self.pump)) + self.after


def attacks_on(source: str, flags: int = 0) -> list[Attack]:
    """Return the attacks on a pattern, each once; there are none where nothing is repeated.

    Without a repetition a matcher looks at a bounded number of characters from every place.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = list(parser.parse(source, flags))
    if next(Samples().repetitions(tree, ""), None) is None:
        return []
    found: dict[Attack, None] = {}
    for before, pump in _pumps(tree):
        if 0 < len(pump) <= _LONGEST_PUMP:
            ends = ENDS if before or len(pump) == 1 else ENDS[::2]
            found.update(dict.fromkeys(Attack(before, pump, end) for end in ends))
    return list(found)


def _pumps(tree: Items) -> Iterator[tuple[str, str]]:
    samples = Samples()
    for before, items, place in samples.repetitions(tree, ""):
        body = list(items[place][1][2])
        pumps = [*samples.accepted(body), samples.of(body), samples.of(items[place : place + 2])]
        follower = samples.of(items[place + 1 : place + 2])
        pumps += [char + follower for char in samples.accepted(body)[:3]]
        yield from ((before, pump) for pump in dict.fromkeys(pumps))
    for beginning in dict.fromkeys(samples.beginnings(tree)):
        yield "", beginning
        yield from (("", beginning + between) for between in (" ", "\n"))
    for char in ALPHABET:
        yield "", char


class Samples:
    """Texts that parts of a pattern accept."""

    def __init__(self) -> None:
        self._groups: dict[int, str] = {}

    def of(self, items: Any) -> str:
        """Return a text that the items accept one after the other."""
        return "".join(self._one(op, value) for op, value in items)

    def repetitions(self, items: Items, before: str) -> Iterator[tuple[str, Items, int]]:
        """Return each repetition with a text that leads to it."""
        for place, (op, value) in enumerate(items):
            lead = before + self.of(items[:place])
            if op in _REPEATS and value[1] > 1:
                yield lead, items, place
                if value[0] == 0:  # what follows is reached with it and without it
                    rest = items[place + 1 :]
                    yield from list(self.repetitions(rest, lead + self.of(value[2])))[:3]
            for part in _parts(op, value):
                yield from self.repetitions(list(part), lead)

    def beginnings(self, items: Items) -> Iterator[str]:
        """Return what each part accepts, and each beginning of it."""
        for end in range(1, len(items) + 1):
            yield self.of(items[:end])
        for op, value in items:
            for part in _parts(op, value):
                yield from self.beginnings(list(part))

    def accepted(self, body: Items) -> list[str]:
        """Return some characters that the body begins with."""
        characters = [char for op, value in body[:1] for char in self._characters(op, value)]
        return characters[:_CHARACTERS_TRIED]

    def _one(self, op: Any, value: Any) -> str:
        if op in _REPEATS:
            times: int = min(max(value[0], value[1] > 0), 4)
            return self.of(value[2]) * times
        if op is ops.BRANCH:
            return self.of(value[1][0])
        if op is ops.SUBPATTERN:
            text = self.of(value[3])
            if value[0] is not None:
                self._groups[value[0]] = text
            return text
        if op is ops.ATOMIC_GROUP:
            return self.of(value)
        if op is ops.GROUPREF:
            return self._groups.get(value, "")
        if op is ops.ASSERT:
            return self.of(value[1]) if value[0] < 0 else ""
        return next(iter(self._characters(op, value)), "")

    def _characters(self, op: Any, value: Any) -> list[str]:
        if op is ops.LITERAL:
            return [chr(value)]
        if op is ops.ANY:
            return list("a \n.")
        if op is ops.NOT_LITERAL:
            return [char for char in ALPHABET if ord(char) != value]
        if op is ops.IN:
            return _class_characters(value)
        if op in _REPEATS:
            return self.accepted(list(value[2]))
        if op is ops.SUBPATTERN:
            return self.accepted(list(value[3]))
        if op is ops.BRANCH:
            return [char for part in value[1] for char in self.accepted(list(part))[:1]]
        return []


def _parts(op: Any, value: Any) -> list[Any]:
    if op in _REPEATS:
        return [value[2]]
    if op is ops.BRANCH:
        return list(value[1])
    if op is ops.SUBPATTERN:
        return [value[3]]
    if op is ops.ATOMIC_GROUP:
        return [value]
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return [value[1]]
    return []


def _class_characters(value: list[tuple[Any, Any]]) -> list[str]:
    negated = any(op is ops.NEGATE for op, _ in value)
    own = [chr(it) for op, it in value if op is ops.LITERAL]
    own += [chr(it[0]) for op, it in value if op is ops.RANGE]
    candidates = dict.fromkeys((*(() if negated else own), *ALPHABET))
    return [char for char in candidates if _is_in(char, value) is not negated]


def _is_in(char: str, value: list[tuple[Any, Any]]) -> bool:
    code = ord(char)
    return any(
        (op is ops.LITERAL and it == code)
        or (op is ops.RANGE and it[0] <= code <= it[1])
        or (op is ops.CATEGORY and re.match(_CATEGORIES[it], char) is not None)
        for op, it in value
    )
