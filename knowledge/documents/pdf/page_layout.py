"""Arranges the segments of a page into lines in reading order."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from statistics import median

from knowledge.documents.page import LeftOutCounts
from knowledge.documents.pdf.line_numbers import remove_line_numbers
from knowledge.documents.pdf.page_text import PageText, Segment
from knowledge.documents.pdf.ruled_tables import take_tables
from knowledge.documents.pdf.side_notes import place_note, take_notes
from knowledge.documents.pdf.text_lines import (
    SMALL_START,
    Line,
    TextTable,
    fills_page,
    find_lines,
)

_LEADERS = re.compile(r"(?:\.[ \u00a0]?){4,}|\u2026{2,}|_{8,}")
_CONTENTS_LINE = re.compile(
    r"[^\n]{1,200}?(?:(?:\.[ \u00a0]?){4,}|\u2026{2,})[ \u00a0]{0,9}[\divxlc]{1,6}\Z"
)
_ENTRY = re.compile(r"(\S.{0,200}?)[ \u00a0]{1,3}(?:(\d{1,4})|[ivxlc]{1,6})\Z")
_ENTRY_OF_COLUMN = re.compile(r"(?<!\S)(\d{1,4})\s{1,3}([^\d\s][^\n]{0,200})(?=\n|\Z)")
_DIGITS = re.compile(r"\d{1,18}")
_HEAD = "running head or foot"
_CONTENTS = "contents line"
_FURNITURE = "repeated on pages or part of their layout"
_LEAST_CONTENTS = 3
_ENTRY_LINES = 2
"""Maximum number of lines of an entry of a table of contents."""
_PITCH_OF_ENTRY = 1.7
_LEAST_TAGGED = 0.9
_MOST_BESIDE = 0.2
_LAST = 1_000_000
_UNCOUNTED = 20
_PAGE_NUMBER = re.compile(
    r"(?:(?:page|seite|p\.|página|pagina|strana)[ \u00a0]{0,3})?"
    r"[-–]?[ ]?(?:\d{1,5}|[ivxl]{1,6})[ ]?[-–]?"
    r"(?:[ ]?(?:/|of|von|de|sur|di)[ ]?\d{1,5})?\Z",
    re.IGNORECASE,
)  # fmt: skip
_TITLE_AND_PAGE = re.compile(
    r"(?:(\d{1,4})[ \u00a0]{1,3})?(\S.{0,200}?)(?:[ \u00a0]{1,3}(\d{1,4}))?\Z"
)
_LARGER = 1.1
_EDGE = 0.12
_OUTER_EDGE = 0.07
_LEAST_SIDE = 5
_LEAST_LETTERS = 22
_LEAST_SHARE = 0.8
_LEAST_LONG = 1
_LEAST_PAGES = 3


@dataclass(slots=True)
class LaidOutPage:
    """The lines of a page in reading order, with the data that tables need."""

    number: int
    text: PageText
    lines: list[Line] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _PageTables:
    """A page with its drawn tables, by the `id` of the segment that represents each table."""

    text: PageText
    tables: Mapping[int, TextTable]

    def show_cells(self, segments: Sequence[Segment], at: float | None = None) -> list[Segment]:
        """Return the segments, including those in tables; a table that crosses the position `at` is
        one segment.
        """
        shown: list[Segment] = []
        for segment in segments:
            table = self.tables.get(id(segment))
            is_whole = table is None or (at is not None and segment.left < at < segment.right)
            shown.extend([segment] if is_whole or table is None else table.segments)
        return shown


def lay_out(number: int, text: PageText) -> LaidOutPage:
    """Return a page whose lines are in reading order, column by column."""
    segments = [segment for segment in text.segments if segment.text.strip()]
    tables: Mapping[int, TextTable] = {}
    notes: Sequence[list[Segment]] = ()
    if segments and _is_tagged(segments):
        groups = _follow_tags(segments)
    else:
        tables, segments = take_tables(number, segments, text.strokes)
        for table in tables.values():
            table.fills_page = fills_page(table.lowest, text.height)
        notes, segments = take_notes(segments, tables, text.rules, _EDGE * text.height)
        groups = _split_columns(segments, _PageTables(text, tables), depth=2)
    lines: list[Line] = []
    for group in groups:
        lines += _find_lines_of(group, number, tables)
    for note in notes:
        place_note(lines, _find_lines_of(note, number, {}))
    return LaidOutPage(number, text, lines)


def remove_furniture(pages: Sequence[LaidOutPage]) -> LeftOutCounts:
    """Remove running heads, page and line numbers, and tables of contents; return what was removed.

    A running head with a number, such as a document number and its revision, is kept once.
    """
    left_out = LeftOutCounts()
    for page in pages:
        page.lines = remove_line_numbers(page.lines, left_out)
    repeated = _find_repeated(pages)
    titles = _find_running_titles(pages)
    contents = _find_contents(pages)
    usual = median([line.size for page in pages for line in page.lines] or [0.0])
    shown: set[str] = set()
    for page in pages:
        if page.text.is_tilted:
            # Such text is no heading, whatever its size.
            for segment in chain.from_iterable(line.segments for line in page.lines):
                segment.size = min(segment.size, usual)
        kept = []
        for line, what in _find_furniture(page, repeated, usual):
            what = _HEAD if id(line) in titles else what
            what = _CONTENTS if id(line) in contents else what
            is_numbered = what == _HEAD and _DIGITS.search(line.text) is not None
            is_same = is_numbered and repeated.get(_bare(line.text), False)
            if not what or (is_same and line.text not in shown):
                kept.append(line)
            else:
                left_out.add(what, _FURNITURE, name=line.text)
            shown.add(line.text)
        page.lines = kept
    return left_out


def remove_leaders(text: str) -> str:
    """Return a text without rows of dots or underscores."""
    return " ".join(_LEADERS.sub(" … ", text).split())


def _find_lines_of(
    group: Sequence[Segment], number: int, tables: Mapping[int, TextTable]
) -> list[Line]:
    column = (min(line.left for line in group), max(line.right for line in group))
    lines = []
    for line in find_lines(group, tables):
        frame = line.table if line.table is not None and not line.table.rows else None
        for own in [line] if frame is None else find_lines(frame.segments):
            own.column, own.page = column if frame is None else frame.columns[0], number
            lines.append(own)
    return lines


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


def _find_furniture(
    page: LaidOutPage, repeated: Mapping[str, bool], usual: float
) -> Iterator[tuple[Line, str]]:
    """Yield the lines of a page, each with its kind if it is not content."""
    edges = {id(line) for line in _edge_lines(page)}
    ends = {id(line) for line in page.lines[:1] + page.lines[-1:]}
    leaders = {
        id(line) for line in page.lines if line.table is None and _CONTENTS_LINE.match(line.text)
    }
    contents = _add_beginnings(page.lines, leaders) if len(leaders) >= _LEAST_CONTENTS else set()
    for line in page.lines:
        what = ""
        is_same = repeated.get(_bare(line.text))
        # A line that is larger than the text heads a page: its number counts headings.
        if id(line) in edges and (is_same or (is_same is False and line.size < _LARGER * usual)):
            what = _HEAD
        elif id(line) in edges | ends and _PAGE_NUMBER.match(line.text) is not None:
            what = "page number"
        elif id(line) in edges and _is_margin_note(line, page, usual):
            what = "small line at the edge of a page"
        elif id(line) in contents:
            what = _CONTENTS
        yield line, what


def _is_margin_note(line: Line, page: LaidOutPage, usual: float) -> bool:
    """Return whether a line is small and at the outer edge of the page, such as a heading that
    appears on only one page.
    """
    height = page.text.height
    is_outer = line.lowest > height * (1 - _OUTER_EDGE) or line.base < height * _OUTER_EDGE
    return is_outer and line.size <= 0.85 * usual


def _find_repeated(pages: Sequence[LaidOutPage]) -> dict[str, bool]:
    """Return the lines that occur only at the edge of several pages and are not rows of tables.

    The value is True if the numbers in the line are the same on all pages, and False if they count
    the pages. Other lines are content, such as "Room 104" below a heading "Room 103". Lines with
    nothing between them are content, too.
    """
    texts: dict[str, list[tuple[int, str]]] = {}
    inner: set[str] = set()
    for page in pages:
        edges = {id(line) for line in _edge_lines(page)}
        for line in page.lines:
            if id(line) in edges:
                texts.setdefault(_bare(line.text), []).append((page.number, line.text))
            else:
                inner.add(_bare(line.text))
    if not inner:
        return {}
    least = max(_LEAST_PAGES, len(pages) * 2 // 5) if len(pages) > 2 else 2
    return {
        key: len({text for _, text in occurrences}) == 1
        for key, occurrences in texts.items()
        if len(occurrences) >= least and key not in inner and _is_running(occurrences)
    }


def _find_running_titles(pages: Sequence[LaidOutPage]) -> set[int]:
    """Return the `id` of lines at edges that contain a title of the document and the page number.

    The title also appears elsewhere, so nothing is lost; the numbers of at least three such lines
    count pages.
    """
    known = {_fold(line.text) for page in pages for line in page.lines}
    by_offset: dict[int, list[int]] = {}
    for page in pages:
        for line in _edge_lines(page):
            match = _TITLE_AND_PAGE.match(line.text)
            number = (match[3] or match[1]) if match is not None else None
            if match is not None and number is not None and _fold(match[2]) in known:
                by_offset.setdefault(int(number) - page.number, []).append(id(line))
    same = (lines for lines in by_offset.values() if len(lines) >= _LEAST_PAGES)
    return {line for lines in same for line in lines}


def _find_contents(pages: Sequence[LaidOutPage]) -> set[int]:
    """Return the `id` of lines that are entries of tables of contents without leaders.

    The titles of at least three of them are lines of other pages, and their numbers differ equally
    from the numbers of these pages. The entries next to them belong to the same table of contents.
    """
    places: dict[str, set[int]] = {}
    for page in pages:
        for line in page.lines:
            places.setdefault(_name(line.text), set()).add(page.number)
    found: set[int] = set()
    for page in pages:
        offsets = {
            at: {
                int(number) - place
                for title, number in entries
                for place in places.get(_name(title), set()) - {page.number}
                if number
            }
            for at, line in enumerate(page.lines)
            if line.table is None and (entries := _list_entries(line))
        }
        common = Counter(chain.from_iterable(offsets.values())).most_common(1)
        if not common or common[0][1] < _LEAST_CONTENTS:
            continue
        for group in _group_near(sorted(offsets)):
            if any(common[0][0] in offsets[at] for at in group):
                found.update(map(id, page.lines[group[0] : group[-1] + 1]))
        found = _add_beginnings(page.lines, found)
    return found


def _add_beginnings(lines: Sequence[Line], entries: set[int]) -> set[int]:
    """Return the `id` of lines with entries and, if most lines have one, of those that begin one.

    Such a line is above an entry that begins with a small letter or, unlike the line, no number.
    """
    begun = {id(line) for line in lines} & entries
    if 2 * len(begun) <= len(lines):
        return entries
    for line, above in pairwise(reversed(lines)):
        is_near = 0 < above.base - line.base < _PITCH_OF_ENTRY * line.size
        is_same = (above.size, above.is_bold) == (line.size, line.is_bold)
        is_open = SMALL_START.match(line.text) is not None or (
            above.text[:1].isdecimal() and not line.text[:1].isdecimal()
        )
        if id(line) in begun and above.table is None and is_near and is_same and is_open:
            begun.add(id(above))
    return entries | begun


def _list_entries(line: Line) -> list[tuple[str, str]]:
    """Return the titles of a line, each with the digits of its number, behind or before it."""
    match = _ENTRY.match(line.text)
    if match is not None:
        return [(match[1], match[2] or "")] if _name(match[1]) else []
    text = "\n".join(segment.text for segment in line.segments)
    entries = [(title, number) for number, title in _ENTRY_OF_COLUMN.findall(text)]
    letters = sum(len(title) + len(number) + 1 for title, number in entries)
    return entries if letters + len(entries) - 1 == len(text) else []


def _group_near(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Yield groups of numbers that differ by at most two; an entry may have two lines."""
    group: list[int] = []
    for number in numbers:
        if group and number - group[-1] > _ENTRY_LINES:
            yield group
            group = []
        group.append(number)
    if group:
        yield group


