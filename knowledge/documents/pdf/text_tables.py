"""Reads tables whose cells are not drawn, by the alignment of their texts; see `ruled_tables`."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

from knowledge.documents.page import LeftOutCounts
from knowledge.documents.pdf.page_layout import LaidOutPage
from knowledge.documents.pdf.page_text import DrawnRule, Segment, cut_segment
from knowledge.documents.pdf.text_lines import (
    Line,
    TextTable,
    continues_label,
    hold_values_beside,
    is_wrapped,
    join_cell,
    join_lines,
    lacks_group,
    merge_intervals,
    strike_row,
)
from knowledge.documents.tables import Cell, is_value

_Cells = list[list[Segment]]
_Columns = list[tuple[float, float]]
"""Where the columns of a table begin and end, from left to right."""

_BETWEEN = 0.8
_LARGEST_GAP = 4.0
_LEAST_VALUED = 2
_PROVED_BY = 2
"""Number of rows that prove a column beside a text that spans it."""
_LEAST_GROUPED = 3
_MOST_NOTES = 3
"""Maximum number of lines between two rows that are only in the first column."""
_LEAST_LETTERS = 22
_LEAST_WRAPPED = 0.8
"""Minimum number of letters of a line of prose, and minimum share of lines that go on."""
_LEVEL = 1.5
"""Distance in points within which lines are at one height."""
_MOST_BESIDE = 0.4
"""Maximum share of the rows of a table that are at the height of a line of another table."""
_FURTHEST_ROW = 2.0
_CENTRED_LINES = 3
_HALF_PITCH = 0.85
"""Maximum distance of values from the lines of the label beside them, in font sizes."""
_NEARER = 0.8
_HEADER_PITCH = 1.4
_PITCH = 1.7
"""Maximum distance of the lines of a cell, in font sizes."""
_ALIGNED = 0.3
"""Maximum distance of the edges of a header and its column, in font sizes."""
_LEAST_OVER = 2.0
"""Minimum overlap in points of a text with a column to which it belongs."""


def find_tables(page: LaidOutPage, left_out: LeftOutCounts) -> Iterator[Line | TextTable]:
    """Yield the lines of a page, with the tables in the places of their lines.

    The lines of a table whose reader fails are yielded instead of it.
    """
    page.lines = lines = list(_join_labels(page.lines))
    at = 0
    while at < len(lines):
        end = _find_end(page, at)
        if end == at + 1 < len(lines) and _heads_column(lines[at], lines[end]):
            below = _find_end(page, end)
            end = below if below > end + 1 else end
        parts: Sequence[Line | TextTable] = lines[at:end]
        if (drawn := lines[at].table) is not None:
            parts = [drawn]
        elif end > at + 1 and not _is_justified(lines, at, end):
            with left_out.contain("table structure", f"page {page.number}"):
                parts = list(_build_sides(page, lines[at:end]))
        elif end == at + 1:
            while end < len(lines) and all(_is_unclear_row(page, one) for one in (at, end)):
                end += 1
            if end > at + 1:
                unclear = [line.text for line in lines[at:end]]
                parts = [TextTable([], [], lines[end - 1].base, unclear=unclear)]
        yield from parts
        at = end


def _is_unclear_row(page: LaidOutPage, at: int) -> bool:
    """Return whether a line has the cells of a row, with a value among them, but is in no table."""
    line = page.lines[at]
    is_wide = line.table is None and not line.is_code and len(line.segments) >= _LEAST_GROUPED
    return is_wide and line.has_values and _find_end(page, at) == at + 1


def _join_labels(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines; a two-line label and the values centred beside it become one line."""
    at = 0
    while at < len(lines):
        near = lines[at : at + _CENTRED_LINES]
        if len(near) == _CENTRED_LINES and _are_beside_label(*near):
            (one,), values, (other,) = (line.segments for line in near)
            text, right = join_lines([one.text, other.text]), max(one.right, other.right)
            label = replace(one, text=text, base=near[1].base, parts=[], right=right)
            yield replace(near[1], segments=[label, *values])
            at += _CENTRED_LINES
        else:
            yield lines[at]
            at += 1


