"""Makes headings, paragraphs, items, code and tables of the lines of a PDF."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf

from knowledge.documents.page import Block, BlockKind, LeftOutCounts, make_code
from knowledge.documents.pdf.page_furniture import ends_with_leaders, remove_leaders
from knowledge.documents.pdf.page_layout import LaidOutPage
from knowledge.documents.pdf.page_text import DrawnRule, Segment, cut_segment
from knowledge.documents.pdf.tags import Tag
from knowledge.documents.pdf.text_lines import (
    SMALL_START,
    Line,
    TextTable,
    continue_table,
    continues_label,
    cuts_number,
    fills_page,
    hold_values_beside,
    is_wrapped,
    join_lines,
    merge_intervals,
    put_columns_in_order,
    write_text_table,
)
from knowledge.documents.tables import Cell, is_value

Outline = Mapping[int, Mapping[str, int]]
"""For each page the levels of the headings of the outline, by their letters."""

_NUMBERED = re.compile(r"(\d{1,3}(?:\.\d{1,3}){0,4})[.)]?[ \u00a0]+(?=\S)")
_NAMED = re.compile(r"(?:§|article|section|chapter|part|appendix|annex|artikel|kapitel|abschnitt|"
                    r"anhang|čl|članak)[. ]{1,3}[\dA-ZIVX]{1,6}\b", re.IGNORECASE)  # fmt: skip
_BULLET = re.compile(r"[•▪◦‣●○■\u0080-\u009f\ue000-\uf8ff–*-][ \u00a0]+(?=\S)")
"""The signs of symbol fonts are control characters, or in the area for private use."""
_LABEL = re.compile(
    r"(?:\d{1,3}(?:\.\d{1,3}){0,4}[.)]|\d{1,3}(?:\.\d{1,3}){1,4}|\([a-z0-9]{1,4}\)|[a-z]\))"
    r"[ \u00a0]+(?=\S)"
)
_ENDS_OF_SENTENCES = (".", ",", ";", "!")
_LONGEST_HEADING = 120
_LARGER = 1.1
_FURTHER = 1.3
_FURTHEST_CODE = 4.5
"""Lines of code are one block up to here, in sizes: two of them may be empty."""
_BETWEEN = 0.8
_LARGEST_GAP = 4.0
_MOST_ROW_LINES = 12
_UNCLEAR = "unclear columns: the lines are shown unchanged"
_LEAST_VALUED = 2
_LEAST_GROUPED = 3
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
_ALIGNED = 0.3
"""Maximum distance of the edges of a header and its column, in font sizes."""
_LEAST_OVER = 2.0
"""Minimum overlap in points of a text with a column to which it belongs."""


@dataclass(slots=True)
class _HeadingLines:
    """The lines of a heading; headings of one style have one level.

    `style` sorts headings by size, depth of their number and weight. `stated`: level in the file.
    """

    lines: list[Line]
    style: "_Style"
    stated: int | None = None


_Style = tuple[float, int, bool]
_Part = _HeadingLines | list[Line] | TextTable
"""A heading, a paragraph as its lines, or a table."""


@dataclass(slots=True)
class _Measures:
    """The usual measures of a document: the size of its text and the distance of its lines."""

    size: float
    pitch: float = field(default=1.2)
    has_tagged_headings: bool = False


def write_blocks(
    pages: Sequence[LaidOutPage], outline: Outline, left_out: LeftOutCounts
) -> Iterator[Block]:
    """Yield the blocks of all pages; the place of every block is its page.

    The structure of a table with unclear columns is left out: its lines are shown instead.
    """
    measures = _measure(pages)
    parts = list(_join_tables(_find_parts(pages, measures, outline, left_out)))
    levels = _rank(part for part in parts if isinstance(part, _HeadingLines))
    for part in parts:
        if isinstance(part, TextTable):
            number, texts = part.page, [" ".join(cell.text for cell in row) for row in part.rows]
        else:
            lines = part.lines if isinstance(part, _HeadingLines) else part
            number, texts = lines[0].page, [line.text for line in lines]
        blocks = [Block(BlockKind.TEXT, "\n".join(texts), anchor=f"page={number}")]
        with left_out.contain("text layout", f"page {number}"):
            blocks = list(_write_part(part, levels, left_out))
        yield from blocks


def bare(text: str) -> str:
    """Return the letters of a text in lower case, by which an outline names its headings."""
    return "".join(character for character in text.lower() if character.isalpha())


def find_tables(page: LaidOutPage, left_out: LeftOutCounts) -> Iterator[Line | TextTable]:
    """Yield the lines of a page, with the tables in the places of their lines.

    The lines of a table whose reader fails are yielded instead of it.
    """
    page.lines = list(_join_labels(page.lines))
    at = 0
    while at < len(page.lines):
        drawn = page.lines[at].table
        if drawn is not None:
            yield drawn
            at += 1
            continue
        end = _find_end(page, at)
        if end - at >= 2 and _is_justified(page.lines, at, end):
            yield from page.lines[at:end]
            at = end
        elif end - at >= 2:
            parts: Sequence[Line | TextTable] = page.lines[at:end]
            with left_out.contain("table structure", f"page {page.number}"):
                parts = list(_build_sides(page, page.lines[at:end]))
            yield from parts
            at = end
        else:
            end = at
            while (
                end < len(page.lines) and _is_row(page.lines[end]) and _find_end(page, end) == end
            ):
                end += 1
            if end - at >= 2:
                rows = page.lines[at:end]
                unclear = [line.text for line in rows]
                yield TextTable(page.number, [], [], rows[-1].base, unclear=unclear)
            else:
                yield page.lines[at]
            at = max(end, at + 1)


def _write_part(
    part: _Part, levels: Mapping[_Style, int], left_out: LeftOutCounts
) -> Iterator[Block]:
    if isinstance(part, TextTable):
        if part.unclear:
            left_out.add("table structure", _UNCLEAR, name=f"page {part.page}")
        yield from write_text_table(part)
    elif isinstance(part, _HeadingLines):
        yield _write_heading(part, levels)
    else:
        yield _write_paragraph(part)


def _join_labels(lines: Sequence[Line]) -> Iterator[Line]:
    """Yield the lines; a two-line label and the values centred beside it become one line."""
    at = 0
    while at < len(lines):
        line, *others = lines[at : at + _CENTRED_LINES]
        if len(others) < _CENTRED_LINES - 1 or not _are_beside_label(line, *others):
            yield line
            at += 1
            continue
        values, last = others
        one, other = line.segments[0], last.segments[0]
        label = replace(
            one, text=join_lines([line.text, last.text]), base=values.base, parts=[],
            right=max(one.right, other.right),
        )  # fmt: skip
        yield replace(values, segments=[label, *values.segments])
        at += _CENTRED_LINES


def _are_beside_label(above: Line, values: Line, below: Line) -> bool:
    """Return whether a line has values between the two lines of a label, nearer than lines are."""
    is_near = all(
        0 < one.base - other.base < _HALF_PITCH * values.size
        for one, other in ((above, values), (values, below))
    )
    labels = [*above.segments, *below.segments]
    return (
        is_near
        and len(labels) == _CENTRED_LINES - 1
        and above.column == values.column == below.column
        and all(is_value(segment.text) for segment in values.segments)
        and all(
            segment.right < values.segments[0].left and not is_value(segment.text)
            for segment in labels
        )
    )


def _measure(pages: Sequence[LaidOutPage]) -> _Measures:
    letters: Counter[float] = Counter()
    for page in pages:
        for line in page.lines:
            letters[line.size] += len(line.text)
    size = letters.most_common(1)[0][0] if letters else 10.0
    gaps = sorted(
        (above.base - line.base) / size
        for page in pages
        for above, line in pairwise(page.lines)
        if above.size == size == line.size
        and above.table is line.table
        and 0 < above.base - line.base < 2.5 * size
    )
    tags = (line.tag for page in pages for line in page.lines)
    has_headings = any(tag is not None and tag.level for tag in tags)
    return _Measures(size, gaps[len(gaps) // 4] if gaps else 1.2, has_headings)


def _find_parts(
    pages: Sequence[LaidOutPage],
    measures: _Measures,
    outline: Outline,
    left_out: LeftOutCounts,
) -> Iterator[_Part]:
    for page in pages:
        tables: Sequence[Line | TextTable] = page.lines
        with left_out.contain("page layout", f"page {page.number}"):
            tables = list(find_tables(page, left_out))
        titles = outline.get(page.number, {})
        held: list[Line] | None = None
        last: _HeadingLines | None = None
        for at, part in enumerate(tables):
            following = tables[at + 1] if at + 1 < len(tables) else None
            above = tables[at - 1] if at else None
            if isinstance(part, TextTable):
                heading, held, last = None, None, None
                yield part
                continue
            if part.tag is not None and measures.has_tagged_headings:
                heading = _read_heading(part, part.tag)
            else:
                heading = _find_heading(part, above, following, measures, titles)
            if last is not None and _joins(last, part, heading, measures):
                last.lines.append(part)
            elif heading is not None:
                held, last = None, heading
                yield heading
            elif held is not None and not _begins(held[-1], part, measures):
                held.append(part)
            else:
                held, last = [part], None
                yield held


def _read_heading(line: Line, tag: Tag) -> _HeadingLines | None:
    style = (-line.size, 0, not line.is_bold)
    return _HeadingLines([line], style, tag.level) if tag.level else None


def _find_heading(
    line: Line,
    above: Line | TextTable | None,
    following: Line | TextTable | None,
    measures: _Measures,
    titles: Mapping[str, int],
) -> _HeadingLines | None:
    text = line.text
    letters = bare(text)
    numbered = _NUMBERED.match(text)
    depth = numbered[1].count(".") + 1 if numbered else 0
    style = (-line.size, depth, not line.is_bold)
    if letters and letters in titles:
        return _HeadingLines([line], style, titles[letters])
    if not letters or len(text) > _LONGEST_HEADING or line.is_code or len(line.segments) > 1:
        return None
    if _BULLET.match(text) or text.endswith(_ENDS_OF_SENTENCES):
        return None
    if line.size >= measures.size * _LARGER:
        return _HeadingLines([line], style)
    if line.size < measures.size or not _stands_apart(line, above, measures):
        return None
    if line.is_bold and not text.endswith(":"):
        return _HeadingLines([line], style)
    is_named = numbered is not None or _NAMED.match(text) is not None
    if (
        is_named
        and len(text) < 70
        and not text.endswith("?")
        and _is_followed_by_prose(line, following)
    ):
        return _HeadingLines([line], style)
    return None


def _stands_apart(line: Line, above: Line | TextTable | None, measures: _Measures) -> bool:
    if not isinstance(above, Line) or above.column != line.column:
        return True
    gap = above.base - line.base
    return gap <= 0 or gap > measures.pitch * measures.size * 1.15 or line.is_bold != above.is_bold


def _is_followed_by_prose(line: Line, following: Line | TextTable | None) -> bool:
    """Return whether a numbered line heads text, rather than being an item among items."""
    if isinstance(following, TextTable):
        return True
    if following is None or _goes_on(line, following):
        return False
    label = _NUMBERED.match(line.text)
    other = _NUMBERED.match(following.text)
    if label is None or other is None:
        return True
    return other[1].startswith(f"{label[1]}.")


def _joins(
    last: _HeadingLines, line: Line, heading: _HeadingLines | None, measures: _Measures
) -> bool:
    """Return whether a heading goes on in a line, which may be a heading by itself."""
    above = last.lines[-1]
    if heading is None:
        return cuts_number(above.text, line.text) and above.column == line.column
    if line.tag is not None and line.tag.level:
        return above.tag is line.tag
    return (
        above.size == line.size
        and above.is_bold == line.is_bold
        and above.column == line.column
        and 0 < above.base - line.base < _FURTHER * max(measures.pitch, 1.1) * line.size
        and last.stated is None
        and heading.stated is None
        and not heading.style[1]
        and _NAMED.match(line.text) is None
    )


def _begins(above: Line, line: Line, measures: _Measures) -> bool:
    """Return whether a line begins a block."""
    if above.is_code and line.is_code and above.column == line.column:
        return not 0 < above.base - line.base < _FURTHEST_CODE * line.size
    if line.tag is not None:
        return above.tag is not line.tag
    if cuts_number(above.text, line.text) and above.column == line.column:
        return False
    if _BULLET.match(line.text) or _LABEL.match(line.text) or above.is_code != line.is_code:
        return True
    if above.column != line.column:
        return not _goes_on(above, line)
    gap = above.base - line.base
    if gap <= 0:
        return not _goes_on(above, line)
    return gap > _FURTHER * measures.pitch * max(above.size, line.size)


def _goes_on(above: Line, line: Line) -> bool:
    """Return whether a sentence goes on in the next column."""
    return not above.text.endswith((".", "!", "?", ":")) and bool(SMALL_START.match(line.text))


def _join_tables(parts: Iterator[_Part]) -> Iterator[_Part]:
    before: TextTable | None = None
    for part in parts:
        if isinstance(part, TextTable):
            part = put_columns_in_order(part)
            part = part if before is None else continue_table(before, part)
            before = part
        else:
            before = None
        yield part


def _rank(headings: Iterator[_HeadingLines]) -> dict[_Style, int]:
    styles = {heading.style for heading in headings if heading.stated is None}
    return {style: min(level, 6) for level, style in enumerate(sorted(styles), start=1)}


def _write_heading(heading: _HeadingLines, levels: Mapping[_Style, int]) -> Block:
    place = f"page={heading.lines[0].page}"
    text = remove_leaders(join_lines(line.text for line in heading.lines))
    level = levels[heading.style] if heading.stated is None else heading.stated
    return Block(BlockKind.HEADING, text, level, place)


def _write_paragraph(lines: Sequence[Line]) -> Block:
    place = f"page={lines[0].page}"
    first = lines[0]
    if first.is_code:
        return make_code(_write_code(lines), anchor=place)
    text = "\n".join(
        remove_leaders(join_lines(line.text for line in part)) for part in _part_lines(lines)
    )
    if _BULLET.match(text):
        return Block(BlockKind.ITEM, _BULLET.sub("- ", text, count=1), anchor=place)
    is_item = _LABEL.match(text) or (first.tag is not None and first.tag.kind == "LI")
    kind = BlockKind.ITEM if is_item else BlockKind.TEXT
    return Block(kind, text, anchor=place)


def _part_lines(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Yield the lines of a paragraph as one text, or one by one if all of them end early.

    Labels with values, addresses and verses have such lines. The longest line proves nothing. A
    value behind a row of dots ends an entry of a list.
    """
    ends = [at for at, line in enumerate(lines, start=1) if ends_with_leaders(line.text)]
    if ends:
        yield from (
            lines[start:end] for start, end in pairwise([0, *ends, len(lines)]) if start < end
        )
        return
    right = max(line.segments[-1].right for line in lines)
    breaks = [
        above.text.endswith("-") or is_wrapped(above.segments[-1], line.segments[0], right)
        for above, line in pairwise(lines)
        if above.segments[-1].right < right
    ]
    if breaks and not any(breaks):
        yield from ([line] for line in lines)
    else:
        yield lines