def _name(title: str) -> str:
    """Return the letters and digits of a title; none if it has no letters."""
    name = "".join(filter(str.isalnum, title.lower()))
    return "" if name.isdecimal() else name


def _is_running(occurrences: Sequence[tuple[int, str]]) -> bool:
    """Return whether each number of a line is either the same on all pages or the page number.

    A document may begin with pages that are not numbered.
    """
    numbers = [[int(number) for number in _DIGITS.findall(text)] for _, text in occurrences]
    pages = [page for page, _ in occurrences]
    return all(
        len(set(column)) == 1
        or all(abs(number - at) <= _UNCOUNTED for number, at in zip(column, pages, strict=True))
        for column in zip(*numbers, strict=False)
    )


def _edge_lines(page: LaidOutPage) -> list[Line]:
    height = page.text.height
    return [
        line
        for line in page.lines
        if page.text.is_tilted or line.lowest > height * (1 - _EDGE) or line.base < height * _EDGE
    ]


def _bare(text: str) -> str:
    return _DIGITS.sub("#", _fold(text))


def _fold(text: str) -> str:
    return " ".join(text.lower().split())


def _split_columns(
    segments: list[Segment], page: "_PageTables", depth: int
) -> Iterator[list[Segment]]:
    """Yield groups of segments in reading order; text that crosses a gutter separates column
    areas.

    In columns of prose with figures, an area without prose is not split: it may be a table.
    """
    gutter = _find_gutter(segments, page) if depth else None
    has_figures = depth > 0 and gutter is None
    if has_figures:
        gutter = _find_gutter(segments, page, has_figures=True)
    if gutter is None:
        yield from [segments] if segments else []
        return
    area: list[Segment] = []
    whole: list[Segment] = []
    for segment in (*sorted(segments, key=lambda one: -one.base), None):
        if segment is not None and not segment.left < gutter < segment.right:
            area.append(segment)
            continue
        if has_figures and not _divides(page.show_cells(area), gutter, has_figures=True):
            whole += area
        else:
            yield from [whole] if whole else []
            left = [one for one in area if one.right <= gutter]
            right = [one for one in area if one.left >= gutter]
            yield from _split_columns(left, page, depth - 1)
            yield from _split_columns(right, page, depth - 1)
            whole = []
        whole += [segment] if segment is not None else []
        area = []
    yield from [whole] if whole else []


