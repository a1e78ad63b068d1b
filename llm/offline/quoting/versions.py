"""Recognises sources that are earlier versions of another source, and what they say otherwise."""

import re
from collections.abc import Sequence

from llm.offline.quoting.extracts import Extract
from llm.offline.quoting.relevance import Relevance
from llm.tasks.respond import PromptSource

_NUMBER = re.compile(r"\d{1,9}")
_WORD = re.compile(r"[^\W\d_]{2,}")
_MOST_CHARACTERS = 2000
_SHARE = 0.6
_LIKE = 0.3
"""How far a sentence of another version is about the same point."""

Ranks = frozenset[int]
"""Sources by their positions."""


def find_earlier(sources: Sequence[PromptSource], question: str) -> Ranks:
    """Return the sources of which there is a newer version, unless the question names theirs."""
    newest: dict[tuple[str, ...], tuple[int, ...]] = {}
    keys = [name_page(source) for source in sources]
    numbers = [_read_numbers(source.version) for source in sources]
    for key, own in zip(keys, numbers, strict=True):
        newest[key] = max(newest.get(key, ()), own)
    return frozenset(
        rank
        for rank, (source, key, own) in enumerate(zip(sources, keys, numbers, strict=True))
        if own and own < newest[key] and source.version not in question
    )


def find_otherwise(
    best: Extract, others: Sequence[Extract], sources: Sequence[PromptSource], relevance: Relevance
) -> Extract | None:
    """Return what another version says on the point of a quotation; None if it says the same."""
    own = sources[best.rank]
    rivals = [
        other
        for other in others
        if other.kind is best.kind
        and sources[other.rank].version != own.version
        and name_page(sources[other.rank]) == name_page(own)
        and relevance.fits(other) == relevance.fits(best)
        and relevance.share(other) >= _SHARE * relevance.share(best)
        and len(other.terms & best.terms) >= _LIKE * len(other.terms | best.terms)
    ]
    rival = max(rivals, key=relevance.share, default=None)
    is_same = rival is not None and _normalise(rival.text) == _normalise(best.text)
    return None if is_same else rival


def _normalise(text: str) -> str:
    return " ".join(text.casefold().split())


def name_page(source: PromptSource) -> tuple[str, ...]:
    """Return the words of a source's place, without those that only a version has."""
    place = source.place[:_MOST_CHARACTERS].casefold()
    return tuple(word for word in _WORD.findall(place) if word != "version")


def _read_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NUMBER.findall(version[:_MOST_CHARACTERS]))
