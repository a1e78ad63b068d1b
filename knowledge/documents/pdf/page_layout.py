"""Arranges the segments of a page into lines in reading order."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from knowledge.documents.pdf.drawn_grids import find_grids
from knowledge.documents.pdf.drop_caps import join_drop_caps
from knowledge.documents.pdf.implied_sides import imply_sides
from knowledge.documents.pdf.page_text import DrawnRule, PageText, Segment, Stroke
from knowledge.documents.pdf.ruled_tables import take_tables
from knowledge.documents.pdf.side_by_side import part_drawn, part_unaligned, take_cards
from knowledge.documents.pdf.side_notes import place_note, take_notes
from knowledge.documents.pdf.text_lines import (
    UNSPACED,
    DrawnTable,
    Line,
    find_lines,
    is_long,
)
from knowledge.documents.tables import is_value

_LEAST_TAGGED = 0.9
_LEAST_FRAME = 0.8
"""Minimum share of the width and height of a page that the frame around it has."""
_MOST_BESIDE = 0.2
_LAST = 1_000_000
EDGE = 0.12
"""The share of the height of a page that its edges have."""
_LEAST_SIDE = 5
_LEAST_VERTICAL = 10
_MOST_SEPARATORS = 2
"""Maximum number of rules across columns; more are those of a table or a form."""


@dataclass(slots=True)
class LaidOutPage:
    """The lines of a page in reading order, if it is clear, with the data that tables need."""

    number: int
    text: PageText
    lines: list[Line] = field(default_factory=list)
    is_unclear: bool = False


@dataclass(frozen=True, slots=True)
class _Gutter:
    """An empty strip between two columns, and what proves that an area beside it is columns.

    Areas end at `rules` that cross the strip; an area without proof may be a table. Prose in both
    columns of the page proves all areas.
    """

    at: float
    are_columns: Callable[[Sequence[Segment], Sequence[Segment]], bool]
    rules: Sequence[DrawnRule] = ()


def lay_out(number: int, text: PageText) -> LaidOutPage:
    """Return a page whose lines are in reading order, column by column."""
    segments = join_drop_caps([segment for segment in text.segments if segment.text.strip()])
    page = LaidOutPage(number, text, is_unclear=_is_vertical(segments))
    if segments and _is_tagged(segments):
        page.lines = list(_find_lines_of(page, _follow_tags(segments)))
        return page
    strokes, segments = imply_sides(segments, text.rules, text.strokes)
    grids = find_grids([*_remove_frame(text), *strokes])
    frames = ((one.lefts[0], one.tops[-1], one.lefts[-1], one.tops[0]) for one in grids)
    boxes = [*text.boxes, *frames]
    parts = take_cards(take_tables(segments, grids), boxes)
    for part in part_drawn(parts):
        notes, others = take_notes(part, boxes, text.rules, EDGE * text.height)
        lines = list(_find_lines_of(page, _split_columns(others, text, depth=2)))
        for note in notes:
            place_note(lines, list(_find_lines_of(page, [note])))
        page.lines += lines
    return page


def _is_vertical(segments: Sequence[Segment]) -> bool:
    """Return whether most Chinese or Japanese texts are single letters, as in columns down the
    page, which are not read in their order.
    """
    unspaced = [segment for segment in segments if UNSPACED.match(segment.text)]
    single = sum(len(segment.text) == 1 for segment in unspaced)
    return single >= _LEAST_VERTICAL and 2 * single > len(unspaced)


def _remove_frame(text: PageText) -> list[Stroke]:
    """Return the lines of a page without a frame around it, which would make cells of what is
    between it and a table, such as running heads. A table ends where its own lines end.
    """
    frame = [
        one for one in text.strokes
        if one.end - one.start >= _LEAST_FRAME * (text.height if one.is_vertical else text.width)
    ]  # fmt: skip
    for is_vertical in (False, True):
        sides = sorted(one.at for one in frame if one.is_vertical is is_vertical)
        least = _LEAST_FRAME * (text.width if is_vertical else text.height)
        if not sides or sides[-1] - sides[0] < least:
            return text.strokes
        frame = [
            one for one in frame
            if one.is_vertical is not is_vertical or one.at in (sides[0], sides[-1])
        ]  # fmt: skip
    removed = set(map(id, frame))
    return [one for one in text.strokes if id(one) not in removed]


def _find_lines_of(page: LaidOutPage, groups: Iterable[Sequence[Segment]]) -> Iterator[Line]:
    """Yield the lines of groups of segments; the page is unclear if the order of a group is."""
    for part, is_unclear in chain.from_iterable(map(part_unaligned, groups)):
        page.is_unclear |= is_unclear
        column = (min(line.left for line in part), max(line.right for line in part))
        for line in find_lines(part):
            line.column = column
            parts = [line]
            if (table := line.table) is not None and not table.rows:
                parts = [
                    replace(one, column=table.columns[0]) for one in find_lines(table.segments)
                ]
            yield from (replace(one, page=page.number) for one in parts)


def _is_tagged(segments: Sequence[Segment]) -> bool:
    """Return whether the tags determine the order of a page: nearly all text is tagged, none as a
    table cell.

    A page whose tables are tagged as paragraphs has many texts next to each other in one block.
    """
    tagged = [(segment, segment.tag) for segment in segments if segment.tag is not None]
    letters = sum(len(segment.text) for segment, _ in tagged)
    has_cells = any(tag.is_cell for _, tag in tagged)
    if has_cells or letters <= _LEAST_TAGGED * sum(len(segment.text) for segment in segments):
        return False
    places = Counter((tag, round(segment.base)) for segment, tag in tagged if tag.kind != "LI")
    beside = sum(count for count in places.values() if count > 1)
    return beside <= _MOST_BESIDE * places.total()


def _follow_tags(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Yield groups of segments in the order of their tags; untagged ones are placed above or below
    them.
    """
    highest = max(segment.base for segment in segments if segment.tag is not None)
    groups: dict[int, list[Segment]] = {}
    for segment in segments:
        outside = -1 if segment.base > highest else _LAST
        groups.setdefault(outside if segment.tag is None else segment.tag.number, []).append(
            segment
        )
    return (groups[number] for number in sorted(groups))


