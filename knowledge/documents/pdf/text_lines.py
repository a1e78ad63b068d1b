"""Puts the segments of a text into lines, and joins lines to a text."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from knowledge.documents.notation import strike
from knowledge.documents.page import Block, BlockKind
from knowledge.documents.pdf.page_text import Segment
from knowledge.documents.pdf.reading_direction import begins_right
from knowledge.documents.pdf.tags import Tag
from knowledge.documents.tables import Cell, count_header_rows, expand_cells, is_value, write_table

_LABEL = re.compile(
    r"(?:\(?(?:\d{1,3}(?:\.\d{1,3}){0,4}|[a-zA-Z]|[ivx]{1,5})[.)]?|[•▪◦‣●○■\-–—*\u0080-\u009f\ue000-\uf8ff])\Z"
)
_HYPHENATED = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010]\Z")
_CUT_NUMBER = re.compile(r"(?<=\d)[-\u2010\u2011\u2013]\Z")
_REST_OF_NUMBER = re.compile(r"\d(?![\d.,]*-(?!\S))")
"""A number below another with a minus behind it is an amount of its own."""
SMALL_START = re.compile(r"[a-zß-öø-ÿа-яёα-ωčćšžđłńśźż]")
_WORD = re.compile(
    r"(?<![\w\u00ad\u2010\u2011-])[^\W\d_]+(?:[-\u2010\u2011][^\W\d_]+)*"
    r"(?![\w\u00ad\u2010\u2011-])"
)
_CUT_WORD = re.compile(r"(?<![^\W\d_])([^\W\d_]+)([-\u2010]?)\u00ad([^\W\d_]+)")
_GAP_IN_NUMBERS = re.compile(r"(?<=\d)\n(?=\d)")
_RANGE = re.compile(r"\A(\d[\d.,:/]*%?)([ ]?[\u2013\u2014][ ]?|[ ]-[ ])(\d[\d.,:/]*%?)\Z")
_NUMBER = re.compile(r"\d{1,15}")
_STRUCK = "~~"
_LEAST_PART = 3
_MOST_WRAPPED = 8
"""Maximum number of lines of a row."""
_PITCH = 1.7
_LEAST_LETTERS = 22
"""Minimum number of letters of a line of prose."""
UNSPACED = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_BASELINE = 0.5
_LABEL_AND_VALUE = 2
_LEAST_BESIDE = 2
_SPACE = 0.25
_ALIGNED = 0.3
"""How far apart, in sizes, the left edges of a label's lines may be."""
_PADDING = 2.0


@dataclass(slots=True)
class TextTable:
    """The rows of a table on one page, its column edges, and its lowest line.

    A drawn table has its segments. `unclear` are its lines in reading order, if its columns cannot
    be determined. `fills_page`: it ends where its page has no room for more rows.
    """

    columns: list[tuple[float, float]]
    rows: list[list[Cell]]
    lowest: float
    segments: list[Segment] = field(default_factory=list)
    unclear: Sequence[str] = ()
    page: int = 0
    fills_page: bool = False

    @property
    def has_header(self) -> bool:
        """Whether a row may be the header of the columns; labels with values have no header.

        With two columns, the header is bold, or numbers follow below a word.
        """
        if len(self.columns) != _LABEL_AND_VALUE or any(cell.is_header for cell in self.rows[0]):
            return True
        first, *others = (row[-1] for row in expand_cells(self.rows))
        numbered = sum(any(map(str.isdecimal, text)) for text in others)
        return not any(map(str.isdecimal, first)) and 2 * numbered > len(others)


@dataclass(slots=True)
class DrawnTable(Segment):
    """A drawn table, in the place of the segments in it."""

    table: TextTable = field(kw_only=True)


