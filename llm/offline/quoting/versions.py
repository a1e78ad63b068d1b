"""Recognises sources that are earlier versions of another source, and what they say otherwise."""

import re
from collections.abc import Sequence

from envelope.ways.tool_loop import Intent
from llm.offline.planning.question_parts import find_cues
from llm.offline.quoting.extracts import Extract
from llm.offline.quoting.naming import find_stated_editions, find_stated_numbers
from llm.offline.quoting.relevance import Relevance
from llm.tasks.respond import PromptSource

_NUMBER = re.compile(r"\d{1,9}")
_WORD = re.compile(r"[^\W\d_]{2,}")
_YEAR = re.compile(r"(?:19|20)\d\d")
_PAST = re.compile(r"\b(?:was|were|did|had|used to)\b", re.IGNORECASE)
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
    numbers = [read_numbers(source.version) for source in sources]
    for key, own in zip(keys, numbers, strict=True):
        newest[key] = max(newest.get(key, ()), own)
    return frozenset(
        rank
        for rank, (source, key, own) in enumerate(zip(sources, keys, numbers, strict=True))
        if own and own < newest[key] and source.version not in question
    )


def find_passed_over(sources: Sequence[PromptSource], question: str) -> Ranks:
    """Return the sources of a page of which the question names another version.

    A version is named by all of its words, or by its number ("in version 2024", "under the 2024
    edition"); where two numbers are named, or versions are compared, all sources count. Where no
    source has the named year as its version, those of other years are passed over.
    """
    stated = {*find_stated_numbers(question)}
    if len(stated) > 1 or Intent.COMPARISON.value in find_cues(question):
        stated = set()
    is_named = [
        _is_named(one.version, question) or _read_number(one.version) in stated for one in sources
    ]
    named = {name_page(one) for one, own in zip(sources, is_named, strict=True) if own}
    is_unknown = bool(stated & _list_editions(question, sources)) and not any(is_named)
    return frozenset(
        rank
        for rank, (one, own) in enumerate(zip(sources, is_named, strict=True))
        if one.version
        and not own
        and (name_page(one) in named or (is_unknown and _YEAR.fullmatch(one.version)))
    )


def _list_editions(question: str, sources: Sequence[PromptSource]) -> set[str]:
    """Return the years by which a question names a version: without one there is no answer.

    A year that no source has is no date of which they speak: "How long was it valid in 2023?".
    """
    named = {year for year in find_stated_editions(question) if _YEAR.fullmatch(year)}
    if _PAST.search(question) is None:
        return named
    years = (year for year in find_stated_numbers(question) if _YEAR.fullmatch(year))
    return named.union(
        year for year in years if not any(year in f"{one.place}\n{one.text}" for one in sources)
    )


def find_equals(best: int, sources: Sequence[PromptSource]) -> Ranks:
    """Return the sources with another version of a source's page, neither newer nor older.

    Such versions have names: "cloud" and "server".
    """
    own = sources[best]
    return frozenset(
        rank
        for rank, one in enumerate(sources)
        if own.version
        and one.version
        and one.version != own.version
        and not read_numbers(own.version)
        and not read_numbers(one.version)
        and name_page(one) == name_page(own)
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
        and relevance.share(other) >= _least_share(other, best, relevance)
        and len(other.terms & best.terms) >= _LIKE * len(other.terms | best.terms)
    ]
    rival = max(rivals, key=relevance.share, default=None)
    is_same = rival is not None and _normalise(rival.text) == _normalise(best.text)
    return None if is_same else rival


def _least_share(other: Extract, best: Extract, relevance: Relevance) -> float:
    """Return the share of the question's words that a sentence of another version must have.

    A sentence that is not of the kind asked for, as "until they are removed" for "how long", must
    have no fewer than the quotation.
    """
    is_alike = relevance.fits(other) == relevance.fits(best)
    return relevance.share(best) * (_SHARE if is_alike else 1.0)


def _normalise(text: str) -> str:
    return " ".join(text.casefold().split())


def name_page(source: PromptSource) -> tuple[str, ...]:
    """Return the words of a source's place, without those that only a version has."""
    left_out = {"version", *_read_words(source.version)}
    return tuple(word for word in _read_words(source.place) if word not in left_out)


def _is_named(version: str, question: str) -> bool:
    """Return whether a question has all words of a version that is no number."""
    words = set(_read_words(version))
    return bool(words) and not read_numbers(version) and words <= set(_read_words(question))


def _read_number(version: str) -> str:
    return version.lstrip("vVrR").lstrip("ev. ")


def _read_words(text: str) -> list[str]:
    return _WORD.findall(text[:_MOST_CHARACTERS].casefold())


def read_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, in order."""
    return tuple(int(number) for number in _NUMBER.findall(version[:_MOST_CHARACTERS]))
