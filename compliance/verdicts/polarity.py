"""What a clause does with what it mentions: oblige, forbid, permit, negate, except.

A clause without a cue is ruled by the last cue before it: in "must not copy, modify or sell" all
three are forbidden.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compliance.wording.cues import Cue, RuleKind, find_cues, split_words
from compliance.wording.thesaurus import find_features

_CUT = re.compile(
    r"[;:,()]|\b(?:but|except|provided|however|unless|other than|notwithstanding|sofern|soweit"
    r"|außer|jedoch)\b",
    re.IGNORECASE,
)
POLARITIES = (
    "ban",
    "duty",
    "permission",
    "statement",
    "negated",
    "after_negation",
    "exception",
    "before_exception",
)


@dataclass(frozen=True, slots=True)
class ClausePolarity:
    """The features of a clause and its polarity: a number, 0 or 1, for each of `POLARITIES`."""

    features: frozenset[str]
    values: tuple[float, ...]


def list_clause_polarities(text: str, language: str) -> tuple[ClausePolarity, ...]:
    """Return the clauses of a passage in order."""
    words = split_words(text)
    rules = find_cues(words, language, *RuleKind)
    negations = find_cues(words, language, "negation")
    exceptions = find_cues(words, language, "exception")
    cuts = [0, *(found.start() for found in _CUT.finditer(text)), len(text)]
    found = []
    for start, end in pairwise(cuts):
        if features := find_features(text[start:end], language):
            values = _measure(start, end, rules, negations, exceptions)
            found.append(ClausePolarity(features, values))
    return tuple(found)


def measure_polarity(
    clauses: Sequence[ClausePolarity], features: Collection[str]
) -> tuple[float, ...] | None:
    """Return the mean polarity of the clauses that have one of the features; None: none has."""
    own = [one.values for one in clauses if not one.features.isdisjoint(features)]
    if not own:
        return None
    return tuple(sum(column) / len(own) for column in zip(*own, strict=True))


def _measure(
    start: int, end: int, rules: Sequence[Cue], negations: Sequence[Cue], exceptions: Sequence[Cue]
) -> tuple[float, ...]:
    ruling = [cue.group for cue in rules if cue.start < end]
    kind = ruling[-1] if ruling else RuleKind.DEFINITION
    truths = (
        kind == RuleKind.BAN,
        kind == RuleKind.DUTY,
        kind == RuleKind.PERMISSION,
        kind == RuleKind.DEFINITION,
        any(start <= cue.start < end for cue in negations),
        any(cue.start < start for cue in negations),
        any(cue.start < end for cue in exceptions),
        any(cue.start >= end for cue in exceptions),
    )
    return tuple(map(float, truths))