def _split_columns(segments: list[Segment], page: PageText, depth: int) -> Iterator[list[Segment]]:
    """Yield groups of segments in reading order; text that crosses a gutter separates column
    areas.
    """
    gutter = _find_gutter(segments, page) if depth else None
    if gutter is None:
        yield from [segments] if segments else []
        return
    whole: list[Segment] = []
    for area, crossing in _list_areas(segments, gutter.rules, gutter.at):
        sides = _part(area, gutter.at)
        shown = _part(_show_cells(area, gutter.at), gutter.at)
        if all(sides) and (gutter.are_columns is _are_prose or gutter.are_columns(*shown)):
            is_above = min(one.base for one in sides[1]) > max(one.base for one in sides[0])
            for group in (whole, *(sides[::-1] if is_above else sides)):
                yield from _split_columns(group, page, depth - 1)
            whole = []
        else:
            whole += area
        whole += crossing
    yield from _split_columns(whole, page, depth - 1)


def _show_cells(segments: Iterable[Segment], at: float | None = None) -> list[Segment]:
    """Return the segments, including those in tables; a table that crosses the position `at` is one
    segment.
    """
    shown: list[Segment] = []
    for one in segments:
        is_whole = at is not None and one.left < at < one.right
        shown += one.table.segments if isinstance(one, DrawnTable) and not is_whole else [one]
    return shown


