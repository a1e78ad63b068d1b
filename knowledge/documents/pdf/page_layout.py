"""Puts the segments of a page into lines, in the order in which a person reads them."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from knowledge.documents.pdf.page_text import PageText, Segment

_LABEL = re.compile(
    r"(?:\(?(?:\d{1,3}(?:\.\d{1,3}){0,4}|[a-zA-Z]|[ivx]{1,5})[.)]?|[•▪◦‣●○■\-–—*\uf0b7])\Z"
)
_LEADERS = re.compile(r"(?:\.[ \u00a0]?){4,}|\u2026{2,}|_{8,}")
_CONTENTS_LINE = re.compile(
    r"[^\n]{1,200}?(?:(?:\.[ \u00a0]?){4,}|\u2026{2,})[ \u00a0]{0,9}[\divxlc]{1,6}\Z"
)
_DIGITS = re.compile(r"\d+")
_PAGE_NUMBER = re.compile(
    r"(?:(?:page|seite|p\.|página|pagina|strana)[ \u00a0]{0,3})?"
    r"[-–]?[ ]?(?:\d{1,5}|[ivxl]{1,6})[ ]?[-–]?"
    r"(?:[ ]?(?:/|of|von|de|sur|di)[ ]?\d{1,5})?\Z",
    re.IGNORECASE,
)  # fmt: skip
_EDGE = 0.12
_OUTER_EDGE = 0.07
_BASELINE = 0.5
_LEAST_SIDE = 5
_LEAST_LETTERS = 22
_LEAST_LONG = 1
_LEAST_PAGES = 3


@dataclass(slots=True)
class Line:
    """Segments on one baseline of a column, from left to right."""

    segments: list[Segment]
    column: tuple[float, float] = (0.0, 0.0)
    page: int = 0

    @property
    def text(self) -> str:
        """The line as text; wide gaps are one space."""
        return " ".join(segment.text for segment in self.segments)

    @property
    def base(self) -> float:
        """The place of the line above the lower edge of the page."""
        return self.segments[0].base

    @property
    def size(self) -> float:
        """The size in which most of the line is set."""
        return max(self.segments, key=lambda segment: len(segment.text)).size

    @property
    def is_bold(self) -> bool:
        """Whether the whole line is bold."""
        return all(segment.is_bold for segment in self.segments)

    @property
    def is_code(self) -> bool:
        """Whether the whole line is set in a typeface of code."""
        return all(segment.is_code for segment in self.segments)


@dataclass(slots=True)
class LaidOutPage:
    """The lines of a page in reading order, with what tables need to know."""

    number: int
    text: PageText
    lines: list[Line] = field(default_factory=list)


def lay_out(number: int, text: PageText) -> LaidOutPage:
    """Return a page whose lines are in reading order, column by column."""
    segments = [segment for segment in text.segments if segment.text.strip()]
    lines: list[Line] = []
    for group in _split_columns(segments, text, depth=2):
        column = (min(one.left for one in group), max(one.right for one in group))
        for line in _find_lines(group):
            line.column, line.page = column, number
            lines.append(line)
    return LaidOutPage(number, text, lines)


def remove_furniture(pages: Sequence[LaidOutPage]) -> None:
    """Remove running heads, page numbers and lines of a table of contents."""
    repeated = _find_repeated(pages)
    usual = median([line.size for page in pages for line in page.lines] or [0.0])
    for page in pages:
        edges = _edge_lines(page)
        ends = page.lines[:1] + page.lines[-1:]
        contents = [line for line in page.lines if _CONTENTS_LINE.match(line.text)]
        dropped = {id(line) for line in edges if _bare(line.text) in repeated}
        dropped |= {
            id(line) for line in (*edges, *ends) if _PAGE_NUMBER.match(line.text) is not None
        }
        dropped |= {id(line) for line in edges if _is_margin_note(line, page, usual)}
        if len(contents) >= 3:
            dropped |= {id(line) for line in contents}
        page.lines = [line for line in page.lines if id(line) not in dropped]


def _is_margin_note(line: Line, page: LaidOutPage, usual: float) -> bool:
    """Return whether a line is small and at the outer edge: the head of a single page."""
    height = page.text.height
    is_outer = line.base > height * (1 - _OUTER_EDGE) or line.base < height * _OUTER_EDGE
    return is_outer and line.size <= 0.85 * usual


def remove_leaders(text: str) -> str:
    """Return a text without rows of dots or underscores."""
    return " ".join(_LEADERS.sub(" … ", text).split())


def _find_repeated(pages: Sequence[LaidOutPage]) -> frozenset[str]:
    """Return the lines at the edge of several pages and nowhere else: no rows of tables."""
    counts: Counter[str] = Counter()
    inner: set[str] = set()
    for page in pages:
        edges = {id(line) for line in _edge_lines(page)}
        counts.update({_bare(line.text) for line in page.lines if id(line) in edges})
        inner.update(_bare(line.text) for line in page.lines if id(line) not in edges)
    least = max(_LEAST_PAGES, len(pages) * 2 // 5) if len(pages) > 2 else 2
    return frozenset(key for key, count in counts.items() if count >= least and key not in inner)


def _edge_lines(page: LaidOutPage) -> list[Line]:
    height = page.text.height
    return [
        line
        for line in page.lines
        if line.base > height * (1 - _EDGE) or line.base < height * _EDGE
    ]


def _bare(text: str) -> str:
    return _DIGITS.sub("#", " ".join(text.lower().split()))


def _split_columns(segments: list[Segment], page: PageText, depth: int) -> Iterator[list[Segment]]:
    """Yield groups of segments in reading order; what crosses a gutter stands between columns."""
    gutter = _find_gutter(segments, page) if depth else None
    if gutter is None:
        if segments:
            yield segments
        return
    band: list[Segment] = []
    for segment in sorted(segments, key=lambda one: -one.base):
        if segment.left < gutter < segment.right:
            yield from _split_band(band, gutter, page, depth)
            band = []
            yield [segment]
        else:
            band.append(segment)
    yield from _split_band(band, gutter, page, depth)


def _split_band(
    band: list[Segment], gutter: float, page: PageText, depth: int
) -> Iterator[list[Segment]]:
    yield from _split_columns([one for one in band if one.right <= gutter], page, depth - 1)
    yield from _split_columns([one for one in band if one.left >= gutter], page, depth - 1)


def _find_gutter(segments: Sequence[Segment], page: PageText) -> float | None:
    """Return the middle of an empty strip between two columns, or None.

    Both are prose, or one is, and the lines of the other have separate places.
    """
    if len(segments) < 2 * _LEAST_SIDE:
        return None
    first = min(one.left for one in segments)
    last = max(one.right for one in segments)
    if last - first < page.width * 0.4:
        return None
    best: tuple[int, float] | None = None
    step = max((last - first) / 100, 1.0)
    at = first + (last - first) * 0.25
    while at < first + (last - first) * 0.75:
        crossing = sum(one.left < at < one.right for one in segments)
        is_better = crossing * 5 <= len(segments) and (best is None or crossing < best[0])
        if is_better and (_divides(segments, at) or (not crossing and _parts(segments, at, page))):
            best = (crossing, at)
        at += step
    return None if best is None else best[1]


def _divides(segments: Sequence[Segment], at: float) -> bool:
    return _is_prose([one for one in segments if one.right <= at]) and _is_prose(
        [one for one in segments if one.left >= at]
    )


def _parts(segments: Sequence[Segment], at: float, page: PageText) -> bool:
    """Return whether prose is on one side, and on the other something else that is no table's cell.

    Cells of a row share a baseline or the rules between the rows. A column that holds a table
    has lines between those of the other column, and rules that end before it.
    """
    if any(rule.left < at < rule.right for rule in page.rules):
        return False
    left = [one for one in segments if one.right <= at]
    right = [one for one in segments if one.left >= at]
    if _is_prose(left):
        return _is_independent(right, left)
    return _is_prose(right) and _is_independent(left, right)


def _is_independent(side: Sequence[Segment], prose: Sequence[Segment]) -> bool:
    """Return whether a side has long lines, and few lines at the height of a line of the prose."""
    if sum(len(one.text) >= _LEAST_LETTERS for one in side) < _LEAST_LONG:
        return False
    bases = {round(one.base) for one in side}
    beside = sum(any(abs(one.base - base) < 1.5 for one in prose) for base in bases)
    return len(bases) >= 2 * _LEAST_SIDE and beside * 5 <= len(bases) * 2


def _is_prose(side: Sequence[Segment]) -> bool:
    if len(side) < _LEAST_SIDE:
        return False
    lefts = sorted(one.left for one in side)
    is_aligned = lefts[len(lefts) // 2] - lefts[0] < 60
    return is_aligned and median(len(one.text) for one in side) >= _LEAST_LETTERS


def _find_lines(segments: Sequence[Segment]) -> Iterator[Line]:
    held: list[Segment] = []
    for segment in sorted(segments, key=lambda one: -one.base):
        if held and held[0].base - segment.base > _BASELINE * min(held[0].size, segment.size):
            yield Line(_join_label(sorted(held, key=lambda one: one.left)))
            held = []
        held.append(segment)
    if held:
        yield Line(_join_label(sorted(held, key=lambda one: one.left)))


def _join_label(segments: list[Segment]) -> list[Segment]:
    """Join a number or bullet with the text that it stands before."""
    if len(segments) != 2 or _LABEL.match(segments[0].text) is None:
        return segments
    label, text = segments
    if text.left - label.right > 5 * text.size:
        return segments
    return [
        Segment(
            f"{label.text} {text.text}", label.left, text.right, text.base, text.size,
            text.is_bold, text.is_code,
        )
    ]  # fmt: skip
