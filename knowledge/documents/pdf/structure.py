"""Makes headings, paragraphs, items, code and tables of the lines of a PDF."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from knowledge.documents.page import Block, BlockKind, LeftOutCounts, make_code
from knowledge.documents.pdf.page_furniture import ends_with_leaders, remove_leaders
from knowledge.documents.pdf.page_layout import LaidOutPage
from knowledge.documents.pdf.tags import Tag
from knowledge.documents.pdf.text_lines import (
    SMALL_START,
    Line,
    TextTable,
    continue_table,
    cuts_number,
    is_wrapped,
    join_lines,
    put_columns_in_order,
    write_text_table,
)
from knowledge.documents.pdf.text_tables import find_tables

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
_DOUBLE = 1.8
"""Minimum distance of double-spaced lines, in sizes."""
_FURTHEST_CODE = 4.5
"""Lines of code are one block up to here, in sizes: two of them may be empty."""
_LOWER_MARGIN = 0.2
"""Share of the height of a page in which a table ends that fills it."""
_UNCLEAR = "unclear columns: the lines are shown unchanged"


_Style = tuple[float, int, bool]


@dataclass(slots=True)
class _Lines:
    """The lines of a heading, or of a paragraph, which has neither a style nor a stated level.

    `style` sorts headings by size, depth of their number and weight; headings of one style have one
    level. `stated`: level in the file.
    """

    lines: list[Line]
    style: _Style | None = None
    stated: int | None = None


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
    levels = _rank(part for part in parts if isinstance(part, _Lines))
    for part in parts:
        if isinstance(part, TextTable):
            number, texts = part.page, [" ".join(cell.text for cell in row) for row in part.rows]
        else:
            number, texts = part.lines[0].page, [line.text for line in part.lines]
        blocks = [Block(BlockKind.TEXT, "\n".join(texts), anchor=f"page={number}")]
        with left_out.contain("text layout", f"page {number}"):
            blocks = list(_write_part(part, levels, left_out))
        yield from blocks


def bare(text: str) -> str:
    """Return the letters of a text in lower case, by which an outline names its headings."""
    return "".join(character for character in text.lower() if character.isalpha())


def _write_part(
    part: _Lines | TextTable, levels: Mapping[_Style, int], left_out: LeftOutCounts
) -> Iterator[Block]:
    if isinstance(part, TextTable):
        if part.unclear:
            left_out.add("table structure", _UNCLEAR, name=f"page {part.page}")
        yield from write_text_table(part)
    elif part.style is None:
        yield _write_paragraph(part.lines)
    else:
        text = remove_leaders(join_lines(line.text for line in part.lines))
        level = levels[part.style] if part.stated is None else part.stated
        yield Block(BlockKind.HEADING, text, level, f"page={part.lines[0].page}")


def _measure(pages: Sequence[LaidOutPage]) -> _Measures:
    letters: Counter[float] = Counter()
    for page in pages:
        for line in page.lines:
            letters[line.size] += 0 if line.has_values else len(line.text)
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
    pages: Sequence[LaidOutPage], measures: _Measures, outline: Outline, left_out: LeftOutCounts
) -> Iterator[_Lines | TextTable]:
    for page in pages:
        tables: Sequence[Line | TextTable] = page.lines
        with left_out.contain("page layout", f"page {page.number}"):
            tables = list(find_tables(page, left_out))
        titles = outline.get(page.number, {})
        last: _Lines | None = None
        for above, part, below in zip((None, *tables), tables, (*tables[1:], None), strict=False):
            if isinstance(part, TextTable):
                part.page = page.number
                part.fills_page = part.lowest < _LOWER_MARGIN * page.text.height
                last = None
                yield part
                continue
            if part.tag is not None and measures.has_tagged_headings:
                heading = _read_heading(part, part.tag)
            else:
                heading = _find_heading(part, above, below, measures, titles)
            if heading is not None and last is not None and _hangs(last, part):
                heading = None
            if last is not None and _goes_on_in(last, part, heading, measures):
                last.lines.append(part)
            else:
                last = heading or _Lines([part])
                yield last


def _read_heading(line: Line, tag: Tag) -> _Lines | None:
    style = (-line.size, 0, not line.is_bold)
    return _Lines([line], style, tag.level) if tag.level else None


def _find_heading(
    line: Line,
    above: Line | TextTable | None,
    following: Line | TextTable | None,
    measures: _Measures,
    titles: Mapping[str, int],
) -> _Lines | None:
    text = line.text
    letters = bare(text)
    numbered = _NUMBERED.match(text)
    depth = numbered[1].count(".") + 1 if numbered else 0
    style = (-line.size, depth, not line.is_bold)
    if letters and letters in titles:
        return _Lines([line], style, titles[letters])
    is_larger = line.size >= measures.size * _LARGER
    # A title may be beside its number.
    parts = 2 if is_larger and _NAMED.match(text) else 1
    is_short = len(text) <= _LONGEST_HEADING and len(line.segments) <= parts
    is_value = sum(map(str.isdecimal, text)) > len(letters)
    if not letters or not is_short or line.is_code or is_value:
        return None
    if _BULLET.match(text) or text.endswith(_ENDS_OF_SENTENCES):
        return None
    if is_larger:
        return _Lines([line], style)
    if line.size < measures.size or not _stands_apart(line, above, measures):
        return None
    if line.is_bold and not text.endswith(":"):
        return _Lines([line], style)
    is_named = numbered is not None or _NAMED.match(text) is not None
    is_title = is_named and len(text) < 70 and not text.endswith("?")
    return _Lines([line], style) if is_title and _is_followed_by_prose(line, following) else None


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


def _goes_on_in(last: _Lines, line: Line, heading: _Lines | None, measures: _Measures) -> bool:
    """Return whether a part goes on in a line, which may be a heading by itself."""
    above = last.lines[-1]
    if last.style is None:
        return heading is None and not _begins(above, line, measures)
    if heading is not None and line.tag is not None and line.tag.level:
        return above.tag is line.tag
    if above.column != line.column:
        return False
    if heading is None and not (line.is_bold and _wraps(last.lines, line)):
        return cuts_number(above.text, line.text)
    return (
        above.size == line.size
        and above.is_bold == line.is_bold
        and 0 < above.base - line.base < _FURTHER * max(measures.pitch, 1.1) * line.size
        and last.stated is None
        and (heading is None or heading.stated is None)
        and not _NUMBERED.match(line.text)
        and _NAMED.match(line.text) is None
    )


def _hangs(last: _Lines, line: Line) -> bool:
    """Return whether an item goes on in a line below its text, as large as it is."""
    first, above = last.lines[0], last.lines[-1]
    is_indented = line.segments[0].left > first.segments[0].left + first.size / 2
    is_below = 0 < above.base - line.base < _DOUBLE * line.size and above.size == line.size
    is_item = last.style is None and _BULLET.match(first.text) is not None
    return is_item and is_indented and is_below and line.is_bold == above.is_bold


def _wraps(lines: Sequence[Line], line: Line) -> bool:
    """Return whether a title with a number goes on in a line."""
    first = lines[0].text
    is_short = sum(len(one.text) for one in (*lines, line)) <= _LONGEST_HEADING
    is_text = line.text.endswith((*_ENDS_OF_SENTENCES, ":")) or _LABEL.match(line.text)
    is_title = _NUMBERED.match(first) or _NAMED.match(first)
    return bool(is_title and is_short and not is_text and not _BULLET.match(line.text))


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


def _join_tables(parts: Iterator[_Lines | TextTable]) -> Iterator[_Lines | TextTable]:
    before: TextTable | None = None
    for part in parts:
        if isinstance(part, TextTable):
            part = put_columns_in_order(part)
            part = part if before is None else continue_table(before, part)
            before = part
        elif not all(line.is_running for line in part.lines):
            before = None
        yield part


def _rank(parts: Iterator[_Lines]) -> dict[_Style, int]:
    styles = {part.style for part in parts if part.style is not None and part.stated is None}
    return {style: min(level, 6) for level, style in enumerate(sorted(styles), start=1)}


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
    double-spaced or centred line that ends early ends a text. A line with values in columns is a
    text of its own, and a value behind a row of dots ends an entry of a list.
    """
    right = max(line.segments[-1].right for line in lines)
    ends = {0, len(lines)}
    breaks = []
    for at, (above, line) in enumerate(pairwise(lines), start=1):
        end, begin = above.segments[-1], line.segments[0]
        goes_on = end.text.endswith("-") or is_wrapped(end, begin, right)
        is_apart = above.base - line.base > _DOUBLE * line.size or _is_centred(above, line)
        is_item = is_apart and not goes_on
        if is_item or above.has_values or line.has_values or ends_with_leaders(above.text):
            ends.add(at)
        breaks += [goes_on] if end.right < right else []
    if breaks and not any(breaks):
        ends.update(at for at, line in enumerate(lines) if not SMALL_START.match(line.text))
    yield from (lines[start:end] for start, end in pairwise(sorted(ends)))


def _is_centred(above: Line, line: Line) -> bool:
    """Return whether two lines of different widths have the same middle."""
    (left, right), (own_left, own_right) = (
        (one.segments[0].left, one.segments[-1].right) for one in (above, line)
    )
    return abs(left - own_left) > line.size and abs(left + right - own_left - own_right) < 4


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
