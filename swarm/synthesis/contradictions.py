"""Finds claims that contradict each other: the same matter with other numbers, or denied."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from pydantic import BaseModel

from llm.offline.support import matter_of, measure_likeness, numbers_of
from swarm.synthesis.merged_claims import MergedClaim, is_denied

SAME_MATTER = 0.6
"""The share of words, numbers aside, that two claims about the same matter have in common."""
_MOST_COMPARED = 200


class Contradiction(BaseModel, frozen=True, extra="forbid"):
    """Two claims from different places that cannot both be true; `reason` says why, in English.

    `numbers` are those of both claims where they differ; without any, one denies the other.
    """

    one: MergedClaim
    other: MergedClaim
    reason: str
    numbers: tuple[str, ...] = ()


def find_contradictions(claims: Sequence[MergedClaim]) -> tuple[Contradiction, ...]:
    """Return contradictions between claims of different sources."""
    return tuple(_find(claims[:_MOST_COMPARED]))


def _find(claims: Sequence[MergedClaim]) -> Iterator[Contradiction]:
    for one, other in combinations(claims, 2):
        if one.source.chunk_id == other.source.chunk_id or one.subject != other.subject:
            continue
        if measure_likeness(matter_of(one.text), matter_of(other.text)) < SAME_MATTER:
            continue
        if _name_others(one.text, other.text):
            continue
        left, right = numbers_of(one.text), numbers_of(other.text)
        if left and right and not left & right:
            shown = (", ".join(sorted(left)), ", ".join(sorted(right)))
            reason = f"different numbers: {' and '.join(shown)}"
            yield Contradiction(one=one, other=other, reason=reason, numbers=shown)
        elif left == right and is_denied(one.text) != is_denied(other.text):
            yield Contradiction(one=one, other=other, reason="one says it, the other denies it")


def _name_others(one: str, other: str) -> bool:
    """Return whether each of two sentences names something that the other one does not name."""
    left, right = _read_names(one), _read_names(other)
    return bool(left - right) and bool(right - left)


def _read_names(text: str) -> frozenset[str]:
    """Return the words with a capital after the first word, which has one anyway."""
    words = (word.strip(".,;:!?()'\"") for word in text.split()[1:])
    return frozenset(word for word in words if word[:1].isupper())