@dataclass(slots=True)
class Line:
    """Segments on one baseline of a column, from left to right; or all of a drawn table.

    A line that `is_running` stands at the edge of several pages, and is no part of their tables.
    """

    segments: list[Segment]
    column: tuple[float, float] = (0.0, 0.0)
    page: int = 0
    is_running: bool = False

    @property
    def table(self) -> TextTable | None:
        """The drawn table that the line represents."""
        first = self.segments[0]
        return first.table if isinstance(first, DrawnTable) else None

    @property
    def text(self) -> str:
        """The line as text; wide gaps are one space, or a semicolon between two numbers."""
        text = "\n".join(segment.text for segment in self.segments)
        return _GAP_IN_NUMBERS.sub("; ", text).replace("\n", " ")

    @property
    def tag(self) -> Tag | None:
        """The block of the line, if the file states it."""
        return self.segments[0].tag

    @property
    def base(self) -> float:
        """The place of the line above the lower edge of the page."""
        return self.segments[0].base

    @property
    def lowest(self) -> float:
        """The baseline of the line or, of a table, of its last line."""
        return self.base if self.table is None else self.table.lowest

    @property
    def size(self) -> float:
        """The font size of the longest segment."""
        return max(self.segments, key=lambda segment: len(segment.text)).size

    @property
    def is_bold(self) -> bool:
        """Whether the whole line is bold."""
        return all(segment.is_bold for segment in self.segments)

    @property
    def has_values(self) -> bool:
        """Whether the line has values beside each other or beside a label."""
        return any(is_value(segment.text) for segment in self.segments[1:])

    @property
    def is_code(self) -> bool:
        """Whether the whole line is set in a typeface of code."""
        return all(segment.is_code for segment in self.segments)


def find_lines(segments: Iterable[Segment]) -> Iterator[Line]:
    """Yield the lines of segments, from top to bottom.

    Those of a row whose cells are drawn one after the other, such as `15`, `Mar` and then the text
    beside `15`, are one line.
    """
    lines = [_put_in_order(line) for line in group_by_line(segments)]
    at = 0
    cells: list[Segment] = []
    while at < len(lines):
        count = _count_drawn(lines[at : at + _MOST_WRAPPED])
        own, below = lines[at : at + count], lines[at + count : at + count + 1]
        cells = _find_cells(own, is_in_grid=bool(cells) or _is_row_below(own, below))
        for line in [cells] if cells else own:
            yield Line(_join_label(line))
        at += count


def group_by_line(segments: Iterable[Segment]) -> Iterator[list[Segment]]:
    """Yield the segments of each line, from top to bottom; a drawn table is a line."""
    held: list[Segment] = []
    for segment in sorted(segments, key=lambda one: -one.base):
        is_table = any(isinstance(one, DrawnTable) for one in (segment, *held[:1]))
        if held and (
            is_table or held[0].base - segment.base > _BASELINE * min(held[0].size, segment.size)
        ):
            yield held
            held = []
        held.append(segment)
    if held:
        yield held


def is_long(text: str) -> bool:
    """Return whether a line is as long as one of prose; Chinese and Japanese letters are wide."""
    return len(text) + sum(1 for _ in UNSPACED.finditer(text)) >= _LEAST_LETTERS


def is_wrapped(above: Segment, below: Segment, right: float) -> bool:
    """Return whether a text goes on in the next line because a line ends at `right`."""
    is_unspaced = UNSPACED.match(below.text) is not None
    # Some signs may not begin or end a line, so that it ends up to two letters early.
    word = below.text[:3] if is_unspaced else below.text.split(maxsplit=1)[0]
    width = (below.right - below.left) * len(word) / len(below.text)
    is_forced = above.right + _SPACE * above.size + width > right - _PADDING
    return is_forced or SMALL_START.match(below.text) is not None


def continues_label(above: Segment, below: Segment, right: float) -> bool:
    """Return whether a label that ends at `right` goes on in the next line.

    Below the head of a group its rows are indented; below the last row of a group the next head is
    not. The lines of a centred label have different edges, too: a small letter tells them apart.
    """
    is_aligned = abs(above.left - below.left) <= _ALIGNED * below.size
    is_small = SMALL_START.match(below.text) is not None
    return (is_aligned or is_small) and is_wrapped(above, below, right)


def cuts_number(above: str, below: str) -> bool:
    """Return whether a number with a hyphen, such as `2006-08`, goes on in the next line."""
    return bool(_CUT_NUMBER.search(above) and _REST_OF_NUMBER.match(below))


