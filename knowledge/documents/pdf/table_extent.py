"""Finds where tables without drawn cells begin and end, by the alignment of their texts."""

from collections.abc import Sequence
from itertools import pairwise
from math import inf

from knowledge.documents.pdf.header_groups import Columns, find_column, list_over
from knowledge.documents.pdf.page_layout import LaidOutPage
from knowledge.documents.pdf.page_text import DrawnRule, Segment, cut_segment
from knowledge.documents.pdf.text_lines import Line, continues_label, merge_intervals
from knowledge.documents.tables import MOST_COLUMNS, is_value

_LARGEST_GAP = 4.0
_LEAST_VALUED = 2
_LEAST_GROUPED = 3
_MOST_NOTES = 3
"""Maximum number of lines between two rows that are only in the first column."""
_FURTHEST_ROW = 2.0
_APART = 1.4
_LARGER_TITLE = 1.2
_PITCH = 1.7
"""Maximum distance of the lines of a cell, in font sizes."""


def find_end(page: LaidOutPage, start: int) -> int:
    """Return the index after the last line of a table that begins at a line, or after the line."""
    lines, rules = page.lines, page.text.rules
    columns: Columns = [(segment.left, segment.right) for segment in lines[start].segments]
    end, last_row = start + 1, start
    while _may_begin(page, start) and end < len(lines):
        above, line = lines[end - 1 : end + 1]
        is_near = 0 < above.base - line.base < _LARGEST_GAP * line.size
        is_other = line.table is not None or line.is_running or line.column != above.column
        if is_other or not is_near or not _fits(line, columns, lines[start:end]):
            break
        if _heads_table(rules, lines[max(start, end - 2) : end], lines[end : end + 2], columns):
            break
        if len(line.segments) > 1:
            last_row = end
            pieces = cut_segments(columns, line.segments)
            columns = merge_intervals([*columns, *((one.left, one.right) for one in pieces)])
        elif not (
            _is_wrapped(rules, above, line, columns)
            or is_beside_rows(*lines[end - 1 : end + 2])
            or _is_before_row(lines, start, end, columns)
        ):
            break
        end += 1
    return end if last_row > start else start + 1


def is_justified(lines: Sequence[Line], start: int, end: int) -> bool:
    """Return whether lines are prose with wide spaces: one beside them has none, and its edges."""
    own = lines[start:end]
    for line in (*lines[:start][-1:], *lines[end : end + 1]):
        edges = [(one.segments[0].left, one.segments[-1].right) for one in (line, *own)]
        is_level = all(max(places) - min(places) < 1 for places in zip(*edges, strict=True))
        if is_level and len(line.segments) == 1 and line.table is None:
            return not any(is_value(one.segments[-1].text) for one in own)
    return False


def cut_segments(columns: Columns, segments: Sequence[Segment]) -> list[Segment]:
    """Return segments, cut where a gap is between two columns."""
    gutters = [(one[1], other[0]) for one, other in pairwise(columns)]
    return [piece for segment in segments for piece in cut_segment(segment, gutters)]


def is_beside_rows(above: Line, line: Line, below: Line | None = None) -> bool:
    """Return whether a line is a label between the heights of two rows with values and no label,
    which are as far apart as the lines of a text.
    """
    if below is None or above.table is not None or below.table is not None:
        return False
    label = line.segments[0]
    return (
        len(line.segments) == 1
        and not is_value(label.text)
        and 0 < line.base - below.base < _PITCH * line.size / 2 + 1
        and 0 < above.base - line.base < _PITCH * line.size / 2 + 1
        and all(
            label.right < row.segments[0].left and any(is_value(one.text) for one in row.segments)
            for row in (above, below)
        )
    )


def goes_on_below(above: Line, line: Line, columns: Columns) -> bool:
    """Return whether a label goes on in the next line, in the width up to the next column."""
    label, own = above.segments[0], line.segments[0]
    is_close = above.base - line.base < _PITCH * line.size
    has_label = find_column(columns, label) == 0
    return is_close and has_label and continues_label(label, own, columns[1][0] - line.size)


