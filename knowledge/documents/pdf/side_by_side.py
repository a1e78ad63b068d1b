"""Finds texts beside each other that are not rows of a table, such as cards: in boxes, drawn one
after the other, or with lines at different heights.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import chain, groupby, pairwise
from math import inf
from operator import attrgetter

from knowledge.documents.pdf.page_objects import Box
from knowledge.documents.pdf.page_text import Segment
from knowledge.documents.pdf.reading_direction import is_right_to_left
from knowledge.documents.pdf.text_lines import (
    DrawnTable,
    TextTable,
    find_lines,
    group_by_line,
    merge_intervals,
)
from knowledge.documents.tables import is_value

_MOST_BOXES = 300
"""Maximum number of boxes of a page with cards; a page with more has tables or a drawing."""
_LEAST_WIDTH, _LEAST_HEIGHT = 30.0, 18.0
_LEAST_GAP = 4.0
"""Minimum distance in points between boxes that are no cells of a table."""
_BELOW = 4.0
_LEAST_LINES = 2
_LEVEL = 0.25
"""Maximum distance, in font sizes, between the baselines of texts of one row."""
_MOST_LEVEL = 0.34
"""Maximum share of the texts of a column at the height of others if they are not rows."""
_PITCH = 1.7
_MOST_LINES = 60
_MOST_SEGMENTS = 3_000
_MOST_RISES = 20
"""Maximum number of places where a text may begin beside those drawn before."""
_MOST_RUNNING = 3
"""Maximum number of lines above or below texts drawn out of order, such as page headers."""
_FURTHEST_HEAD = 4.0
"""Maximum distance of the head of a text from the text, in font sizes."""
_LEAST_CARD = 5
"""Minimum number of lines of a text that is no cell although rows follow it."""
_FURTHEST_ROW = 3.1
_LEAST_TEXT = 3
_ENDS_OF_LABELS = (":", "：")
Framed = tuple[Box, list[Segment]]
_find_number = attrgetter("number")
_Lines = Sequence[Sequence[Segment]]


def list_framed(segments: Iterable[Segment], boxes: Iterable[Box]) -> list[Framed]:
    """Return the boxes with text, the smallest first; none that cuts through a text."""
    distinct = {
        tuple(map(round, box)): box for box in boxes
        if box[2] - box[0] >= _LEAST_WIDTH and box[3] - box[1] >= _LEAST_HEIGHT
    }  # fmt: skip
    ordered = sorted(segments, key=lambda one: one.base)
    framed: list[Framed] = []
    for left, bottom, right, top in distinct.values() if len(distinct) <= _MOST_BOXES else ():
        first = bisect_left(ordered, bottom, key=lambda one: one.base)
        last = bisect_right(ordered, top, key=lambda one: one.base)
        near = [one for one in ordered[first:last] if one.left < right and left < one.right]
        own = [one for one in near[::-1] if left - 1 <= one.left and one.right <= right + 1]
        # A line just below the box may reach into it.
        inner = sum(one.base - bottom > one.size / 4 for one in near)
        if own and inner <= len(own):
            framed.append(((left, bottom, right, top), own))
    return sorted(framed, key=lambda one: (one[0][2] - one[0][0]) * (one[0][3] - one[0][1]))


def take_cards(segments: Sequence[Segment], boxes: Iterable[Box]) -> list[Segment]:
    """Return segments, with boxes that are beside each other in place of the segments in them.

    Boxes that touch each other are cells. So are those with values alone below their first lines,
    if all lines are at one height with others.
    """
    framed = list_framed(segments, boxes)
    apart = [
        one for one in framed
        if any(_find_gap(one, other) >= _LEAST_GAP for other in framed)
        and not any(0 <= _find_gap(one, other) < _LEAST_GAP for other in framed)
    ]  # fmt: skip
    left = list(segments)
    while apart:
        outer = apart.pop()
        row = [outer]
        for one in reversed(apart):
            if all(_find_gap(other, one) >= _LEAST_GAP for other in row):
                row.append(one)
        apart = [one for one in apart if not _is_within(one, row)]
        if not _are_framed_cells(row):
            taken = {id(segment) for _, own in row for segment in own}
            left = [one for one in left if id(one) not in taken]
            top = max(one[0][3] for one in row)
            left += [represent_card(one, top) for one in sorted(row, key=lambda one: one[0][0])]
    return left


def represent_card(card: Framed, top: float) -> DrawnTable:
    """Return the lines in a box, in its place just below a height."""
    (left, _, right, _), own = card
    size = max(own, key=lambda one: len(one.text)).size
    text = " ".join(segment.text for segment in own)
    table = TextTable([(left, right)], [], min(one.base for one in own), own)
    number = min(segment.number for segment in own)
    return DrawnTable(text, left, right, top - _BELOW, size, number=number, table=table)


def part_drawn(segments: Iterable[Segment]) -> Iterator[list[Segment]]:
    """Yield groups of segments in reading order: of two texts beside each other, one is drawn
    completely before the other, as cells of a row are not. Heads that are drawn as a row above such
    texts are with them.
    """
    waiting = [sorted(segments, key=_find_number)]
    while waiting:
        group = waiting.pop()
        parts = _part_beside(group) if len(group) <= _MOST_SEGMENTS else []
        if parts:
            waiting += parts[::-1]
        else:
            yield group


def part_unaligned(segments: Sequence[Segment]) -> Iterator[tuple[list[Segment], bool]]:
    """Yield groups of segments in reading order, each with whether their order is unclear.

    Columns whose lines are at different heights are no rows. They are read in the order in which
    the file draws them, if it draws several texts of each together.
    """
    if len(segments) > _MOST_SEGMENTS:
        yield list(segments), False
        return
    lines = list(group_by_line(segments))
    held: list[Segment] = []
    at = 0
    while at < len(lines):
        end, columns = _find_run(lines, at)
        own = list(chain.from_iterable(lines[at:end]))
        places = {id(one): _find_column(one, columns) for one in own}
        if len(columns) < 2 or not _are_unaligned(own, places):
            held += lines[at]
            at += 1
            continue
        if held:
            yield held, False
        drawn = sorted(own, key=_find_number)
        blocks = [list(block) for _, block in groupby(drawn, key=lambda one: places[id(one)])]
        is_unclear = 2 * len(blocks) > len(own)
        yield from ((block, is_unclear) for block in ([own] if is_unclear else blocks))
        held, at = [], end
    if held:
        yield held, False


def _part_beside(segments: list[Segment]) -> list[list[Segment]]:
    """Return two texts beside each other, one of which is drawn after the other, with what is drawn
    before and after them; or two texts, the upper one of which is drawn last; otherwise nothing.

    The second one begins above the end of the first. What begins furthest above it is tried first.
    """
    rises = (
        (below.base - _find_bottom(one), at)
        for at, (one, below) in enumerate(pairwise(segments), start=1)
        if below.base - _find_bottom(one) > below.size / 2
    )
    for _, at in nlargest(_MOST_RISES, rises):
        one, other = segments[:at], segments[at:]
        if max(part.base for part in one) < min(map(_find_bottom, other)):
            return [other, one]
        own, beside = _list_level(one, other)
        if own and beside and _are_columns(own, beside) and not _are_cells(segments, own, beside):
            groups = _put_in_order(one, other, own, beside)
            if groups:
                return groups
    return []


def _list_level(
    one: Sequence[Segment], other: Sequence[Segment]
) -> tuple[list[Segment], list[Segment]]:
    """Return the parts of two texts that are at the same heights, with the lines from the first one
    of the second text on that are above the first text, but not over it.
    """
    lowest, start = _find_bottom(one[-1]), other[0].base
    highest = min(max(part.base for part in one), start)
    own = [part for part in one if _find_bottom(part) <= highest and part.base >= lowest]
    higher = [part for part in other if highest < part.base <= start]
    over = set(map(id, chain(*_list_over(higher, own)))) if own else set()
    beside = [
        part for part in other
        if part.base >= lowest
        and (_find_bottom(part) <= highest or (part.base <= start and id(part) not in over))
    ]  # fmt: skip
    return own, beside


def _put_in_order(
    one: Sequence[Segment], other: Sequence[Segment], own: list[Segment], beside: list[Segment]
) -> list[list[Segment]]:
    """Return a text and one drawn after it in reading order, with what runs above and below them.

    `own` and `beside` are the parts of the texts that are beside each other. Nothing is returned if
    the drawing order is not that of reading, because much is drawn after what is below it.
    """
    top, bottom = max(part.base for part in own), min(map(_find_bottom, own))
    above, below = (
        [part for part in other if part.base > top],
        [part for part in one if part.base < bottom],
    )
    head, foot = list(_list_over(above, own)), list(_list_over(below, beside))
    if any(
        lines and len(list(group_by_line(parts))) > _MOST_RUNNING
        for lines, parts in ((head, above), (foot, below))
    ):
        return []
    heads = set(map(id, _find_heads(one, own, beside)))
    moved = {*heads, *map(id, chain(*head, *foot))}
    first = [part for part in one if id(part) not in moved]
    second = [
        *(part for part in one if id(part) in heads),
        *(part for part in other if id(part) not in moved),
    ]
    end = max(part.right for part in beside)
    goes_on = any(part.base < min(map(_find_bottom, own)) and part.right > end for part in second)
    if end > _find_left(own) or goes_on or any(is_right_to_left(part.text) for part in own):
        return [group for group in (*head, first, second, *foot) if group]
    # The right one is drawn first, maybe with a title above both.
    start = max(part.base for part in beside)
    title = [part for part in first if part.base > start and part.left < end]
    own = [part for part in first if part not in title]
    return [group for group in (*head, title, second, own, *foot) if group]


def _are_columns(one: Sequence[Segment], other: Sequence[Segment]) -> bool:
    """Return whether two texts beside each other are columns of several lines and no rows."""
    left, right = sorted((one, other), key=_find_left)
    if max(one.right for one in left) > _find_left(right):
        return False
    lines = [list(group_by_line(side)) for side in (left, right)]
    return min(map(len, lines)) >= _LEAST_LINES and not _are_rows(*lines)


def _are_cells(
    segments: Sequence[Segment], one: Sequence[Segment], other: Sequence[Segment]
) -> bool:
    """Return whether two texts of a few lines are cells of a row, because lines near them have
    texts in the same columns: one below them or two above them, one of which may be their head.
    """
    texts, own = (one, other), (*one, *other)
    if min(len(list(group_by_line(text))) for text in texts) >= _LEAST_CARD:
        return False
    inner = set(map(id, own))
    furthest = _FURTHEST_ROW * max(part.size for part in own)
    top, bottom = max(part.base for part in own), min(map(_find_bottom, own))
    near = (
        part for part in segments
        if bottom - furthest < part.base < top + 2 * furthest and id(part) not in inner
    )  # fmt: skip
    bases = [
        line[0].base for line in group_by_line(near)
        if all(any(_is_aligned(part, text) for part in line) for text in texts)
    ]  # fmt: skip
    above = [base for base in bases if 0 < base - top < 2 * furthest]
    return len(above) > 1 or any(0 < bottom - base < furthest for base in bases)


def _is_aligned(segment: Segment, text: Sequence[Segment]) -> bool:
    left, right = _find_left(text), max(part.right for part in text)
    distance = min(abs(segment.left - left), abs(segment.right - right))
    return distance < segment.size / 2 and segment.left < right and left < segment.right


def _are_rows(left: _Lines, right: _Lines) -> bool:
    """Return whether the lines of two texts may be rows although one text is drawn first: labels
    and values, such as those of a form that is filled in.
    """
    labels = sum(line[-1].text.endswith(_ENDS_OF_LABELS) for line in left)
    gaps = [above[0].base - line[0].base for above, line in pairwise(left)]
    level = sum(
        any(abs(line[0].base - one[0].base) < _LEVEL * line[0].size for one in right)
        for line in left
    )
    if level == len(left) and min(gaps) > _PITCH * left[0][0].size:
        return True
    return 2 * labels > len(left) or any(
        2 * sum(map(_begins_with_value, side)) >= len(side) for side in (left, right)
    )


def _begins_with_value(line: Sequence[Segment]) -> bool:
    first = next((one.text for one in line if len(one.text) >= _LEAST_TEXT), "")
    return not first or is_value(first)


def _find_heads(
    drawn: Sequence[Segment], own: Sequence[Segment], other: Sequence[Segment]
) -> Sequence[Segment]:
    """Return those of the segments drawn before a text that head it: they are drawn as a row with
    heads of what is drawn before it, above both.
    """
    top, size = (
        max(map(find, (*own, *other))) for find in (attrgetter("base"), attrgetter("size"))
    )
    above = [one for one in drawn if 0 < one.base - top < _FURTHEST_HEAD * size]
    line = list(group_by_line(above))[-1] if above else []
    left, right = _find_left(other), max(one.right for one in other)
    heads = [one for one in line if left - size < one.left and one.right < right + size]
    beside = [one for one in line if one not in heads]
    is_left = left > _find_left(own)
    is_apart = all((one.right < left) if is_left else (one.left > right) for one in beside)
    first = min((at for at, one in enumerate(drawn) if one in line), default=0)
    is_row = all(one in line for one in drawn[first : first + len(line)])
    return heads if heads and beside and is_apart and is_row else ()


def _list_over(segments: Iterable[Segment], text: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Yield the lines of segments that are, at least in part, above or below a text."""
    left, right = _find_left(text), max(one.right for one in text)
    for line in group_by_line(segments):
        if any(one.left < right and left < one.right for one in line):
            yield line