def _write_code(lines: Sequence[Line]) -> str:
    """Return lines of code with their indentation, and with the empty lines between them."""
    left = min(line.segments[0].left for line in lines)
    gaps = [above.base - line.base for above, line in pairwise(lines)]
    pitch = min(gaps, default=1.0)
    written: list[str] = []
    for line, gap in zip(lines, [pitch, *gaps], strict=True):
        written += [""] * (round(gap / pitch) - 1)
        width = max(line.size * 0.6, 1.0)
        text = ""
        for segment in line.segments:
            column = round((segment.left - left) / width)
            text = f"{text.ljust(column)}{segment.text}"
        written.append(text)
    return "\n".join(written)


def _find_end(page: LaidOutPage, start: int) -> int:
    """Return the index after the last line of a table that begins at a line, or the line itself."""
    lines = page.lines
    if not _may_begin(page, start):
        return start
    columns = [(segment.left, segment.right) for segment in lines[start].segments]
    end, last_row = start + 1, start
    while end < len(lines) and end - last_row <= _MOST_ROW_LINES:
        line = lines[end]
        if line.table is not None or _heads_table(page.text.rules, lines[end - 1], line):
            break
        gap = lines[end - 1].base - line.base
        if not 0 < gap < _LARGEST_GAP * line.size or not _fits(line, columns):
            break
        if len(line.segments) >= 2:
            last_row = end
            pieces = _cut_segments(columns, line.segments)
            columns = merge_intervals([*columns, *((one.left, one.right) for one in pieces)])
        elif not (
            _is_wrapped(page, lines[end - 1], line, columns)
            or _heads_rows(line, lines[end + 1 : end + 2], columns)
        ):
            break
        end += 1
    return end if last_row > start else start