def _are_beside_label(above: Line, values: Line, below: Line) -> bool:
    """Return whether a line has values between the two lines of a label, nearer than lines are."""
    gaps = above.base - values.base, values.base - below.base
    labels = [*above.segments, *below.segments]
    return (
        0 < min(gaps) <= max(gaps) < _HALF_PITCH * values.size
        and len(above.segments) == len(below.segments) == 1
        and all(is_value(segment.text) for segment in values.segments)
        and not any(is_value(segment.text) for segment in labels)
        and max(segment.right for segment in labels) < values.segments[0].left
    )


def _heads_column(line: Line, below: Line) -> bool:
    """Return whether a bold line is the upper part of a header in the line below it."""
    head = line.segments[0]
    is_near = 0 < line.base - below.base < _HEADER_PITCH * line.size
    is_head = len(line.segments) == 1 and line.is_bold and below.is_bold and is_near
    return is_head and any(
        one.left - one.size <= head.left and head.right <= one.right + one.size
        for one in below.segments[1:]
    )


def _find_end(page: LaidOutPage, start: int) -> int:
    """Return the index after the last line of a table that begins at a line, or after the line."""
    lines, rules = page.lines, page.text.rules
    columns: _Columns = [(segment.left, segment.right) for segment in lines[start].segments]
    end, last_row = start + 1, start
    while _may_begin(page, start) and end < len(lines):
        above, line = lines[end - 1 : end + 1]
        is_near = 0 < above.base - line.base < _LARGEST_GAP * line.size
        is_other = line.table is not None or line.is_running or line.column != above.column
        if is_other or not is_near or not _fits(line, columns):
            break
        if _heads_table(rules, above, line):
            break
        if len(line.segments) > 1:
            last_row = end
            pieces = _cut_segments(columns, line.segments)
            columns = merge_intervals([*columns, *((one.left, one.right) for one in pieces)])
        elif not (
            _is_wrapped(rules, above, line, columns)
            or _is_before_row(lines[end : end + _MOST_NOTES + 1], columns)
        ):
            break
        end += 1
    return end if last_row > start else start + 1


def _is_justified(lines: Sequence[Line], start: int, end: int) -> bool:
    """Return whether lines are prose with wide spaces: one beside them has none, and its edges."""
    own = lines[start:end]
    for line in (*lines[:start][-1:], *lines[end : end + 1]):
        edges = [(one.segments[0].left, one.segments[-1].right) for one in (line, *own)]
        is_level = all(max(places) - min(places) < 1 for places in zip(*edges, strict=True))
        if is_level and len(line.segments) == 1 and line.table is None:
            return not any(is_value(one.segments[-1].text) for one in own)
    return False


def _may_begin(page: LaidOutPage, start: int) -> bool:
    """Return whether a table may begin at a line: not where it begins below, at narrower rules."""
    line, following = page.lines[start], page.lines[start + 1 : start + 2]
    if len(line.segments) < 2 or line.is_code or line.is_running:
        return False
    lowest = following[0].base + following[0].size / 2 if following else line.base
    between = [rule for rule in page.text.rules if lowest < rule.base < line.base]
    left = min((rule.left for rule in between), default=-inf)
    right = max((rule.right for rule in between), default=inf)
    return left - 5 <= line.segments[0].left and line.segments[-1].right <= right + 5


def _fits(line: Line, columns: _Columns) -> bool:
    """Return whether no segment of a line reaches over two columns that the table has so far."""
    return all(
        len(_list_over(columns, piece)) <= 1 for piece in _cut_segments(columns, line.segments)
    )