def _find_gutter(
    segments: Sequence[Segment], page: "_PageTables", *, has_figures: bool = False
) -> float | None:
    """Return the middle of an empty strip between two columns, or None.

    Either both columns are prose, or one is, and the lines of the other are positioned
    independently. With `has_figures`, both columns are prose with figures or tables between.
    """
    if len(page.show_cells(segments)) < 2 * _LEAST_SIDE:
        return None
    first = min(segment.left for segment in segments)
    last = max(segment.right for segment in segments)
    if last - first < page.text.width * 0.4:
        return None
    best: tuple[int, float] | None = None
    bare = [segment for segment in segments if id(segment) not in page.tables]
    step = max((last - first) / 100, 1.0)
    at = first + (last - first) * 0.25
    while at < first + (last - first) * 0.75:
        shown = page.show_cells(segments, at)
        crossing = sum(segment.left < at < segment.right for segment in shown)
        is_better = crossing * 5 <= len(shown) and (best is None or crossing < best[0])
        if is_better and (
            _divides(shown, at, has_figures=has_figures)
            or _divides(bare, at, has_figures=has_figures)
            or (not crossing and not has_figures and _parts(shown, at, page.text))
        ):
            best = (crossing, at)
        at += step
    return None if best is None else best[1]


def _divides(segments: Sequence[Segment], at: float, *, has_figures: bool) -> bool:
    sides = (
        [segment for segment in segments if segment.right <= at],
        [segment for segment in segments if segment.left >= at],
    )
    return all(_is_prose(side, has_figures=has_figures) for side in sides)