def _is_row(line: Line) -> bool:
    """Return whether a line has the cells of a row, with a value among them."""
    is_wide = line.table is None and not line.is_code and len(line.segments) >= _LEAST_GROUPED
    return is_wide and any(is_value(segment.text) for segment in line.segments[1:])


def _is_justified(lines: Sequence[Line], start: int, end: int) -> bool:
    """Return whether lines are prose with wide spaces: one beside them has none, and its edges."""

    own = lines[start:end]
    for line in (*lines[:start][-1:], *lines[end : end + 1]):
        lefts = [one.segments[0].left for one in (line, *own)]
        rights = [one.segments[-1].right for one in (line, *own)]
        gap = min(abs(line.base - one.base) for one in (own[0], own[-1]))
        is_near = len(line.segments) == 1 and 0 < gap < _FURTHEST_ROW * line.size
        is_level = max(lefts) - min(lefts) < 1 and max(rights) - min(rights) < 1
        if is_near and is_level and line.table is None:
            return not any(is_value(one.segments[-1].text) for one in own)
    return False


def _may_begin(page: LaidOutPage, start: int) -> bool:
    """Return whether a table may begin at a line: not where it begins below, at narrower rules."""
    line, following = page.lines[start], page.lines[start + 1 : start + 2]
    if len(line.segments) < 2 or line.is_code:
        return False
    lowest = following[0].base + following[0].size / 2 if following else line.base
    between = [rule for rule in page.text.rules if lowest < rule.base < line.base]
    left = min((rule.left for rule in between), default=-inf)
    right = max((rule.right for rule in between), default=inf)
    return left - 5 <= line.segments[0].left and line.segments[-1].right <= right + 5