def _cut_segments(columns: _Columns, segments: Sequence[Segment]) -> list[Segment]:
    """Return segments, cut where a gap is between two columns."""
    gutters = [(one[1], other[0]) for one, other in pairwise(columns)]
    return [piece for segment in segments for piece in cut_segment(segment, gutters)]


def _is_wrapped(rules: Sequence[DrawnRule], above: Line, line: Line, columns: _Columns) -> bool:
    """Return whether a line of one segment goes on with a cell of the row above it."""
    is_close = above.base - line.base < _PITCH * line.size
    is_inner = line.segments[0].left > columns[0][1] - 1
    return is_close and (is_inner or _has_rules(rules, line))


def _is_before_row(lines: Sequence[Line], columns: _Columns) -> bool:
    """Return whether a line in the first column heads a row below it, or is a note of the one above
    it: other such lines may be between, and the row has values that fit the columns.
    """
    left, right = columns[0][0], columns[min(1, len(columns) - 1)][0]
    for above, line in pairwise(lines):
        note = above.segments[0]
        size = max(above.size, line.size)
        if (
            abs(note.left - left) > size
            or note.right >= right
            or not 0 < above.base - line.base < _FURTHEST_ROW * size
            or line.table is not None
        ):
            return False
        if len(line.segments) > 1:
            is_row = len(line.segments) >= min(len(columns), _LEAST_GROUPED) and line.has_values
            return is_row and _fits(line, columns)
    return False


def _heads_table(rules: Sequence[DrawnRule], above: Line, line: Line) -> bool:
    """Return whether a line is the bold header of another table, between rules of its own, or above
    one if it has several columns.
    """
    is_bold = line.is_bold and not above.is_bold and len(line.segments) > 1
    has_values = any(is_value(segment.text) for segment in line.segments)
    is_wide = len(line.segments) >= _LEAST_GROUPED
    return is_bold and not has_values and _has_rules(rules, line, is_below=is_wide)


def _has_rules(rules: Sequence[DrawnRule], line: Line, *, is_below: bool = False) -> bool:
    """Return whether rules are drawn above and below each segment of a line, or just below it."""
    lowest = -line.size if is_below else -6 * line.size
    for segment in line.segments:
        over = [
            rule.base - line.base for rule in rules
            if rule.left <= segment.left + 5 and segment.right - 5 <= rule.right
        ]  # fmt: skip
        has_above = is_below or max(over, default=0) > 0
        if not has_above or not any(lowest < base < 0 for base in over):
            return False
    return True


def _find_columns(lines: Sequence[Line]) -> _Columns:
    """Return where the columns of a table begin and end.

    Rows with values determine them, because the text above may head several columns. Words are in
    different columns if most lines with text in both have a wide gap between them, and the others
    any gap.
    """
    placed = [
        (line.segments, [part for segment in line.segments for part in segment.parts or [segment]])
        for line in _list_valued(lines) or lines
    ]
    every = [(part.left, part.right) for _, parts in placed for part in parts]
    proved = _list_proved(every)
    places = merge_intervals(
        place for place in every
        if sum(min(place[1], right) - max(place[0], left) > 1 for left, right in proved) < 2
    )  # fmt: skip
    columns = places[:1]
    for place in places[1:]:
        left, right = columns[-1], place
        at = (left[1] + right[0]) / 2
        both = [
            segments for segments, parts in placed
            if any(left[0] <= segment.left < left[1] for segment in parts)
            and any(right[0] <= segment.left < right[1] for segment in parts)
        ]  # fmt: skip
        joined = sum(
            any(segment.left < at < segment.right for segment in segments) for segments in both
        )
        if 2 * joined > len(both):
            columns[-1] = (left[0], right[1])
        else:
            columns.append(place)
    return _add_empty(columns, lines)


