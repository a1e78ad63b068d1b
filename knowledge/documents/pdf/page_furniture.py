"""Removes what the layout of a document repeats: running heads, page numbers, contents pages and
line numbers.

A line is removed only if it counts pages or if its text also stands elsewhere in the document.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from statistics import median

from knowledge.documents.page import LeftOutCounts
from knowledge.documents.pdf.line_numbers import remove_line_numbers
from knowledge.documents.pdf.page_layout import EDGE, LaidOutPage
from knowledge.documents.pdf.text_lines import Line

_LEADERS = re.compile(r"(?:[.\u00b7\u2022\u22c5][ \u00a0]?){4,}|\u2026{2,}|_{8,}")
_DASHES = re.compile("[-\u2013]{8,}")
_LONGEST_VALUE = 30
_ENTRY = re.compile(r"(\S.{0,200}?) (?:(\d{1,4})|[ivxlc]{1,6})\Z")
_DIGITS = re.compile(r"\d{1,18}")
_PAGE_NUMBER = re.compile(
    r"(page|seite|p\.|página|pagina|strana)?[ \u00a0]{0,3}"
    r"[-–]?[ ]?(?:(\d{1,5})|[ivxl]{1,6})[ ]?[-–]?"
    r"(?:[ ]?(?:/|of|von|de|sur|di)[ ]?\d{1,5})?\Z",
    re.IGNORECASE,
)  # fmt: skip
_TITLE_AND_PAGE = re.compile(
    r"(?:(\d{1,4})[ \u00a0]{1,3})?(\S.{0,200}?)(?:[ \u00a0]{1,3}(\d{1,4}))?\Z"
)
_HEAD = "header or footer line"
_PAGE = "page number"
_CONTENTS = "contents line"
_REASONS = {
    _HEAD: "repeated at the edges of pages",
    _PAGE: "part of the layout of pages",
    _CONTENTS: "titles of the document in a table of contents",
}
_LEAST_CONTENTS = 3
_ENTRY_LINES = 2
"""Maximum number of lines of an entry of a table of contents."""
_UNCOUNTED = 20
"""Maximum number of pages before the first one that counts."""
_LARGER = 1.1
_LEAST_PAGES = 3
_LEAST_COLUMNS = 3
_FURTHEST_ROW = 2.5
"""Minimum number of columns below a header, and its maximum distance from them, in font sizes."""


def remove_furniture(pages: Sequence[LaidOutPage]) -> LeftOutCounts:
    """Remove running heads, page and line numbers, and tables of contents; return what was removed.

    A running head or foot is kept once, above the text of the first page: it may state what applies
    to the whole document, and would cut sentences that continue on the next page.
    """
    left_out = LeftOutCounts()
    for page in pages:
        page.lines = remove_line_numbers(page.lines, left_out)
    usual = median([line.size for page in pages for line in page.lines] or [0.0])
    titles = set(_find_running_titles(pages))
    kinds = {
        **dict.fromkeys(_find_heads(pages, usual), _HEAD),
        **dict.fromkeys(_find_page_numbers(pages), _PAGE),
        **dict.fromkeys(titles, _HEAD),
        **dict.fromkeys(_find_contents(pages), _CONTENTS),
    }
    shown: set[str] = set()
    running: list[Line] = []
    for page in pages:
        if page.text.is_tilted:
            _make_plain(page.lines, usual)
        kept = []
        for line in page.lines:
            what = kinds.get(id(line))
            is_first = what == _HEAD and id(line) not in titles and _bare(line.text) not in shown
            if is_first:
                running.append(_make_running(line, usual))
            elif what is None:
                kept.append(line)
            else:
                left_out.add(what, _REASONS[what], name=line.text)
            shown.add(_bare(line.text))
        page.lines = kept
    if running:
        pages[0].lines[:0] = running
    return left_out


def ends_with_leaders(text: str) -> bool:
    """Return whether a line ends with a row of dots, and a value or one word behind it."""
    *_, last = _DASHES.split(_LEADERS.split(text)[-1])
    is_value = len(last.split()) == 1 or any(map(str.isdecimal, last))
    return last != text and len(last) <= _LONGEST_VALUE and is_value


def remove_leaders(text: str) -> str:
    """Return a text without rows of dots or underscores."""
    return " ".join(_LEADERS.sub(" … ", text).split())


def _make_plain(lines: Iterable[Line], size: float) -> None:
    """Let no line be a heading, whatever its typeface."""
    for segment in chain.from_iterable(line.segments for line in lines):
        segment.size, segment.is_bold = min(segment.size, size), False


def _make_running(line: Line, size: float) -> Line:
    """Return a line that is no heading, and no row of a table near it."""
    first, last = line.segments[0], line.segments[-1]
    whole = replace(first, text=line.text, right=last.right, parts=[], words=[])
    running = replace(line, segments=[whole], is_running=True)
    _make_plain([running], size)
    return running


def _find_heads(pages: Sequence[LaidOutPage], usual: float) -> Iterator[int]:
    """Yield the `id` of the lines that occur only at the edge of several pages and are not rows of
    tables.

    Their numbers are the same on all pages, or count the pages; other lines are content, such as
    "Room 104" below a heading "Room 103", or a line larger than the text, whose number counts
    headings. Lines with nothing between them are content, too.
    """
    places: dict[str, list[Line]] = {}
    inner: set[str] = set()
    for page in pages:
        heads = {
            id(line) for at, line in enumerate(page.lines)
            if any(_heads_columns(line, below) for below in page.lines[at + 1 : at + 3])
        }  # fmt: skip
        edges = {id(line) for line in _edge_lines(page)} - heads
        for line in page.lines:
            if id(line) in edges:
                places.setdefault(_bare(line.text), []).append(line)
            else:
                inner.add(_bare(line.text))
    least = max(_LEAST_PAGES, len(pages) * 2 // 5) if len(pages) > 2 else 2
    for key, lines in places.items() if inner else ():
        if len(lines) >= least and key not in inner and _is_running(lines):
            is_same = len({line.text for line in lines}) == 1
            yield from (id(line) for line in lines if is_same or line.size < _LARGER * usual)


def _heads_columns(line: Line, below: Line) -> bool:
    """Return whether a line has texts above each text of one of the next lines, as the header of a
    table; some cells of its first row may be empty.
    """
    heads = [
        {
            at
            for at, head in enumerate(line.segments)
            if head.left < one.right and one.left < head.right
        }
        for one in below.segments
    ]
    return (
        len(line.segments) >= _LEAST_COLUMNS
        and 2 * len(heads) > len(line.segments)
        and 0 < line.base - below.base < _FURTHEST_ROW * line.size
        and all(len(own) == 1 for own in heads)
        and len(set().union(*heads)) == len(heads)
    )


def _is_running(lines: Sequence[Line]) -> bool:
    """Return whether each number of a line is either the same on all pages or counts the pages.

    A document may begin with pages that are not numbered.
    """
    numbers = [[int(number) for number in _DIGITS.findall(line.text)] for line in lines]
    return all(
        len(set(column)) == 1
        or _count_pages(number - line.page for number, line in zip(column, lines, strict=True))
        for column in zip(*numbers, strict=False)
    )


def _count_pages(differences: Iterable[int]) -> bool:
    """Return whether numbers count pages by their differences from the numbers of the pages."""
    counted = Counter(differences)
    return min(counted.values()) > 1 and all(abs(one) <= _UNCOUNTED for one in counted)


def _find_page_numbers(pages: Sequence[LaidOutPage]) -> Iterator[int]:
    """Yield the `id` of lines at the edge or end of a page that contain only its number.

    A number without a word is that of its page, or differs equally from that of another page.
    """
    found = [
        (line, match, int(match[2] or page.number) - page.number)
        for page in pages
        for line in (*_edge_lines(page), *page.lines[:1], *page.lines[-1:])
        if (match := _PAGE_NUMBER.match(line.text)) is not None
    ]
    places = {(offset, line.page) for line, _, offset in found}
    counted = Counter(offset for offset, _ in places)
    for line, match, offset in found:
        if match[1] or not offset or counted[offset] > 1:
            yield id(line)


def _find_running_titles(pages: Sequence[LaidOutPage]) -> Iterator[int]:
    """Yield the `id` of lines at edges that contain a title of the document and the page number.

    The title also appears elsewhere, so nothing is lost; the numbers of at least three such lines
    count pages.
    """
    known = {_name(line.text) for page in pages for line in page.lines} - {""}
    by_offset: dict[int, list[int]] = {}
    for page in pages:
        for line in _edge_lines(page):
            match = _TITLE_AND_PAGE.match(line.text)
            number = (match[3] or match[1]) if match is not None else None
            if match is not None and number is not None and _name(match[2]) in known:
                by_offset.setdefault(int(number) - page.number, []).append(id(line))
    return chain.from_iterable(lines for lines in by_offset.values() if len(lines) >= _LEAST_PAGES)


def _find_contents(pages: Sequence[LaidOutPage]) -> set[int]:
    """Return the `id` of lines that are entries of tables of contents.

    The titles of at least three of them are lines of other pages, and their numbers differ equally
    from the numbers of these pages. The entries next to them belong to the same table of contents.
    A list of other numbers, such as prices behind rows of dots, is content.
    """
    places: dict[str, set[int]] = {}
    for page in pages:
        for line in page.lines:
            places.setdefault(_name(line.text), set()).add(page.number)
    found: set[int] = set()
    for page in pages:
        offsets = {
            at: {
                int(entry[1]) - place
                for place in places.get(_name(entry[0]), set()) - {page.number}
                if entry[1]
            }
            for at, line in enumerate(page.lines)
            if line.table is None and (entry := _find_entry(line)) is not None
        }
        common = Counter(chain.from_iterable(offsets.values())).most_common(1)
        if not common or common[0][1] < _LEAST_CONTENTS:
            continue
        for group in _group_near(sorted(offsets)):
            if any(common[0][0] in offsets[at] for at in group):
                found.update(map(id, page.lines[group[0] : group[-1] + 1]))
    return found


def _find_entry(line: Line) -> tuple[str, str] | None:
    """Return the title of a line and the digits of the number behind it, if it is an entry."""
    match = _ENTRY.match(" ".join(_LEADERS.sub(" ", line.text).split()))
    return (match[1], match[2] or "") if match is not None and _name(match[1]) else None


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


def _edge_lines(page: LaidOutPage) -> list[Line]:
    height = page.text.height
    return [
        line
        for line in page.lines
        if page.text.is_tilted or line.lowest > height * (1 - EDGE) or line.base < height * EDGE
    ]


def _name(title: str) -> str:
    """Return the letters and digits of a title; none if it has no letters."""
    name = "".join(filter(str.isalnum, title.lower()))
    return "" if name.isdecimal() else name


def _bare(text: str) -> str:
    return _DIGITS.sub("#", " ".join(text.lower().split()))