def _fits(line: Line, columns: Sequence[tuple[float, float]]) -> bool:
    """Return whether no segment of a line reaches over two columns that the table has so far."""
    return all(
        len(_list_over(columns, piece)) <= 1 for piece in _cut_segments(columns, line.segments)
    )


def _cut_segments(
    columns: Sequence[tuple[float, float]], segments: Sequence[Segment]
) -> list[Segment]:
    """Return segments, cut where a gap is between two columns."""
    gutters = [(one[1], other[0]) for one, other in pairwise(columns)]
    return [piece for segment in segments for piece in cut_segment(segment, gutters)]


def _is_wrapped(
    page: LaidOutPage, above: Line, line: Line, columns: Sequence[tuple[float, float]]
) -> bool:
    """Return whether a line of one segment goes on with a cell of the row above it."""
    is_close = above.base - line.base < 1.7 * line.size
    is_inner = line.segments[0].left > columns[0][1] - 1
    return is_close and (is_inner or _has_rules(page.text.rules, line))


def _heads_rows(
    line: Line, following: Sequence[Line], columns: Sequence[tuple[float, float]]
) -> bool:
    """Return whether a line of one segment heads the rows below it, which have all columns."""
    segment = line.segments[0]
    is_label = abs(segment.left - columns[0][0]) < segment.size and segment.right < columns[-1][0]
    return is_label and any(
        below.table is None
        and len(below.segments) >= max(len(columns), _LEAST_GROUPED)
        and any(is_value(segment.text) for segment in below.segments[1:])
        and 0 < line.base - below.base < _FURTHEST_ROW * line.size
        and abs(below.segments[0].left - segment.left) < 3 * segment.size
        and _fits(below, columns)
        for below in following
    )