def _list_proved(places: _Columns) -> _Columns:
    """Return where several rows have text, so that a text over two such places spans columns."""
    edges = sorted([*((left, 1) for left, _ in places), *((right, -1) for _, right in places)])
    depth, begun, proved = 0, 0.0, []
    for at, step in edges:
        if step == 1 and depth == _PROVED_BY:
            begun = at
        elif step == -1 and depth == _PROVED_BY + 1:
            proved.append((begun, at))
        depth += step
    return proved


def _add_empty(columns: _Columns, lines: Sequence[Line]) -> _Columns:
    """Return columns with those that have a header and no values.

    The header is beside those of most other columns, above the first row with values, and no column
    is between its neighbours.
    """
    first = next((at for at, line in enumerate(lines) if line.has_values), 0)
    above = [line.segments for line in lines[:first] if len(line.segments) > 1]
    heads = above[-1] if above and _list_valued(lines) else []
    ends = [-inf, *(head.right for head in heads[:-1])], [*(head.left for head in heads[1:]), inf]
    empty = [
        (head.left, head.right) for head, low, high in zip(heads, *ends, strict=False)
        if not any(
            (low < left and right < high) or (left <= head.right and head.left <= right)
            for left, right in columns
        )
    ]  # fmt: skip
    is_row = 2 * (len(heads) - len(empty)) > len(columns)
    return sorted([*columns, *empty]) if is_row else columns


def _list_valued(lines: Sequence[Line]) -> list[Line]:
    """Return the lines with values beside each other or beside a label, if there are several.

    Years above other headers are no values.
    """
    first = next((at for at, line in enumerate(lines) if line.has_values), 0)
    head, below = lines[first : first + 2] if first + 1 < len(lines) else (None, None)
    if head and below and not below.has_values and all(is_value(one.text) for one in head.segments):
        first += 1
    valued = [line for line in lines[first:] if line.has_values]
    return valued if len(valued) >= _LEAST_VALUED else []


def _build_sides(page: LaidOutPage, lines: Sequence[Line]) -> Iterator[Line | TextTable]:
    """Yield the table of lines, or the tables or columns of prose next to each other.

    Lines of one column are not a table.
    """
    columns = _find_columns(lines)
    for one, other in pairwise(columns):
        at = (one[1] + other[0]) / 2
        sides: list[list[Line]] = [[], []]
        for line in lines:
            for side, is_right, column in ((sides[0], False, one), (sides[1], True, other)):
                own = [part for part in line.segments if (part.left >= at) is is_right]
                side += [replace(line, segments=own, column=column)] if own else []
        if any(line.segments[-1].right > at for line in sides[0]):
            continue
        if _are_tables(*sides):
            for side in sides:
                yield from _build_sides(page, side)
            return
        if all(map(_is_prose, sides)):
            yield from (line for side in sides for line in side)
            return
    yield from [_build(page, lines, columns)] if len(columns) > 1 else lines


def _is_prose(lines: Sequence[Line]) -> bool:
    """Return whether most lines are long and go on in the next one, as no cell of a row does."""
    right = max(line.segments[-1].right for line in lines)
    wrapped = sum(
        len(line.segments) == 1
        and len(line.text) >= _LEAST_LETTERS
        and is_wrapped(above.segments[-1], line.segments[0], right)
        for above, line in pairwise(lines)
    )
    return wrapped > _LEAST_GROUPED and wrapped >= _LEAST_WRAPPED * (len(lines) - 1)


def _are_tables(left: Sequence[Line], right: Sequence[Line]) -> bool:
    """Return whether rows with values on one side are rarely at the height of lines on the other.

    Rows of one table share a baseline, or the label of each is on one.
    """
    for own, others in ((left, right), (right, left)):
        rows = [
            line.base for line in own if line.has_values and not is_value(line.segments[0].text)
        ]
        beside = sum(any(abs(base - line.base) < _LEVEL for line in others) for base in rows)
        if len(rows) < _LEAST_GROUPED or beside > _MOST_BESIDE * len(rows):
            return False
    return True


