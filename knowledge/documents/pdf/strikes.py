"""Finds the lines of a PDF page that strike text out, or separate adjacent cells."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from knowledge.documents.notation import strike
from knowledge.documents.pdf.glyphs import HEIGHT, Glyph
from knowledge.documents.pdf.page_objects import Box, Fill, Size
from knowledge.documents.pdf.page_text import Segment, Stroke, turn_page, turn_strokes

_LEAST_GAP_OF_CELLS = 0.5
_MIDDLE = (0.15, 0.45)
"""Vertical range of a strikethrough line, in font sizes above the baseline."""
_ENDS = (0.05, 0.5)
"""How far inside and outside of letters, in font sizes, the line that strikes them out may end."""
_LEAST_STRUCK, _LEAST_STRUCK_ROW = 0.2, 0.08
"""Minimum share of a line that is over letters if it ends far outside of them, unlike in charts;
and of a line through a label and other cells.
"""
_LEAST_LETTERS = 5
_MOST_STRIKES = 100
"""Maximum number of lines through the letters of a text; more are a drawing."""
_IN_NEXT = 0.1
"""How far, in font sizes, this line may reach into the next letter."""


class PageLines:
    """The straight lines of a page in drawing order, as seen by readers of text in a direction."""

    def __init__(self, lines: list[Box], size: Size) -> None:
        self._lines = lines
        self._size = size
        self._sorted: dict[tuple[int, bool], list[Stroke]] = {}

    def part(self, segment: Segment, left: float, turn: int) -> bool:
        """Return whether a line separates a segment from a character that begins at `left`."""
        if left - segment.right < _LEAST_GAP_OF_CELLS:
            return False
        upright = self._list_strokes(turn, is_vertical=True)
        middle = segment.base + segment.size * 0.3
        first = bisect_left(upright, segment.right - 1, key=lambda one: one.at)
        for stroke in upright[first:]:
            if stroke.at > left + 1:
                return False
            if stroke.start <= middle <= stroke.end:
                return True
        return False

    def list_strikes(self, segment: Segment, glyphs: Sequence[Glyph], turn: int) -> list[Stroke]:
        """Return the lines that strike out glyphs of a segment."""
        sizes = [glyph.typeface.size for glyph in glyphs] or [segment.size]
        level = self._list_level(segment, turn, (min(sizes), max(sizes)))
        return [stroke for stroke in level if _strikes_out(stroke, glyphs)]

    def strike_lines(
        self, segments: Sequence[Segment], turn: int, fills: Sequence[Fill]
    ) -> set[Stroke]:
        """Mark segments that are struck out by lines that begin and end far outside of them.

        Such a line is at the middle of all segments that it meets, which are not labels of a chart,
        and no box hides it, such as that of a title. The lines are returned.
        """
        found: set[Stroke] = set()
        heights = {
            round(stroke.at)
            for segment in segments
            for stroke in self._list_level(segment, turn, (segment.size, segment.size))
            if stroke.start <= segment.left and segment.right <= stroke.end
        }
        if not heights:
            return found
        matrix = turn_page(turn, self._size)
        boxes = [(fill.lines, matrix.on_rect(*fill.box)) for fill in fills]
        level = self._list_strokes(turn, is_vertical=False)
        for parts in _join_level([one for one in level if round(one.at) in heights]):
            last = max(part.number for part in parts)
            line = replace(parts[0], end=max(part.end for part in parts))
            met = [one for one in segments if _meets(line, one)]
            is_hidden = any(
                left <= one.left < right and bottom <= line.at <= top
                for lines, (left, bottom, right, top) in boxes
                if last < lines
                for one in met
            )
            if not is_hidden and _strikes_line(line, met):
                found.update(parts)
                for segment in (*met, *chain.from_iterable(one.parts for one in met)):
                    segment.text = strike(segment.text.replace("~~", ""))
        return found

    def _list_level(self, segment: Segment, turn: int, sizes: tuple[float, float]) -> list[Stroke]:
        """Return the horizontal lines at the middle of a segment with letters of these sizes; none
        of a drawing.
        """
        level = self._list_strokes(turn, is_vertical=False)
        pairs = zip(_MIDDLE, sizes, strict=True)
        lowest, highest = (segment.base + share * size for share, size in pairs)
        first = bisect_left(level, lowest, key=lambda one: one.at)
        last = bisect_right(level, highest, key=lambda one: one.at)
        return level[first:last] if last - first <= _MOST_STRIKES else []

    def _list_strokes(self, turn: int, *, is_vertical: bool) -> list[Stroke]:
        if (turn, is_vertical) not in self._sorted:
            strokes = sorted(turn_strokes(self._lines, turn, self._size), key=lambda one: one.at)
            for kind in (False, True):
                self._sorted[turn, kind] = [one for one in strokes if one.is_vertical is kind]
        return self._sorted[turn, is_vertical]


def _strikes_out(line: Stroke, glyphs: Sequence[Glyph]) -> bool:
    """Return whether a line is at the middle of letters, and begins and ends where they do.

    The bar of a fraction is between the lines of its letters, and the line of a drawing ends
    anywhere, such as in a letter. A sign without letters and digits is part of a drawing.
    """
    struck = [glyph for glyph in glyphs if line.start <= (glyph.left + glyph.right) / 2 <= line.end]
    if not struck or not any(glyph.text.isalnum() for glyph in glyphs):
        return False
    lowest, highest = (share * struck[0].typeface.size for share in _MIDDLE)
    near, far = (share * struck[0].typeface.size for share in _ENDS)
    level = sum(lowest <= line.at - glyph.base <= highest for glyph in struck)
    inner = _IN_NEXT * struck[0].typeface.size
    touched = sum(
        line.start + inner < glyph.right and glyph.left < line.end - inner for glyph in glyphs
    )
    return (
        2 * level > len(struck)
        and touched == len(struck)
        and -near <= min(glyph.left for glyph in struck) - line.start <= far
        and -near <= line.end - max(glyph.right for glyph in struck) <= far
    )


def _join_level(strokes: Sequence[Stroke]) -> list[list[Stroke]]:
    """Return groups of horizontal lines that continue each other; at most so many as strike out."""
    groups: list[list[Stroke]] = []
    for stroke in sorted(strokes, key=lambda one: (round(one.at), one.start)):
        last = groups[-1][-1] if groups else None
        if last and round(last.at) == round(stroke.at) and stroke.start <= last.end + 2:
            groups[-1].append(stroke)
        else:
            groups.append([stroke])
    return groups[:_MOST_STRIKES]


def _meets(line: Stroke, segment: Segment) -> bool:
    lowest, highest = (segment.base + share * segment.size for share in HEIGHT)
    is_across = segment.left < line.end - 1 and line.start + 1 < segment.right
    return is_across and lowest < line.at < highest


def _strikes_line(line: Stroke, met: Sequence[Segment]) -> bool:
    """Return whether a line is at the middle of all segments that it meets, and covers them all."""
    lowest, highest = _MIDDLE
    has_label = len(met) > 1 and any(any(map(str.isalpha, one.text)) for one in met)
    least = (_LEAST_STRUCK_ROW if has_label else _LEAST_STRUCK) * (line.end - line.start)
    return (
        all(
            line.start - 1 <= one.left
            and one.right <= line.end + 1
            and lowest <= (line.at - one.base) / one.size <= highest
            for one in met
        )
        and sum(one.right - one.left for one in met) >= least
        and sum(map(str.isalnum, "".join(one.text for one in met))) >= _LEAST_LETTERS
    )