def _heads_table(rules: Sequence[DrawnRule], above: Line, line: Line) -> bool:
    """Return whether a line is the bold header of another table, between rules of its own."""
    is_cut = any(line.base + line.size * 0.3 < rule.base <= above.base for rule in rules)
    is_bold = line.is_bold and not above.is_bold and len(line.segments) > 1
    has_values = any(is_value(segment.text) for segment in line.segments)
    return is_cut and is_bold and not has_values and _has_rules(rules, line)


def _has_rules(rules: Sequence[DrawnRule], line: Line) -> bool:
    """Return whether rules are drawn above and below each segment of a line."""
    for segment in line.segments:
        left, right = segment.left + 5, segment.right - 5
        over = [
            rule.base - line.base for rule in rules if rule.left <= left and right <= rule.right
        ]
        if not any(base > 0 for base in over) or not any(
            -6 * line.size < base < 0 for base in over
        ):
            return False
    return True


def _find_columns(lines: Sequence[Line]) -> list[tuple[float, float]]:
    """Return where the columns of a table begin and end.

    Rows with values determine them, because the text above may head several columns. Words are in
    different columns if most lines with text in both have a wide gap between them, and the others
    any gap.
    """
    placed = [
        (line.segments, [part for segment in line.segments for part in segment.parts or [segment]])
        for line in _list_valued(lines) or lines
    ]
    places = merge_intervals((part.left, part.right) for _, parts in placed for part in parts)
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
    return columns