def _build(page: LaidOutPage, lines: Sequence[Line], columns: _Columns) -> TextTable:
    rules = [rule for rule in page.text.rules if lines[-1].base < rule.base < lines[0].base]
    lines = [replace(line, segments=_cut_segments(columns, line.segments)) for line in lines]
    first = max((line.base for line in _list_valued(lines)), default=inf)
    named = {
        at for line in lines if line.base > first
        for segment in line.segments for at in _list_over(columns, segment)
    }  # fmt: skip
    free = [at for at in range(len(columns)) if at not in named]
    placed = [_place(line, columns, free if line.base > first else None) for line in lines]
    heads = [cells for line, cells in zip(lines, placed, strict=True) if line.base > first]
    while heads and not any(heads[-1][1:]):
        # The head of the first rows.
        heads.pop()
    lowest = _share_groups(heads)
    rows = placed[:1]
    for at, cells in enumerate(placed[1:], start=1):
        above, line, below = lines[at - 1], lines[at], lines[min(at + 1, len(lines) - 1)]
        if (
            line.base >= lowest
            or _is_note(above, line, below)
            or _belongs_to_row(rules, above, line, columns, rows[-1])
        ):
            rows[-1] = [[*begun, *own] for begun, own in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    is_head = lines[0].is_bold and not all(line.is_bold for line in lines)
    is_unclear = any(map(hold_values_beside, zip(*placed, strict=True))) or lacks_group(heads)
    written = [
        [
            Cell(join_cell(cell, right), is_header=is_head and not at)
            for (_, right), cell in zip(columns, strike_row(row), strict=True)
        ]
        for at, row in enumerate([[Line([part]) for part in cell] for cell in row] for row in rows)
    ]
    unclear = [line.text for line in lines] if is_unclear else ()
    return TextTable(columns, written, lines[-1].base, unclear=unclear)


def _is_note(above: Line, line: Line, below: Line) -> bool:
    """Return whether a line in the first column is clearly nearer to the row above it."""
    is_alone = len(line.segments) == 1 and line.segments[0].left < above.segments[0].right
    gaps = above.base - line.base, line.base - below.base
    return is_alone and line.is_bold == above.is_bold and gaps[0] < _NEARER * gaps[1]


def _place(line: Line, columns: _Columns, free: Sequence[int] | None) -> _Cells:
    """Return the texts of a line in each column; a header over several columns is in each.

    A header beside its column is that of the nearest one that is `free`, without another header.
    """
    cells: _Cells = [[] for _ in columns]
    for segment in line.segments:
        over = [] if free is None else _list_over(columns, segment)
        if not over and free:
            at = _find_column([columns[at] for at in free], segment)
            cells[free[at]].append(segment)
        elif len(over) < 2:
            cells[_find_column(columns, segment)].append(segment)
        else:
            for column, text in zip(over, _part_header(columns, segment, over), strict=True):
                own = segment if text == segment.text else replace(segment, text=text)
                cells[column].append(own)
    return cells


def _share_groups(heads: Sequence[_Cells]) -> float:
    """Put the head of a group into all of its columns, if the headers below repeat in each group;
    return the place of the lowest header if all of them are one.

    There are as many groups of equal headers as heads, each of which is in the middle of a group;
    in the middle of three columns, it may belong to the second one alone.
    """
    names = [join_lines(part.text for part in cell) for cell in heads[-1]] if heads else []
    first = next((at for at, name in enumerate(names) if names.count(name) > 1), len(names))
    places = [(cell[0].left, cell[-1].right) for cell in heads[-1][first:] if cell] if heads else []
    lowest = inf
    for cells in heads[:-1]:
        own = list({id(part): part for cell in cells[first:] for part in cell}.values())
        width = len(places) // max(len(own), 1)
        groups = [places[at : at + width] for at in range(0, len(places), width or 1)]
        if (
            len(own) > 1
            and first + width * len(own) == len(names)
            and names[first:-width] == names[first + width :]
            and all(_is_head(one, group) for one, group in zip(own, groups, strict=True))
        ):
            cells[first:] = [[one] for one in own for _ in range(width)]
            lowest = min(part.base for cell in heads[-1] for part in cell)
    return lowest


def _is_head(head: Segment, group: _Columns) -> bool:
    """Return whether a text is in the middle of the headers of a group, and not of one of them."""
    is_clear = len(group) % 2 == 0 or len(_list_over(group, head)) > 1
    return is_clear and abs(head.left + head.right - group[0][0] - group[-1][1]) < 2 * head.size


def _part_header(columns: _Columns, segment: Segment, over: Sequence[int]) -> list[str]:
    """Return the words of a header for each column that it is over.

    They are all of the header, unless each word is over one column, and has its left or right edge
    or its middle: then these are adjacent headers, with only a space between.
    """
    words = segment.text.split(" ")
    own: dict[int, list[tuple[float, float, str]]] = {at: [] for at in over}
    for word, (left, right) in zip(words, segment.words, strict=False):
        places = _list_over(columns, replace(segment, left=left, right=right))
        own.get(places[0] if len(places) == 1 else -1, []).append((left, right, word))
    edges = [((parts[0][0], parts[-1][1]), columns[at]) for at, parts in own.items() if parts]
    is_aligned = any(
        all(abs(share(one) - share(other)) < _ALIGNED * segment.size for one, other in edges)
        for share in (min, max, sum)
    )
    if len(segment.parts) == len(over):
        return [part.text for part in segment.parts]
    if len(words) != sum(map(len, own.values())) or len(edges) < len(over) or not is_aligned:
        return [segment.text for _ in over]
    return [" ".join(word for *_, word in own[at]) for at in over]


def _belongs_to_row(
    rules: Sequence[DrawnRule],
    above: Line,
    line: Line,
    columns: _Columns,
    row: _Cells,
) -> bool:
    """Return whether a line continues the row above it: no rule between them, or no first cell.

    Rules at only one height separate the header from the rows, and not the rows from each other. A
    line with a value begins a row, unless its label began in the line above. A cell with fewer
    lines is centred beside the others, so that a line between two of theirs belongs to all of them.
    """
    if any(line.base + line.size * 0.3 < rule.base <= above.base for rule in rules):
        return False
    if above.base - line.base < _BETWEEN * line.size:
        return True
    has_label = _find_column(columns, line.segments[0]) == 0
    if has_label and (line.has_values or len(line.segments) == 1):
        is_open = not is_value(line.segments[0].text) and not (line.has_values and any(row[1:]))
        return is_open and _goes_on_below(above, line, columns)
    beside = [row[_find_column(columns, one)] for one in line.segments[1:] if is_value(one.text)]
    if beside and all(any(is_value(part.text) for part in cell) for cell in beside):
        # A further label with its value, such as a discount or a total.
        return False
    if len({round(rule.base) for rule in rules}) > 1:
        return True
    return not has_label and above.base - line.base < 1.5 * line.size


def _goes_on_below(above: Line, line: Line, columns: _Columns) -> bool:
    """Return whether a label goes on in the next line, in the width up to the next column."""
    label, own = above.segments[0], line.segments[0]
    is_close = above.base - line.base < _PITCH * line.size
    has_label = _find_column(columns, label) == 0
    return is_close and has_label and continues_label(label, own, columns[1][0] - line.size)


def _list_over(columns: _Columns, segment: Segment) -> list[int]:
    """Return the columns that a segment is over."""
    return [
        at for at, (left, right) in enumerate(columns)
        if min(segment.right, right) - max(segment.left, left) > _LEAST_OVER
    ]  # fmt: skip


def _find_column(columns: _Columns, segment: Segment) -> int:
    overlaps = [min(segment.right, right) - max(segment.left, left) for left, right in columns]
    return overlaps.index(max(overlaps))