def _parts(segments: Sequence[Segment], at: float, page: PageText) -> bool:
    """Return True if two columns are not table cells; at most one of them may be prose.

    Cells of a row share a baseline or the rules between the rows. A column that contains a table
    has lines between those of the other column, and rules that end before it.
    """
    if any(rule.left < at < rule.right for rule in page.rules):
        return False
    left = [segment for segment in segments if segment.right <= at]
    right = [segment for segment in segments if segment.left >= at]
    if _is_prose(left):
        return _is_independent(right, left)
    if _is_prose(right):
        return _is_independent(left, right)
    return _is_independent(left, right) and _is_independent(right, left)


def _is_independent(side: Sequence[Segment], prose: Sequence[Segment]) -> bool:
    """Return whether a side has long lines, and few lines at the height of a line of the prose."""
    if sum(len(segment.text) >= _LEAST_LETTERS for segment in side) < _LEAST_LONG:
        return False
    bases = {round(segment.base) for segment in side}
    beside = sum(any(abs(segment.base - base) < 1.5 for segment in prose) for base in bases)
    return len(bases) >= 2 * _LEAST_SIDE and beside * 5 <= len(bases) * 2


def _is_prose(side: Sequence[Segment], *, has_figures: bool = False) -> bool:
    """Return whether the lines of a side are mostly long, or most of its text is in long lines."""
    long = [segment for segment in side if len(segment.text) >= _LEAST_LETTERS]
    if has_figures:
        letters = sum(len(segment.text) for segment in side)
        if sum(len(segment.text) for segment in long) < _LEAST_SHARE * letters:
            return False
        side = long
    if len(side) < _LEAST_SIDE or 2 * len(long) < len(side):
        return False
    lefts = sorted(segment.left for segment in side)
    return lefts[len(lefts) // 2] - lefts[0] < 60