def _list_valued(lines: Sequence[Line]) -> list[Line]:
    """Return the lines with values beside each other or beside a label, if there are several."""
    valued = [
        line for line in lines
        if len(line.segments) > 1 and any(is_value(segment.text) for segment in line.segments[1:])
    ]  # fmt: skip
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
            line.base for line in own
            if not is_value(line.segments[0].text)
            and any(is_value(part.text) for part in line.segments[1:])
        ]  # fmt: skip
        beside = sum(any(abs(base - line.base) < _LEVEL for line in others) for base in rows)
        if len(rows) < _LEAST_GROUPED or beside > _MOST_BESIDE * len(rows):
            return False
    return True


def _build(
    page: LaidOutPage, lines: Sequence[Line], columns: list[tuple[float, float]]
) -> TextTable:
    lines = [replace(line, segments=_cut_segments(columns, line.segments)) for line in lines]
    rules = [rule for rule in page.text.rules if lines[-1].base < rule.base < lines[0].base]
    first = max((line.base for line in _list_valued(lines)), default=inf)
    rows: list[list[list[str]]] = []
    above: Line | None = None
    for line in lines:
        if above is None or not _belongs_to_row(rules, above, line, columns, rows[-1]):
            rows.append([[] for _ in columns])
        is_head = line.base > first
        for segment in line.segments:
            over = _list_over(columns, segment) if is_head else []
            if len(over) < 2:
                over = [_find_column(columns, segment)]
            for column, text in zip(over, _part_header(columns, segment, over), strict=True):
                rows[-1][column].append(text)
        above = line
    is_head = lines[0].is_bold and not all(line.is_bold for line in lines)
    texts = [
        [Cell(join_lines(cell), is_header=is_head and not at) for cell in row]
        for at, row in enumerate(rows)
    ]
    lowest = lines[-1].base
    return TextTable(
        page.number,
        columns,
        texts,
        lowest,
        fills_page=fills_page(lowest, page.text.height),
        unclear=[line.text for line in lines] if _are_unclear(columns, lines) else (),
    )


def _part_header(
    columns: Sequence[tuple[float, float]], segment: Segment, over: Sequence[int]
) -> list[str]:
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
    if len(words) != sum(map(len, own.values())) or len(edges) < len(over) or not is_aligned:
        return [segment.text for _ in over]
    return [" ".join(word for *_, word in own[at]) for at in over]


def _are_unclear(columns: Sequence[tuple[float, float]], lines: Sequence[Line]) -> bool:
    """Return whether values are next to each other in a column."""
    return any(
        hold_values_beside(
            [segment for segment in line.segments if _find_column(columns, segment) == at]
            for line in lines
        )
        for at in range(len(columns))
    )


def _belongs_to_row(
    rules: Sequence[DrawnRule],
    above: Line,
    line: Line,
    columns: Sequence[tuple[float, float]],
    row: Sequence[Sequence[str]],
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
    has_value = any(is_value(segment.text) for segment in line.segments[1:])
    if has_label and (has_value or len(line.segments) == 1):
        is_open = not is_value(line.segments[0].text) and not (has_value and any(row[1:]))
        return is_open and _goes_on_below(above, line, columns)
    values = [one for one in line.segments[1:] if is_value(one.text)]
    if values and all(any(map(is_value, row[_find_column(columns, one)])) for one in values):
        # A further label with its value, such as a discount or a total.
        return False
    if len({round(rule.base) for rule in rules}) > 1:
        return True
    return not has_label and above.base - line.base < 1.5 * line.size


def _goes_on_below(above: Line, line: Line, columns: Sequence[tuple[float, float]]) -> bool:
    """Return whether a label goes on in the next line, in the width up to the next column."""
    label, own = above.segments[0], line.segments[0]
    is_close = above.base - line.base < 1.7 * line.size
    has_label = _find_column(columns, label) == 0
    return is_close and has_label and continues_label(label, own, columns[1][0] - line.size)


def _list_over(columns: Sequence[tuple[float, float]], segment: Segment) -> list[int]:
    """Return the columns that a segment is over."""
    return [
        at for at, (left, right) in enumerate(columns)
        if min(segment.right, right) - max(segment.left, left) > _LEAST_OVER
    ]  # fmt: skip


def _find_column(columns: Sequence[tuple[float, float]], segment: Segment) -> int:
    overlaps = [min(segment.right, right) - max(segment.left, left) for left, right in columns]
    return overlaps.index(max(overlaps))