def _find_left(segments: Iterable[Segment]) -> float:
    return min(one.left for one in segments)


def _find_bottom(segment: Segment) -> float:
    return segment.table.lowest if isinstance(segment, DrawnTable) else segment.base


def _find_gap(one: Framed, other: Framed) -> float:
    """Return the distance between boxes beside each other; less than 0 if they are not."""
    (left, bottom, right, top), (own_left, own_bottom, own_right, own_top) = one[0], other[0]
    over = min(top, own_top) - max(bottom, own_bottom)
    is_beside = 2 * over >= min(top - bottom, own_top - own_bottom)
    return max(own_left - right, left - own_right) if is_beside else -1.0


def _is_within(one: Framed, others: Iterable[Framed]) -> bool:
    left, bottom, right, top = one[0]
    boxes = (other[0] for other in others)
    return any(
        box[0] <= left and box[1] <= bottom and right <= box[2] and top <= box[3] for box in boxes
    )


def _are_framed_cells(cards: Sequence[Framed]) -> bool:
    """Return whether boxes beside each other are columns or rows of a table."""
    lines = [list(find_lines(own)) for _, own in cards]
    if sum(len(own) >= _LEAST_LINES for own in lines) < _LEAST_LINES:
        return True
    bases = Counter(round(line.base) for own in lines for line in own)
    has_values = any(
        len(own) > _LEAST_LINES and all(is_value(line.text) for line in own[1:]) for own in lines
    )
    return has_values and min(bases.values()) > 1


