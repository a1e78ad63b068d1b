"""Removes line numbers from pages, as in transcripts and draft laws."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from knowledge.documents.page import LeftOutCounts
from knowledge.documents.pdf.text_lines import Line, is_wrapped

_NUMBER = re.compile(r"(\d{1,4})(?:[ \u00a0]+|\Z)")
_LETTERS = re.compile(r"[^\W\d_]+")
_LEAST_WORDS = 3
_ENDS = (".", "?", "!", ":", ";")
_LEAST_NUMBERS = 4
_LEAST_OPEN = 2
_LEAST_FULL = 0.75


def remove_line_numbers(lines: list[Line], left_out: LeftOutCounts) -> list[Line]:
    """Return the lines of a page without line numbers.

    Numbers are line numbers if they increase by one with each line, and if the lines are wrapped
    prose. Lines of a list, a table or code are not.
    """
    kept: list[Line] = []
    for (_, is_table), column in groupby(lines, key=lambda line: (line.column, bool(line.table))):
        own = list(column)
        numbered = set() if is_table else _find_numbered(own)
        bare = _strip(own, numbered)
        if numbered and _are_wrapped(bare):
            left_out.add("line number", "numbers that count lines are not text", len(numbered))
            own = [*own[: min(numbered)], *bare, *own[max(numbered) + 1 :]]
        kept += own
    return kept


def _find_numbered(lines: Sequence[Line]) -> set[int]:
    """Return the indices of the lines that begin with their number; none if the numbers count
    something else.

    Only every fifth line may be numbered.
    """
    numbers = [
        (at, int(match[1]))
        for at, line in enumerate(lines)
        if (match := _NUMBER.match(line.segments[0].text))
    ]
    counting = {
        at
        for one, other in pairwise(numbers)
        if 0 < other[0] - one[0] == other[1] - one[1]
        for at in (one[0], other[0])
    }
    is_clear = len(counting) >= _LEAST_NUMBERS and 4 * len(counting) >= 3 * len(numbers)
    return counting if is_clear else set()


def _strip(lines: Sequence[Line], numbered: Collection[int]) -> list[Line]:
    """Return the lines from the first to the last numbered one, without their numbers.

    Wrapped text is prose, whatever its typeface.
    """
    stripped: list[Line] = []
    for at in range(min(numbered), max(numbered) + 1) if numbered else ():
        first, *others = lines[at].segments
        number = _NUMBER.match(first.text) if at in numbered else None
        if number is not None:
            left = first.left + (first.right - first.left) * number.end() / len(first.text)
            first = replace(first, text=first.text[number.end() :], left=left)
        own = [replace(one, is_code=False) for one in (first, *others) if one.text]
        stripped += [replace(lines[at], segments=own)] if own else []
    return stripped


def _are_wrapped(lines: Sequence[Line]) -> bool:
    worded = sum(len(_LETTERS.findall(line.text)) >= _LEAST_WORDS for line in lines)
    if 2 * worded < len(lines) or any(len(line.segments) > 1 for line in lines):
        return False
    right = max((line.segments[0].right for line in lines), default=0.0)
    ends = list(_list_open(lines, right))
    return len(ends) >= _LEAST_OPEN and sum(ends) >= _LEAST_FULL * len(ends)


def _list_open(lines: Sequence[Line], right: float) -> Iterator[bool]:
    """Yield for each line that ends within a sentence whether the next word did not fit."""
    for above, line in pairwise(lines):
        one, other = above.segments[0], line.segments[0]
        if not one.text.endswith(_ENDS):
            yield is_wrapped(one, replace(other, text=other.text.capitalize()), right)