def join_lines(lines: Iterable[str]) -> str:
    """Return lines as one; a hyphen at the end of a line that may split a word becomes a soft one.

    A hyphen before a capital or a digit is kept. The same hyphen as another one of its compound is
    followed by a soft one, see `settle_hyphens`: programs split words by signs of their own.
    Scripts without spaces have no hyphens at the end of a line.
    """
    text = ""
    for part in lines:
        # A page shows it as a hyphen; fonts give both the same meaning.
        part = part[:-1].replace("\u00ad", "-") + part[-1:]
        if text.endswith(_STRUCK) and part.startswith(_STRUCK):
            # One text that is struck out goes on in the next line.
            text, part = text.removesuffix(_STRUCK), part.removeprefix(_STRUCK)
        is_unspaced = text and UNSPACED.match(text[-1]) and UNSPACED.match(part[:1])
        if not text or is_unspaced or cuts_number(text, part):
            text += part
        elif not _HYPHENATED.search(text):
            text = f"{text} {part}"
        elif SMALL_START.match(part):
            is_compound = text[-1] in text.rsplit(maxsplit=1)[-1][:-1]
            text = f"{text if is_compound else text[:-1]}\u00ad{part}"
        else:
            text += part
    return text.rstrip("\u00ad")


def join_cell(lines: Sequence[Line], right: float) -> str:
    """Return the lines of a cell as one text, with a break between numbers below each other.

    `right` is where lines of the cell end.
    """
    texts = [line.text for line in lines[:1]]
    for above, line in pairwise(lines):
        one, other = above.segments[-1], line.segments[0]
        is_number = one.text[-1:].isdigit() and other.text[:1].isdigit()
        are_values = is_value(one.text) and is_value(other.text)
        is_apart = is_number and (are_values or not is_wrapped(one, other, right))
        texts.append(f"\n{line.text}" if is_apart else line.text)
    return join_lines(texts)


def settle_hyphens(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield blocks without soft hyphens: the other words of the document tell compounds apart.

    A cut word is whole again. A compound keeps its hyphen: it has several, it occurs with one, or
    its parts, and not the whole, are words.
    """
    words: set[str] = set()
    for block in blocks:
        words.update(_WORD.findall(block.text))
    lower = {word.lower() for word in words}

    def settle(match: re.Match[str]) -> str:
        first, hyphen, second = match.groups()
        compounds = [f"{first}{sign}{second}" for sign in "-\u2010\u2011"]
        if f"{first}{second}".lower() in lower:
            return first + second
        found = next((one for one in compounds if one.lower() in lower), "")
        are_words = len(first) >= _LEAST_PART and first.lower() in lower and second in words
        kept = f"{first}{hyphen}{second}" if hyphen else compounds[0] if are_words else ""
        return found or kept or first + second

    for block in blocks:
        text = _CUT_WORD.sub(settle, block.text).replace("\u00ad", "")
        yield block if text == block.text else replace(block, text=text)


def merge_intervals(intervals: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return intervals from left to right; those that overlap by more than a point are one."""
    merged: list[tuple[float, float]] = []
    for left, right in sorted(intervals):
        if merged and left < merged[-1][1] - 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], right))
        else:
            merged.append((left, right))
    return merged


def continue_table(before: TextTable, table: TextTable) -> TextTable:
    """Return a table with the header of the one that it certainly continues, otherwise unchanged.

    A merged cell whose text is on the page before belongs to its rows on this page too.
    """
    if len(before.columns) != len(table.columns) or table.page != before.page + 1:
        return table
    is_near = all(
        min(column[1], other[1]) - max(column[0], other[0]) > -10
        for column, other in zip(before.columns, table.columns, strict=True)
    )
    if not table.rows or not is_near or before.unclear or table.unclear:
        return table
    header = _take_header(before)
    own = table.rows
    repeated = len(header) if _list_texts(own[: len(header)]) == _list_texts(header) else 0
    if not repeated and not _is_continuation(before, table, len(header)):
        return table
    rows = [*header, *_fill_first(before, own[repeated:])]
    return replace(table, rows=rows)


