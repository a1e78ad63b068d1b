"""Finds the numbers of a question in ranges: 7 users are in the row "1-10 users"."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from citations.claims import UnitKind
from llm.offline.quoting.extracts import Extract
from llm.offline.support import terms

_MOST_CHARACTERS = 2000
_NUMBER = r"((?:0|[1-9]\d{0,8})(?:[.,' ]\d{3}){0,3})"
_ALONE = r"(?<![\w.,:/+-])"
_END = r"(?![\w/:-]|[.,]\d)"
_BEFORE = r"\s[^\W\d]{1,20}\s(?:before|earlier|vorher|vor)\b"
"""Up to 14 days before a date are 14 days and more."""
_FROM_TO = re.compile(
    rf"{_ALONE}{_NUMBER}\s?(?:-|\u2013|\u2014|to|bis|\u00e0|\u0434\u043e)\s?{_NUMBER}{_END}",
    re.IGNORECASE,
)
_LEAST = re.compile(
    rf"(?:\b(?:from|at least|ab|mindestens)\s|\u2265\s?){_NUMBER}{_END}"
    rf"|\b(?:up to|until|bis)\s{_NUMBER}{_BEFORE}"
    rf"|{_ALONE}{_NUMBER}(?:\+(?!\w)| (?:or|and) more\b| und mehr\b)",
    re.IGNORECASE,
)
_MOST = re.compile(
    rf"(?:\b(?:up to|at most|bis zu|h\u00f6chstens|maximal)\s|\u2264\s?)"
    rf"{_NUMBER}{_END}(?!{_BEFORE})",
    re.IGNORECASE,
)
_OVER = re.compile(
    rf"(?:\b(?:over|more than|older than|above|\u00fcber|mehr als)\s|>\s?)"
    rf"{_NUMBER}{_END}",
    re.IGNORECASE,
)
_UNDER = re.compile(
    r"(?:\b(?:under|less than|fewer than|younger than|below|unter|weniger als)\s|<\s?)"
    rf"{_NUMBER}{_END}",
    re.IGNORECASE,
)
_WHOLE = re.compile(rf"{_ALONE}{_NUMBER}{_END}")
_WORD = re.compile(r"[^\W\d]{2}")
_ENDLESS = float("inf")


def hold_numbers(found: Sequence[Extract], question: str) -> list[Extract]:
    """Return the extracts; those with a range around a number of the question hold the number."""
    numbers = _read_numbers(question)
    return [_hold(extract, numbers) for extract in found] if numbers else list(found)


def _read_numbers(question: str) -> dict[int, frozenset[str]]:
    """Return the whole numbers of a question, spelled ones too, with the terms that they are."""
    text = question[:_MOST_CHARACTERS]
    written = [match[1] for match in _WHOLE.finditer(text)]
    known = {term for number in written for term in terms(number, cut=False)}
    spelled = [term for term in terms(question, cut=False) if term.isdecimal() and len(term) < 3]
    written += [term for term in spelled if term not in known]
    # Somebody over 65 is 66 at least: the row "18-65" is not theirs.
    shifts = {match[1]: 1 for match in _OVER.finditer(text)}
    shifts |= {match[1]: -1 for match in _UNDER.finditer(text)}
    return {
        int(_read(number)) + shifts.get(number, 0): frozenset(terms(number, cut=False))
        for number in written
    }


def _hold(extract: Extract, numbers: Mapping[int, frozenset[str]]) -> Extract:
    ranges = list(find_ranges(extract.text))
    held = frozenset[str]().union(
        *(
            own
            for number, own in numbers.items()
            if any(low <= number <= high for low, high in ranges)
        )
    )
    if not ranges or (not held and extract.kind is not UnitKind.TABLE):
        return extract
    # A row for more than 100 users is none for 100 users, though it names the number.
    asked = frozenset[str]().union(*numbers.values())
    others = extract.terms - asked if extract.kind is UnitKind.TABLE else extract.terms
    return replace(extract, terms=others | held, ranged=held)


def find_ranges(text: str) -> Iterator[tuple[float, float]]:
    """Yield the ranges of whole numbers that a text states, both ends included."""
    read = text[:_MOST_CHARACTERS]
    for match in _FROM_TO.finditer(read):
        low, high = _read(match[1]), _read(match[2])
        if low < high or _WORD.search(match[0]):
            yield min(low, high), max(low, high)
    for match in _LEAST.finditer(read):
        yield _read(match[1] or match[2] or match[3]), _ENDLESS
    for match in _OVER.finditer(read):
        yield _read(match[1]) + 1, _ENDLESS
    for match in _MOST.finditer(read):
        yield 0, _read(match[1])
    for match in _UNDER.finditer(read):
        yield 0, _read(match[1]) - 1


def _read(number: str) -> float:
    return float("".join(sign for sign in number if sign.isdecimal()))
