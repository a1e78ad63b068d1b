"""Reads tables whose cells are not drawn, by the alignment of their texts; see `ruled_tables`."""

from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from math import inf

from knowledge.documents.page import LeftOutCounts
from knowledge.documents.pdf.header_groups import (
    Cells,
    Columns,
    find_column,
    has_distinct_names,
    place_lines,
    share_groups,
)
from knowledge.documents.pdf.page_layout import LaidOutPage
from knowledge.documents.pdf.page_text import DrawnRule
from knowledge.documents.pdf.table_extent import (
    cut_segments,
    find_end,
    goes_on_below,
    is_beside_rows,
    is_justified,
)
from knowledge.documents.pdf.text_lines import (
    Line,
    TextTable,
    hold_values_beside,
    is_long,
    is_wrapped,
    join_cell,
    join_lines,
    lacks_group,
    merge_intervals,
    strike_row,
)
from knowledge.documents.tables import Cell, is_value

_BETWEEN = 0.8
_LEAST_VALUED = 2
_PROVED_BY = 2
"""Number of rows that prove a column beside a text that spans it."""
_LEAST_GROUPED = 3
_LEAST_WRAPPED = 0.8
"""Minimum share of lines of prose that go on."""
_LEVEL = 1.5
"""Distance in points within which lines are at one height."""
_MOST_BESIDE = 0.4
"""Maximum share of the rows of a table that are at the height of a line of another table."""
_CENTRED_LINES = 3
_HALF_PITCH = 0.85
"""Maximum distance of values from the lines of the label beside them, in font sizes."""
_NEARER = 0.8
_MAY_BE_COLUMNS = "rows of texts without values or lines between them may be columns"


def find_tables(page: LaidOutPage, left_out: LeftOutCounts) -> Iterator[Line | TextTable]:
    """Yield the lines of a page, with the tables in the places of their lines.

    The lines of a table whose reader fails are yielded instead of it.
    """
    page.lines = lines = list(_join_labels(page.lines))
    at = 0
    while at < len(lines):
        end = find_end(page, at)
        parts: Sequence[Line | TextTable] = lines[at:end]
        if (drawn := lines[at].table) is not None:
            parts = [drawn]
        elif end > at + 1 and not is_justified(lines, at, end):
            _count_columns(page, lines[at:end], left_out)
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


def _count_columns(page: LaidOutPage, lines: Sequence[Line], left_out: LeftOutCounts) -> None:
    """Count lines that may be columns of texts instead of rows."""
    if _may_be_columns(page.text.rules, lines):
        left_out.add("reading order", _MAY_BE_COLUMNS, name=f"page {page.number}")


def _may_be_columns(rules: Sequence[DrawnRule], lines: Sequence[Line]) -> bool:
    """Return whether nothing proves that lines are rows: no value, no rule, no label."""
    labels = sum(line.segments[0].text.endswith(":") for line in lines)
    left, right = lines[0].column
    return (
        2 * labels < len(lines)
        and not any(is_value(one.text) for line in lines for one in line.segments)
        and not any(
            lines[-1].base < rule.base < lines[0].base and rule.left < right and left < rule.right
            for rule in rules
        )
    )


def _is_unclear_row(page: LaidOutPage, at: int) -> bool:
    """Return whether a line has the cells of a row, with a value among them, but is in no table."""
    line = page.lines[at]
    is_wide = line.table is None and not line.is_code and len(line.segments) >= _LEAST_GROUPED
    return is_wide and line.has_values and find_end(page, at) == at + 1