def put_columns_in_order(table: TextTable) -> TextTable:
    """Return a table whose right column is the first one if most letters are right-to-left.

    Ranges that are cells of their own begin at the right as well (Unicode, annex 9), unless most
    of them would fall then: these were written from the left.
    """
    text = "".join(cell.text for row in table.rows for cell in row)
    if table.unclear or not begins_right(text):
        return table
    ends = [
        [[int(number) for number in _NUMBER.findall(end)] for end in found.group(1, 3)]
        for row in table.rows for cell in row if (found := _RANGE.match(cell.text))
    ]  # fmt: skip
    falling = sum((left > right) - (left < right) for left, right in ends)
    order = r"\3\2\1" if falling >= 0 else r"\g<0>"
    rows = [
        [replace(cell, text=_RANGE.sub(order, cell.text)) for cell in row[::-1]]
        for row in table.rows
    ]
    return replace(table, rows=rows)


def write_text_table(table: TextTable) -> Iterator[Block]:
    """Yield a table as blocks whose place is its page; one of unclear columns as its lines."""
    place = f"page={table.page}"
    if table.unclear:
        yield Block(BlockKind.TEXT, "\n".join(table.unclear), anchor=place)
    else:
        yield from write_table(table.rows, place, has_header=table.has_header)


def hold_values_beside(lines: Iterable[Sequence[Segment]]) -> bool:
    """Return whether several lines of a column have values beside each other."""
    beside = sum(
        len(line) > 1 and all(is_value(segment.text) for segment in line) for line in lines
    )
    return beside >= _LEAST_BESIDE


def strike_row(cells: Sequence[Sequence[Line]]) -> list[list[Line]]:
    """Return the cells of a row; if their first lines are struck out, so are the others.

    A row is struck out by one line. If all of its cells have other lines, these replace the text.
    """
    filled = [cell for cell in cells if cell]
    is_struck = len(filled) > 1 and all(_is_struck(cell[0]) for cell in filled)
    if not is_struck or all(len(cell) > 1 for cell in filled):
        return [list(cell) for cell in cells]
    return [[line if _is_struck(line) else _strike(line) for line in cell] for cell in cells]


def lacks_group(heads: Sequence[Sequence[Sequence[Segment]]]) -> bool:
    """Return whether columns with equal headers are below the head of a group, which is above only
    one of its columns.

    `heads` are the lines of a header, each with the texts in every column.
    """
    lines = [cells for cells in heads if any(cells[1:])]
    names = Counter(
        join_lines(one.text for cell in cells for one in cell)
        for cells in list(zip(*lines, strict=True))[1:]
        if cells[-1] and not all(cells[:-1])
    )
    return names.total() > len(names)


def _count_drawn(lines: Sequence[Sequence[Segment]]) -> int:
    """Return the number of lines from the first one on that are drawn before the end of it."""
    last = max(one.number for one in lines[0])
    for count, (above, line) in enumerate(pairwise(lines), start=1):
        is_near = 0 < above[0].base - line[0].base < _PITCH * line[0].size
        if not is_near or min(one.number for one in line) > last or _has_own_lines(line):
            return count
    return len(lines)


def _has_own_lines(line: Sequence[Segment]) -> bool:
    return any(isinstance(one, DrawnTable) or one.is_code for one in line)


def _is_row_below(lines: Sequence[Sequence[Segment]], below: Sequence[Sequence[Segment]]) -> bool:
    """Return whether a row is drawn after lines and below them."""
    last = max(one.number for line in lines for one in line)
    return any(len(row) > 1 and min(one.number for one in row) > last for row in below)


