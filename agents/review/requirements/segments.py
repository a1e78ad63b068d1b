"""Cuts the text of a rule into sentences and list items, with their places.

Rules are often one long line: "1. Providers must: (a) ...; (b) ... 2. ...". An item begins at its
mark, and belongs to the sentence before it that ends in a colon or has introduced earlier items.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BREAK = re.compile(
    r"(?P<item>(?<=[:;,.\s])\((?:[a-z]{1,3}|[ivxl]{1,6}|\d{1,2})\)\s)"
    r"|(?P<number>(?<=[.:;)\s])\d{1,3}[.)]\s(?=[^\s\d]))"
    r"|(?P<bullet>\n\s{0,8}[-*•–]\s)"
    r"|(?P<stop>[.!?]['\"”’)\]]{0,2}\s(?=[\s\"“‘'(§]{0,3}[A-ZÄÖÜ\d(]))"
    r"|(?P<semicolon>;\s(?!(?:and|or|und|oder|sowie)\s\())"
    r"|(?P<line>\n\s{0,8}\n)"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:Art|Arts|No|Nos|Nr|Abs|Nrn|Rn|lit|cf|e\.g|i\.e|z\.B|d\.h|bzw|vgl|ff|Dr|Mr|Ms"
    r"|Inc|Ltd|Co|Corp|U\.S|S|Sec|para|paras|pp|p|vs|approx|[A-Z])\.?\Z"
)
_LONGEST_ABBREVIATION = 8
_MARK = re.compile(r"[\s•*–-]*(?:\((?:[a-z]{1,3}|[ivxl]{1,6}|\d{1,2})\)|\d{1,3}[.)])?\s*")


@dataclass(frozen=True, slots=True)
class RuleSegment:
    """A sentence or an item; `lead` is the place of the sentence that introduces an item."""

    start: int
    end: int
    lead: tuple[int, int] | None = None


def split_segments(text: str) -> tuple[RuleSegment, ...]:
    """Return the sentences and items of a text in order, without the spaces around them."""
    found: list[RuleSegment] = []
    lead: tuple[int, int] | None = None
    for start, end, begins in _list_pieces(text):
        if begins in {"number", "line"}:
            lead = None
        is_item = begins in {"item", "bullet"}
        found.append(RuleSegment(start, end, lead if is_item else None))
        if not is_item and text[start:end].endswith((":", "—", "–")):
            lead = (start, end)
    return tuple(found)


def count_mark(text: str) -> int:
    """Return the length of the mark that a sentence begins with, such as "(a) " or "2. "."""
    found = _MARK.match(text)
    return found.end() if found else 0


def _list_pieces(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start and end of each piece, and what it begins with; an item goes on after ";"."""
    start, begins = 0, "line"
    for cut, mark in _list_cuts(text):
        yield from _trim(text, start, cut, begins)
        begins = begins if mark == "semicolon" else mark
        start = cut
    yield from _trim(text, start, len(text), begins)


def _list_cuts(text: str) -> Iterator[tuple[int, str]]:
    """Yield each place to cut at, and which mark is there."""
    for found in _BREAK.finditer(text):
        match found.lastgroup:
            case "item" if not _opens_item(text, found.start()):
                continue
            case "stop" if _ends_abbreviation(text, found.start()):
                continue
            case "item" | "bullet" | "number":
                yield found.start(), found.lastgroup
            case _:
                yield found.end(), str(found.lastgroup)


def _ends_abbreviation(text: str, at: int) -> bool:
    """Return whether the full stop at `at` ends an abbreviation, or the number of a paragraph."""
    before = text[max(0, at - _LONGEST_ABBREVIATION) : at]
    is_first = len(before) == at and before.strip().isdigit()
    return is_first or bool(_ABBREVIATION.search(before))


def _opens_item(text: str, at: int) -> bool:
    """Return whether a mark begins an item: "Article 6(1) (a) and" is a reference."""
    before = text[max(0, at - 12) : at].rstrip()
    return not before or before.endswith((":", ";", ",", ".", " and", " or", " und", " oder", "—"))


def _trim(text: str, start: int, end: int, begins: str) -> Iterator[tuple[int, int, str]]:
    piece = text[start:end]
    if count_mark(piece) == len(piece):
        return
    first = start + len(piece) - len(piece.lstrip())
    last = start + len(piece.rstrip())
    if last > first:
        yield first, last, begins