def _join_labels(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines; a two-line label and the values centred beside it become one line."""
    at = 0
    while at < len(lines):
        near = lines[at : at + _CENTRED_LINES]
        if len(near) == _CENTRED_LINES and _are_beside_label(*near):
            (one,), values, (other,) = (line.segments for line in near)
            text, right = join_lines([one.text, other.text]), max(one.right, other.right)
            label = replace(one, text=text, base=near[1].base, parts=[], right=right)
            own = sorted([label, *values], key=lambda one: one.left)
            yield replace(near[1], segments=own)
            at += _CENTRED_LINES
        else:
            yield lines[at]
            at += 1


def _are_beside_label(above: Line, values: Line, below: Line) -> bool:
    """Return whether a line has values between the two lines of a text in another column, nearer
    than lines are.
    """
    gaps = above.base - values.base, values.base - below.base
    labels = [*above.segments, *below.segments]
    return (
        0 < min(gaps) <= max(gaps) < _HALF_PITCH * values.size
        and len(above.segments) == len(below.segments) == 1
        and all(is_value(segment.text) for segment in values.segments)
        and not any(is_value(segment.text) for segment in labels)
        and not any(
            label.left < value.right and value.left < label.right
            for label in labels
            for value in values.segments
        )
    )


def _find_columns(lines: Sequence[Line]) -> Columns:
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


def _list_proved(places: Columns) -> Columns:
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


def _add_empty(columns: Columns, lines: Sequence[Line]) -> Columns:
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
    yield from _build(page, lines, columns) if len(columns) > 1 else lines


def _is_prose(lines: Sequence[Line]) -> bool:
    """Return whether most lines are long and go on in the next one, as no cell of a row does."""
    right = max(line.segments[-1].right for line in lines)
    wrapped = sum(
        len(line.segments) == 1
        and is_long(line.text)
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


def _build(page: LaidOutPage, lines: Sequence[Line], columns: Columns) -> Iterator[TextTable]:
    """Yield the table of lines, below the lines of its header whose columns are unclear."""
    left, right = columns[0][0], columns[-1][1]
    rules = [
        rule for rule in page.text.rules
        if lines[-1].base < rule.base < lines[0].base and rule.left < right and left < rule.right
    ]  # fmt: skip
    lines = [replace(line, segments=cut_segments(columns, line.segments)) for line in lines]
    lines = list(_share_labels(lines, columns, rules))
    first = max((line.base for line in _list_valued(lines)), default=inf)
    placed = place_lines(lines, columns, first)
    heads = [cells for line, cells in zip(lines, placed, strict=True) if line.base > first]
    while heads and not any(heads[-1][1:]):
        # The head of the first rows.
        heads.pop()
    lowest, unclear_lines = share_groups(heads, columns, rules)
    if unclear_lines and has_distinct_names(heads[unclear_lines:]):
        unclear = [line.text for line in lines[:unclear_lines]]
        yield TextTable([], [], lines[0].base, unclear=unclear)
        yield from _build(page, lines[unclear_lines:], columns)
        return
    widest = max((above.base - line.base for above, line in pairwise(lines[1:])), default=0.0)
    rows = placed[:1]
    for at, cells in enumerate(placed[1:], start=1):
        above, line, below = lines[at - 1], lines[at], lines[min(at + 1, len(lines) - 1)]
        if (
            line.base >= lowest
            or _is_note(above, line, below)
            or _belongs_to_row(rules, above, line, columns, rows[-1], widest)
        ):
            rows[-1] = [[*begun, *own] for begun, own in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    is_head = lines[0].is_bold and not all(line.is_bold for line in lines)
    is_unclear = (
        any(map(hold_values_beside, zip(*placed, strict=True)))
        or unclear_lines > 0
        or lacks_group(heads)
        or any(is_beside_rows(*near) for near in zip(lines, lines[1:], lines[2:], strict=False))
        or _has_centred_labels(rows)
    )
    written = [
        [
            Cell(join_cell(cell, right), is_header=is_head and not at)
            for (_, right), cell in zip(columns, strike_row(row), strict=True)
        ]
        for at, row in enumerate([[Line([part]) for part in cell] for cell in row] for row in rows)
    ]
    shown = [line.text for line in lines] if is_unclear else ()
    yield TextTable(columns, written, lines[-1].base, unclear=shown)


def _share_labels(
    lines: Sequence[Line], columns: Columns, rules: Sequence[DrawnRule]
) -> Iterator[Line]:
    """Yield the lines; a label in the middle of the rows between two rules is that of each row."""
    heights = sorted(rule.base for rule in rules)
    for _, group in groupby(lines, lambda line: bisect(heights, line.base)):
        own = list(group)
        labels = [line.segments[0] for line in own if not find_column(columns, line.segments[0])]
        others = [[one for one in line.segments if find_column(columns, one)] for line in own]
        rows = [row for row in others if any(is_value(one.text) for one in row)]
        bases = [row[0].base for row in rows]
        is_one = len(labels) == 1 or not any(
            abs(label.base - base) < _LEVEL for label in labels for base in bases
        )
        is_shared = (
            len(rows) > 1 and labels and is_one and not is_value(labels[0].text)
            and labels[0].base < bases[0] - _LEVEL
            and abs(labels[0].base + labels[-1].base - bases[0] - bases[-1]) < labels[0].size
        )  # fmt: skip
        text = join_lines(label.text for label in labels)
        yield from (
            [
                replace(own[0], segments=[replace(labels[0], text=text, base=row[0].base), *row])
                for row in others if row
            ] if is_shared else own
        )  # fmt: skip


def _has_centred_labels(rows: Sequence[Cells]) -> bool:
    """Return whether each label is in the middle of rows with values, and may be that of all."""
    labels = [
        cells[0]
        for cells in rows
        if any(is_value(part.text) for cell in cells[1:] for part in cell)
    ]
    named = [at for at, cell in enumerate(labels) if cell]
    first, *gaps = (other - one - 1 for one, other in pairwise([-1, *named, len(labels)]))
    rest = first
    for gap in gaps[:-1]:
        rest = gap - rest
        if rest < 0:
            return False
    is_named = not any(is_value(part.text) for cell in labels for part in cell)
    return is_named and first > 0 and gaps[-1:] == [rest]


def _is_note(above: Line, line: Line, below: Line) -> bool:
    """Return whether a line in the first column is clearly nearer to the row above it."""
    is_alone = len(line.segments) == 1 and line.segments[0].left < above.segments[0].right
    gaps = above.base - line.base, line.base - below.base
    return is_alone and line.is_bold == above.is_bold and gaps[0] < _NEARER * gaps[1]


def _belongs_to_row(
    rules: Sequence[DrawnRule], above: Line, line: Line, columns: Columns, row: Cells, widest: float
) -> bool:
    """Return whether a line continues the row above it: no rule between them, or no first cell.

    Rules at one height, such as a double one, separate the header from the rows, and not the rows
    from each other. A line with a value begins a row, unless its label began in the line above. A
    cell with fewer lines is centred beside the others, so that a line between two of theirs belongs
    to all of them.
    """
    if any(line.base + line.size * 0.3 < rule.base <= above.base for rule in rules):
        return False
    if above.base - line.base < _BETWEEN * line.size:
        return True
    has_label = find_column(columns, line.segments[0]) == 0
    is_near = above.base - line.base < _NEARER * widest
    if is_near and has_label and goes_on_below(above, line, columns) and not line.has_values:
        return True
    if has_label and (line.has_values or len(line.segments) == 1):
        is_open = not is_value(line.segments[0].text) and not (line.has_values and any(row[1:]))
        return is_open and goes_on_below(above, line, columns)
    beside = [row[find_column(columns, one)] for one in line.segments[1:] if is_value(one.text)]
    if beside and all(any(is_value(part.text) for part in cell) for cell in beside):
        # A further label with its value, such as a discount or a total.
        return False
    heights = [rule.base for rule in rules]
    if heights and max(heights) - min(heights) > line.size:
        return True
    return not has_label and above.base - line.base < 1.5 * line.size