def _find_cells(lines: Sequence[Sequence[Segment]], *, is_in_grid: bool) -> list[Segment]:
    """Return the cells of a row with lines below each other, or nothing if they may be several
    rows.

    Texts go on in the next line, or rows are drawn before or after those lines (`is_in_grid`).
    A table that is drawn column by column has values, or shorter texts, below each other.
    """
    every = [one for line in lines for one in line]
    columns = merge_intervals((one.left, one.right) for one in every)
    if len(lines) < 2 or len(columns) != len(lines[0]) or _has_own_lines(lines[0]):
        return []
    cells = [
        [one for one in every if left <= one.left and one.right <= right] for left, right in columns
    ]
    if not all(
        (is_in_grid or is_wrapped(one, other, right))
        and not (is_value(one.text) and is_value(other.text))
        for own, (_, right) in zip(cells, columns, strict=True)
        for one, other in pairwise(own)
    ):
        return []
    return [
        replace(own[0], text=join_lines([one.text for one in own]), right=right, parts=[])
        for own, (_, right) in zip(cells, columns, strict=True)
    ]


def _is_struck(line: Line) -> bool:
    ends = line.segments[0].text, line.segments[-1].text
    return ends[0].startswith(_STRUCK) and ends[1].endswith(_STRUCK)


def _strike(line: Line) -> Line:
    bare = [replace(one, text=one.text.replace(_STRUCK, "")) for one in line.segments]
    return replace(line, segments=[replace(one, text=strike(one.text)) for one in bare])


def _put_in_order(segments: Sequence[Segment]) -> list[Segment]:
    """Return the segments of a line from its beginning, which is right in some scripts."""
    text = "".join(segment.text for segment in segments)
    return sorted(segments, key=lambda one: one.left, reverse=begins_right(text))


def _join_label(segments: list[Segment]) -> list[Segment]:
    """Join a number or bullet with the text that it precedes."""
    if len(segments) != 2 or _LABEL.match(segments[0].text) is None:
        return segments
    label, text = segments
    if is_value(label.text) and is_value(text.text):
        return segments
    if text.is_code:
        # The number of a line of code, which keeps its indentation.
        return [replace(label, is_code=True), text]
    if text.left - label.right > 5 * text.size:
        return segments
    return [replace(text, text=f"{label.text} {text.text}", left=label.left, parts=[])]


def _is_continuation(before: TextTable, table: TextTable, header: int) -> bool:
    """Return whether the rows of a table belong below the header of the previous one.

    Forms repeat their labels on each page, and a table with its own header needs no other. Rows
    belong together if they begin inside a merged cell, if a column has only values below its
    header, or if the previous page had no room for more rows.
    """
    above, below = expand_cells(before.rows), expand_cells(table.rows)
    first = table.rows[0][0]
    if first.rows > 1 and not first.text:
        return True
    labels = {row[0] for row in above if row[0]}
    has_header = any(row in below for row in above[:header])
    if has_header or 2 * sum(row[0] in labels for row in below) > len(below):
        return False
    columns = zip(zip(*above, strict=True), zip(*below, strict=True), strict=False)
    has_values = any(
        not is_value(one[0]) and all(map(is_value, (*one[header:], *other)))
        for one, other in columns
        if len(one) > header
    )
    return has_values or before.fills_page


def _take_header(table: TextTable) -> list[list[Cell]]:
    if not table.has_header:
        return []
    first = 0
    while first + 1 < len(table.rows) and len(table.rows[first]) == 1 and len(table.columns) > 1:
        first += 1
    count = count_header_rows(table.rows[first:])
    header = table.rows[first : first + count]
    return [
        [replace(cell, rows=min(cell.rows, count - at)) for cell in row]
        for at, row in enumerate(header)
    ]


def _fill_first(before: TextTable, rows: list[list[Cell]]) -> list[list[Cell]]:
    """Return rows whose first cell, when it is empty, has the text of the cell that it goes on."""
    if not rows or not rows[0] or rows[0][0].text or len(rows[0]) < 2:
        return rows
    has_own = sum(cell.columns for cell in before.rows[-1]) >= len(before.columns)
    if rows[0][0].rows == 1 and has_own:
        return rows
    above = expand_cells(before.rows)[-1][0]
    return [[replace(rows[0][0], text=above), *rows[0][1:]], *rows[1:]]


def _list_texts(rows: list[list[Cell]]) -> list[list[str]]:
    return [[cell.text for cell in row] for row in rows]