def _find_run(
    lines: Sequence[Sequence[Segment]], start: int
) -> tuple[int, list[tuple[float, float]]]:
    """Return the end and the columns of the lines from the first one on that cross no column."""
    columns: list[tuple[float, float]] = []
    for at, line in enumerate(lines[start : start + _MOST_LINES], start=start):
        merged = merge_intervals([*columns, *((one.left, one.right) for one in line)])
        if isinstance(line[0], DrawnTable) or len(merged) < len(columns):
            return max(at, start + 1), columns
        columns = merged
    return min(len(lines), start + _MOST_LINES), columns


def _find_column(segment: Segment, columns: Sequence[tuple[float, float]]) -> int:
    return bisect_right(columns, segment.left + 0.5, key=lambda column: column[0]) - 1


def _are_unaligned(segments: Sequence[Segment], places: dict[int, int]) -> bool:
    """Return whether columns beside each other have several texts, and hardly any at the height of
    another. A value in the middle of a label of two lines is at its height.
    """
    counts = Counter(places.values())
    bases: dict[int, list[float]] = {}
    for one in segments:
        bases.setdefault(places[id(one)], []).append(one.base)
    columns = bases.values()
    over = min(map(max, columns)) - max(map(min, columns))
    longest = max(max(own) - min(own) for own in columns)
    if min(counts.values()) < _LEAST_LINES or 2 * over < longest:
        return False
    heights = sorted(_list_heights(segments, places))
    level = Counter(
        column for one in segments if _is_level(one, column := places[id(one)], heights)
    )
    return all(level[column] <= _MOST_LEVEL * count for column, count in counts.items())


def _list_heights(
    segments: Sequence[Segment], places: dict[int, int]
) -> Iterator[tuple[float, float, int]]:
    """Yield the heights of texts, and of the middle of two lines, with their size and column."""
    columns: dict[int, list[Segment]] = {}
    for one in segments:
        yield one.base, one.size, places[id(one)]
        columns.setdefault(places[id(one)], []).append(one)
    for column, held in columns.items():
        gaps = [inf, *(above.base - one.base for above, one in pairwise(held)), inf]
        for at, one in enumerate(held[1:], start=1):
            if gaps[at] < min(gaps[at - 1], gaps[at + 1], _PITCH * one.size):
                yield one.base + gaps[at] / 2, one.size, column


def _is_level(segment: Segment, column: int, heights: Sequence[tuple[float, float, int]]) -> bool:
    """Return whether a text is at the height of one in another column."""
    furthest = _LEVEL * segment.size
    first = bisect_left(heights, (segment.base - furthest,))
    last = bisect_right(heights, (segment.base + furthest, inf))
    return any(
        other != column and abs(segment.base - base) <= _LEVEL * size
        for base, size, other in heights[first:last]
    )
