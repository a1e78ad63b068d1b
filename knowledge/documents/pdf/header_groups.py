"""Puts the texts of a table into its columns, and the header of a group into all of its columns."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from math import inf

from knowledge.documents.pdf.page_text import DrawnRule, Segment
from knowledge.documents.pdf.text_lines import Line, join_lines

Cells = list[list[Segment]]
Columns = list[tuple[float, float]]
"""Where the columns of a table begin and end, from left to right."""

_ALIGNED = 0.3
"""Maximum distance of the edges of a header and its column, in font sizes."""
_LEAST_OVER = 2.0
"""Minimum overlap in points of a text with a column to which it belongs."""
_NEAREST_RULE = 1.5
"""Maximum distance of the header of a group from the rule below it, in font sizes."""


def list_over(columns: Columns, segment: Segment) -> list[int]:
    """Return the columns that a segment is over."""
    return [
        at for at, (left, right) in enumerate(columns)
        if min(segment.right, right) - max(segment.left, left) > _LEAST_OVER
    ]  # fmt: skip


def find_column(columns: Columns, segment: Segment) -> int:
    """Return the column that a segment is most over, or next to."""
    overlaps = [min(segment.right, right) - max(segment.left, left) for left, right in columns]
    return overlaps.index(max(overlaps))


def place_lines(lines: Sequence[Line], columns: Columns, first: float) -> list[Cells]:
    """Return the texts of lines in each column; `first` is the place of the first row.

    A header above it is in each of the columns that it is over. A header beside its column is that
    of an adjacent one without another header, if there is any.
    """
    named = {
        at for line in lines if line.base > first
        for segment in line.segments for at in list_over(columns, segment)
    }  # fmt: skip
    free = [at for at in range(len(columns)) if at not in named]
    below: set[int] = set()
    placed = []
    for line in reversed(lines):
        is_header = line.base > first
        cells = _place_header(line, columns, free, below) if is_header else _place(line, columns)
        below.update(at for at, cell in enumerate(cells) if cell and is_header)
        placed.append(cells)
    return placed[::-1]


def share_groups(
    heads: Sequence[Cells], columns: Columns, rules: Sequence[DrawnRule]
) -> tuple[float, int]:
    """Put the header of a group into all of its columns.

    Return the place of the lowest header if all of them are one, and the number of lines whose
    columns are unclear.
    """
    names = heads[-1] if heads else []
    lowest = inf
    for at in range(len(heads) - 2, -1, -1):
        cells = heads[at]
        texts = list({id(part): part for cell in cells for part in cell}.values())
        spans = _list_spans(texts, names, columns, rules)
        if not all(spans.get(id(text), (0,)) for text in texts):
            return lowest, at + 1
        for text in texts:
            for column in spans.get(id(text), ()):
                lowest = min(part.base for cell in names for part in cell)
                cells[column][:] = [text]
    return lowest, 0


def has_distinct_names(heads: Sequence[Cells]) -> bool:
    """Return whether the headers of all columns that have one differ."""
    columns = (
        join_lines(part.text for cell in cells for part in cell)
        for cells in zip(*heads, strict=True)
    )
    names = [name for name in columns if name]
    return len(set(names)) == len(names)


def _place(line: Line, columns: Columns) -> Cells:
    cells: Cells = [[] for _ in columns]
    for segment in line.segments:
        cells[find_column(columns, segment)].append(segment)
    return cells


def _place_header(
    line: Line, columns: Columns, free: Sequence[int], below: Collection[int]
) -> Cells:
    """Return the texts of a line of the header in each column.

    `free` are the columns without a header over them, `below` those with one in another line.
    """
    # Texts at the left of their columns may be nearer to the values of the columns before.
    unnamed = sum(right < line.segments[0].left for _, right in columns[:1])
    if len(line.segments) == len(columns) - unnamed and all(
        at in (list_over(columns, one) or [at])
        for at, one in enumerate(line.segments, start=unnamed)
    ):
        return [*([] for _ in range(unnamed)), *([one] for one in line.segments)]
    cells: Cells = [[] for _ in columns]
    for segment in line.segments:
        over = list_over(columns, segment)
        if len(over) < 2:
            right = sum(left < segment.left for left, _ in columns)
            beside = [at for at in (right - 1, right) if at in free] if not over else []
            own = beside or range(len(columns))
            cells[own[find_column([columns[at] for at in own], segment)]].append(segment)
        elif all(at in below for at in over):
            for at in over:
                cells[at].append(segment)
        else:
            for at, text in zip(over, _part_header(columns, segment, over), strict=True):
                cells[at].append(segment if text == segment.text else replace(segment, text=text))
    return cells


def _list_spans(
    texts: Sequence[Segment], names: Cells, columns: Columns, rules: Sequence[DrawnRule]
) -> dict[int, Sequence[int]]:
    """Return the columns of each header of a group in a line; none if they are unclear.

    A rule below a header shows its columns. Without rules, a header that is over several headers,
    or over a gap between two, is in the middle of its group, between the headers beside it.
    """
    over = []
    for text in texts:
        own, nearest = list_over(columns, text), find_column(columns, text)
        # No group is next to the labels of the rows, or above a column without another header.
        is_own = len(own) != 1 and not (nearest and names[nearest] and all(names[at] for at in own))
        over.append([nearest] if is_own else own)
    ruled = [_find_ruled(text, own, columns, rules) for text, own in zip(texts, over, strict=True)]
    if any(ruled):
        return {id(text): own for text, own in zip(texts, ruled, strict=True) if own}
    spans: dict[int, Sequence[int]] = {}
    if all(len(own) == 1 for own in over):
        return spans
    ends = [-inf, *(text.right for text in texts)]
    starts = [*(text.left for text in texts[1:]), inf]
    for text, own, low, high in zip(texts, over, ends, starts, strict=False):
        free = [
            at for at, (left, right) in enumerate(columns)
            if names[at] and (at in own or (at and low < left and right < high))
        ]  # fmt: skip
        groups = [
            range(one, other + 1) for one, other in combinations_with_replacement(free, 2)
            if {one, other, *own} <= {*free} and (one < other or own)
            and one <= min(own, default=one) and max(own, default=other) <= other
            and _is_centred(text, names, range(one, other + 1))
        ]  # fmt: skip
        is_clear = len(groups) == 1 and len(set(_part_header(columns, text, groups[0]))) == 1
        spans[id(text)] = groups[0] if is_clear else ()
    return spans


def _find_ruled(
    text: Segment, over: Sequence[int], columns: Columns, rules: Sequence[DrawnRule]
) -> Sequence[int]:
    """Return the columns above which a rule is drawn below a text; none if it is over all."""
    middle = (text.left + text.right) / 2
    for rule in rules:
        is_below = 0 < text.base - rule.base < _NEAREST_RULE * text.size
        if is_below and rule.left <= middle <= rule.right:
            own = [
                at for at, (left, right) in enumerate(columns)
                if rule.left <= (left + right) / 2 <= rule.right
            ]  # fmt: skip
            if len(own) > 1 and own[0] and {*over} <= {*own}:
                return own
    return ()


def _is_centred(text: Segment, names: Cells, span: Sequence[int]) -> bool:
    """Return whether a text is in the middle of the headers of columns."""
    first, last = names[span[0]], names[span[-1]]
    if not first or not last:
        return False
    return abs(text.left + text.right - first[0].left - last[-1].right) < 2 * text.size


def _part_header(columns: Columns, segment: Segment, over: Sequence[int]) -> list[str]:
    """Return the words of a header for each column that it is over.

    They are all of the header, unless each word is over one column, and has its left or right edge
    or its middle: then these are adjacent headers, with only a space between.
    """
    words = segment.text.split(" ")
    own: dict[int, list[tuple[float, float, str]]] = {at: [] for at in over}
    for word, (left, right) in zip(words, segment.words, strict=False):
        places = list_over(columns, replace(segment, left=left, right=right))
        own.get(places[0] if len(places) == 1 else -1, []).append((left, right, word))
    edges = [((parts[0][0], parts[-1][1]), columns[at]) for at, parts in own.items() if parts]
    is_aligned = any(
        all(abs(share(one) - share(other)) < _ALIGNED * segment.size for one, other in edges)
        for share in (min, max, sum)
    )
    if len(words) != sum(map(len, own.values())) or len(edges) < len(over) or not is_aligned:
        return [segment.text for _ in over]
    return [" ".join(word for *_, word in own[at]) for at in over]
