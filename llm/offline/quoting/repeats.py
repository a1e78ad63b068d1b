"""Removes quotations that say the same, and puts the rest in the order of their sources."""

from collections.abc import Iterable, Sequence

from citations.claims import UnitKind
from citations.feedback import same_claim
from llm.offline.quoting.extracts import Extract
from llm.offline.support import numbers_of

_SAME_TERMS = 0.8


def without_repeats(ranked: Iterable[Extract]) -> list[Extract]:
    """Return each once: of two versions of a sentence the first, of a cut one the whole.

    Sentences with different numbers do not say the same.
    """
    kept: list[Extract] = []
    for extract in ranked:
        twin = next((at for at, other in enumerate(kept) if _repeats(extract, other)), None)
        if twin is None:
            kept.append(extract)
        elif _holds(extract, kept[twin]):
            kept[twin] = extract
    return kept


def in_order(chosen: Sequence[Extract]) -> list[Extract]:
    """Return the extracts source by source, the best source first, in its own order."""
    first = {extract.rank: place for place, extract in reversed(list(enumerate(chosen)))}
    return sorted(chosen, key=lambda extract: (first[extract.rank], extract.order))


def _repeats(one: Extract, other: Extract) -> bool:
    if one.kind is not other.kind:
        return False
    if _holds(one, other) or _holds(other, one):
        return True
    if one.kind is not UnitKind.SENTENCE or numbers_of(one.text) != numbers_of(other.text):
        return False
    return len(one.terms & other.terms) >= _SAME_TERMS * len(one.terms | other.terms)


def _holds(longer: Extract, shorter: Extract) -> bool:
    return same_claim(longer.text).startswith(same_claim(shorter.text))