def _list_areas(
    segments: Sequence[Segment], rules: Sequence[DrawnRule], at: float
) -> Iterator[tuple[list[Segment], list[Segment]]]:
    """Yield from above to below the segments beside a position, in areas between the rules and the
    segments that cross it, each with the segment below it.
    """
    area: list[Segment] = []
    for segment in sorted(segments, key=lambda one: -one.base):
        if area and any(segment.base < rule.base <= area[-1].base for rule in rules):
            yield area, []
            area = []
        if segment.left < at < segment.right:
            yield area, [segment]
            area = []
        else:
            area.append(segment)
    yield area, []


def _part(segments: Sequence[Segment], at: float) -> tuple[list[Segment], list[Segment]]:
    """Return the segments on both sides of a position."""
    left = [segment for segment in segments if segment.right <= at]
    return left, [segment for segment in segments if segment.left >= at]


def _find_gutter(segments: Sequence[Segment], page: PageText) -> _Gutter | None:
    """Return an empty strip between two columns, or None.

    Either both columns are prose, or the lines of both are placed independently in an area.
    """
    left = min((segment.left for segment in segments), default=0.0)
    width = max((segment.right for segment in segments), default=0.0) - left
    if len(_show_cells(segments)) < 2 * _LEAST_SIDE or width < page.width * 0.4:
        return None
    bare = [segment for segment in segments if not isinstance(segment, DrawnTable)]
    lowest, highest = (edge(one.base for one in segments) for edge in (min, max))
    found: list[tuple[int, _Gutter]] = []
    for at in (left + width * step / 100 for step in range(25, 75)):
        shown = _show_cells(segments, at)
        crossing = sum(segment.left < at < segment.right for segment in shown)
        rules = [
            rule for rule in page.rules
            if rule.left < at < rule.right and lowest < rule.base < highest
        ]  # fmt: skip
        sides = (_part(shown, at), _part(bare, at))
        if crossing * 5 > len(shown):
            continue
        if any(_are_prose(*side) for side in sides):
            found.append((crossing, _Gutter(at, _are_prose)))
        elif len(rules) <= _MOST_SEPARATORS and any(
            _are_independent(*_part(_show_cells(area, at), at))
            for area, _ in _list_areas(segments, rules, at)
        ):
            found.append((crossing, _Gutter(at, _are_independent, rules)))
    best = min(found, key=lambda one: (one[0], len(one[1].rules)), default=None)
    return None if best is None else best[1]


def _are_prose(left: Sequence[Segment], right: Sequence[Segment]) -> bool:
    return _is_prose(left) and _is_prose(right)


def _are_independent(left: Sequence[Segment], right: Sequence[Segment]) -> bool:
    """Return True if two columns are not table cells, because their lines are placed independently.

    Cells of a row share a baseline or the rules between the rows. A column that contains a table
    has lines between those of the other column, and rules that end before it.
    """
    if _is_independent(left, right):
        return _is_prose(right) or _is_independent(right, left)
    return _is_prose(left) and _is_independent(right, left)


def _is_independent(side: Sequence[Segment], other: Sequence[Segment]) -> bool:
    """Return whether a side has long lines, and few lines at the height of a line of the other.

    Lines that mostly begin with values may belong to labels on the other side.
    """
    starts = {round(one.base): one for one in sorted(side, key=lambda one: -one.left)}
    beside = sum(any(abs(segment.base - base) < 1.5 for segment in other) for base in starts)
    return (
        any(is_long(segment.text) for segment in side)
        and 2 * sum(is_value(one.text) for one in starts.values()) <= len(starts)
        and len(starts) >= 2 * _LEAST_SIDE
        and beside * 5 <= len(starts) * 2
    )


def _is_prose(side: Sequence[Segment]) -> bool:
    """Return whether the lines of a side are mostly long."""
    long = [segment for segment in side if is_long(segment.text)]
    if len(side) < _LEAST_SIDE or 2 * len(long) < len(side):
        return False
    lefts = sorted(segment.left for segment in side)
    return lefts[len(lefts) // 2] - lefts[len(lefts) // 10] < 60