def _may_begin(page: LaidOutPage, start: int) -> bool:
    """Return whether a table may begin at a line: not where it begins below, at narrower rules."""
    line, following = page.lines[start], page.lines[start + 1 : start + 2]
    if not 1 < len(line.segments) <= MOST_COLUMNS or line.is_code or line.is_running:
        return False
    lowest = following[0].base + following[0].size / 2 if following else line.base
    between = [
        rule for rule in page.text.rules
        if lowest < rule.base < line.base
        and rule.left < line.column[1] and line.column[0] < rule.right
    ]  # fmt: skip
    left = min((rule.left for rule in between), default=-inf)
    right = max((rule.right for rule in between), default=inf)
    return left - 5 <= line.segments[0].left and line.segments[-1].right <= right + 5


def _fits(line: Line, columns: Columns, above: Sequence[Line]) -> bool:
    """Return whether no segment of a line reaches over two columns of a line above it.

    A centred header and a short label may be beside each other in one column.
    """
    crossed = [
        over for piece in cut_segments(columns, line.segments)
        if len(over := list_over(columns, piece)) > 1
    ]  # fmt: skip
    return not any(
        sum(find_column(columns, one) in over for one in other.segments) > 1
        for over in crossed
        for other in above
    )


def _is_wrapped(rules: Sequence[DrawnRule], above: Line, line: Line, columns: Columns) -> bool:
    """Return whether a line of one segment goes on with a cell of the row above it."""
    own = line.segments[0]
    is_close = above.base - line.base < _PITCH * line.size
    is_inner = own.left > columns[0][1] - 1
    is_label = own.right < columns[min(1, len(columns) - 1)][0] and is_close
    is_wrapped = is_label and above.has_values and goes_on_below(above, line, columns)
    return is_close and (is_inner or is_wrapped or _has_rules(rules, line))


def _is_before_row(lines: Sequence[Line], start: int, end: int, columns: Columns) -> bool:
    """Return whether a line in the first column heads a row below it, or is a note of the one above
    it: other such lines may be between, and the row has values that fit the columns.
    """
    left, right = columns[0][0], columns[min(1, len(columns) - 1)][0]
    for above, line in pairwise(lines[end : end + _MOST_NOTES + 1]):
        note = above.segments[0]
        size = max(above.size, line.size)
        if (
            (abs(note.left - left) > size and note.right >= left)
            or note.right >= right
            or note.size > _LARGER_TITLE * line.size
            or not 0 < above.base - line.base < _FURTHEST_ROW * size
            or line.table is not None
        ):
            return False
        if len(line.segments) > 1:
            is_row = len(line.segments) >= min(len(columns), _LEAST_GROUPED) and line.has_values
            return is_row and _fits(line, columns, lines[start:end])
    return False


def _heads_table(
    rules: Sequence[DrawnRule], table: Sequence[Line], following: Sequence[Line], columns: Columns
) -> bool:
    """Return whether the line after those of a table is the header of another one.

    It has several texts that are no values. It is bold, above rules of its own or a row of values;
    or it is further from the row above it than from that below it; or its columns are others.
    """
    above, line, below = table[-1], following[0], following[-1]
    if len(line.segments) < 2 or any(is_value(one.text) for one in line.segments):
        return False
    is_bold = line.is_bold and not above.is_bold
    if is_bold and _has_rules(rules, line, is_below=len(line.segments) >= _LEAST_GROUPED):
        return True
    if not below.has_values or sum(one.has_values for one in table[-2:]) < _LEAST_VALUED:
        return False
    others = sum(not list_over(columns, segment) for segment in line.segments[1:])
    gap = above.base - line.base
    is_apart = gap > _APART * (line.base - below.base) and gap > _APART * above.size
    return is_bold or is_apart or 2 * others > len(line.segments)


def _has_rules(rules: Sequence[DrawnRule], line: Line, *, is_below: bool = False) -> bool:
    """Return whether rules are drawn above and below each text of a line, or just below it."""
    lowest = -line.size if is_below else -6 * line.size
    for segment in (part for one in line.segments for part in one.parts or [one]):
        over = [
            rule.base - line.base for rule in rules
            if rule.left <= segment.left + 5 and segment.right - 5 <= rule.right
        ]  # fmt: skip
        has_above = is_below or max(over, default=0) > 0
        if not has_above or not any(lowest < base < 0 for base in over):
            return False
    return True
