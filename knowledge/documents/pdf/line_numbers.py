"""Removes line numbers from pages, as in transcripts and draft laws."""

import re
from collections.abc import Iterator, Sequence
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
    for _, column in groupby(lines, key=lambda line: (line.column, line.table is not None)):
        own = list(column)
        numbered = _find_numbered(own)
        if numbered:
            left_out.add("line number", "numbers that count lines are not text", len(numbered))
            first, last = min(numbered), max(numbered)
            shown = (
                _strip(line, is_numbered=at in numbered) if first <= at <= last else line
                for at, line in enumerate(own)
            )
            own = [line for line in shown if line.segments]
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
        if line.table is None and (match := _NUMBER.match(line.segments[0].text))
    ]
    counting = {
        at
        for one, other in pairwise(numbers)
        if 0 < other[0] - one[0] == other[1] - one[1]
        for at in (one[0], other[0])
    }
    if len(counting) < _LEAST_NUMBERS or 4 * len(counting) < 3 * len(numbers):
        return set()
    own = [
        _strip(line, is_numbered=at in counting)
        for at, line in enumerate(lines[: max(counting) + 1])
        if at >= min(counting)
    ]
    return counting if _are_wrapped([line for line in own if line.segments]) else set()


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


def _strip(line: Line, *, is_numbered: bool) -> Line:
    """Return a line without its number; wrapped text is prose, whatever its typeface."""
    first, *others = line.segments
    text = first.text
    number = _NUMBER.match(text) if is_numbered else None
    if number is None:
        return replace(
            line, segments=[replace(segment, is_code=False) for segment in line.segments]
        )
    left = first.left + (first.right - first.left) * number.end() / len(text)
    bare = replace(first, text=text[number.end() :], left=left)
    return replace(
        line, segments=[replace(other, is_code=False) for other in (bare, *others) if other.text]
    )
