"""Finds the words of a sentence that oblige, forbid, permit, define, condition or negate.

Sentences are compared word by word, so that a search takes time linear in the sentence.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("cues.toml")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_GAP = "~"
_FALLBACK = "en"


class RuleKind(StrEnum):
    """What a sentence of a rule does."""

    DUTY = "duty"
    BAN = "ban"
    PERMISSION = "permission"
    DEFINITION = "definition"


@dataclass(frozen=True, slots=True)
class Word:
    """A word in lower case, with its start and end in the text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Cue:
    """A phrase in a text: its group (a `RuleKind`, `condition`, `negation`, ...) and its span."""

    group: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Phrase:
    group: str
    parts: tuple[tuple[str, int], ...]
    """Each word, with the number of other words that may precede it."""


_KINDS = tuple(RuleKind)


def split_words(text: str) -> tuple[Word, ...]:
    """Return the words of a text in lower case with their places."""
    return tuple(
        Word(one[0].lower().replace("’", "'"), one.start(), one.end())
        for one in _WORD.finditer(text)
    )


def list_languages() -> frozenset[str]:
    """Return the languages that have cues."""
    return frozenset(_load())


def list_cue_words(language: str) -> frozenset[str]:
    """Return the single words of a language that oblige, forbid, permit or negate."""
    groups = {RuleKind.BAN.value, RuleKind.DUTY.value, RuleKind.PERMISSION.value, "negation"}
    return frozenset(
        phrase.parts[0][0]
        for phrases in _load().get(language, {}).values()
        for phrase in phrases
        if phrase.group in groups and len(phrase.parts) == 1
    )


def find_cues(words: Sequence[Word], language: str, *groups: str) -> tuple[Cue, ...]:
    """Return the cues of some groups in order; where several begin, the longest phrase."""
    phrases = _load().get(language, _load()[_FALLBACK])
    found = []
    at = 0
    while at < len(words):
        best = _match_longest(words, at, phrases, groups)
        if best is None:
            at += 1
            continue
        cue, after = best
        found.append(cue)
        at = after
    return tuple(found)


def find_rule_cue(words: Sequence[Word], language: str) -> Cue | None:
    """Return the first cue that makes a sentence a rule; None: it is no rule."""
    cues = find_cues(words, language, *_KINDS)
    return cues[0] if cues else None


def count_cues(words: Sequence[Word], language: str, group: str) -> int:
    """Return how many cues of a group a sentence has."""
    return len(find_cues(words, language, group))


def _match_longest(
    words: Sequence[Word],
    at: int,
    phrases: Mapping[str, Sequence[_Phrase]],
    groups: Sequence[str],
) -> tuple[Cue, int] | None:
    best: tuple[Cue, int] | None = None
    most = 0
    for phrase in phrases.get(words[at].text, ()):
        if phrase.group not in groups or len(phrase.parts) <= most:
            continue
        end = _match(words, at, phrase)
        if end is not None:
            most = len(phrase.parts)
            best = Cue(phrase.group, words[at].start, words[end - 1].end), end
    return best


def _match(words: Sequence[Word], at: int, phrase: _Phrase) -> int | None:
    """Return the index after the phrase, or None."""
    index = at
    for text, gap in phrase.parts:
        stop = min(index + gap + 1, len(words))
        while index < stop and words[index].text != text:
            index += 1
        if index >= stop:
            return None
        index += 1
    return index


@cache
def _load() -> Mapping[str, Mapping[str, Sequence[_Phrase]]]:
    tables: dict[str, dict[str, list[str]]] = tomllib.loads(_FILE.read_text("utf-8"))
    return {language: _index(table) for language, table in tables.items()}


def _index(table: Mapping[str, Sequence[str]]) -> dict[str, list[_Phrase]]:
    found: dict[str, list[_Phrase]] = {}
    for group, lines in table.items():
        for line in lines:
            phrase = _Phrase(group, tuple(_parse(line)))
            found.setdefault(phrase.parts[0][0], []).append(phrase)
    return found


def _parse(line: str) -> Iterator[tuple[str, int]]:
    gap = 0
    for token in line.split():
        if token.startswith(_GAP):
            gap = int(token.removeprefix(_GAP))
        else:
            yield token, gap
            gap = 0
