"""Writes fractions and roots of a PDF page in their lines: `1/2`, `√(a+b)`.

The parts of a fraction are above and below a bar, that of a root is below the bar of its sign.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from knowledge.documents.notation import Formula, write_formula, write_fraction
from knowledge.documents.pdf.glyphs import ROOT, Glyph
from knowledge.documents.pdf.page_text import Stroke

_MOST_BARS = 300
_MOST_NEAR = 3_000
_FURTHEST = 40.0
"""Maximum distance in points of the letters of a fraction from its bar."""
_ABOVE, _BELOW, _SCRIPT = (-0.05, 1.1), (0.4, 2.4), 0.6
"""How far the baselines of the upper and the lower part are from the bar, and those of their
scripts from them, in font sizes.
"""
_AXIS = (0.1, 0.45)
"""The height of the bar above the baseline of the line, in font sizes."""
_LONGER, _OUTSIDE = 0.8, 0.3
"""How much longer than its parts a bar may be, and how far letters may be beyond its ends."""
_BESIDE = 1.5
"""Maximum distance of the bar from the letters of its line, in font sizes."""
_SMALLER = 0.95
_NEAR_ROOT = 0.2
"""Maximum distance of a bar from the upper right corner of the sign of a root, in font sizes."""
_Write = Callable[[Sequence[Glyph]], str]


def join_fractions(
    glyphs: list[Glyph], strokes: Iterable[Stroke], write: _Write
) -> tuple[list[Glyph], set[int]]:
    """Return glyphs, with a fraction beside letters of a line as one of them, and the numbers of
    the bars; `write` returns glyphs as text.
    """
    bars = [stroke for stroke in strokes if not stroke.is_vertical]
    bars = sorted(bars, key=lambda one: one.end - one.start)[:_MOST_BARS]
    ordered = sorted(glyphs, key=lambda one: one.base)
    numbers: set[int] = set()
    for bar in bars:
        first = bisect_left(ordered, bar.at - _FURTHEST, key=lambda one: one.base)
        last = bisect_left(ordered, bar.at + _FURTHEST, key=lambda one: one.base)
        near = ordered[first : min(last, first + _MOST_NEAR)]
        upper, lower = _find_part(near, bar, _ABOVE, 1), _find_part(near, bar, _BELOW, -1)
        root = next((glyph for glyph in near if _is_root(glyph, bar)), None)
        if root is not None and lower:
            numbers.add(bar.number)
            formula = Formula("msqrt", parts=(Formula("mi", write(lower)),))
            root.text, root.right = write_formula(formula), bar.end
            root.base, root.typeface = lower[0].base, lower[0].typeface
            parts = {id(glyph) for glyph in lower}
            behind = glyphs[glyphs.index(lower[-1]) + 1 :][:1]
            if behind and behind[0].text.isalnum():
                # `√2 x` is not the root of `2x`.
                behind[0].has_space = True
            glyphs = [glyph for glyph in glyphs if id(glyph) not in parts]
            ordered = sorted(glyphs, key=lambda one: one.base)
            continue
        line = _find_line(near, bar, upper, lower) if _are_parts(near, bar, upper, lower) else []
        if not line:
            continue
        numbers.add(bar.number)
        text = write_fraction([write(upper), write(lower)])
        parts = {id(glyph) for glyph in (*upper, *lower)}
        fraction = replace(line[0], text=text, left=bar.start, right=bar.end, has_space=True)
        glyphs = _insert(glyphs, fraction, line, parts)
        ordered[first:last] = [glyph for glyph in ordered[first:last] if id(glyph) not in parts]
        insort(ordered, fraction, key=lambda one: one.base)
    return glyphs, numbers


def _find_part(
    near: Sequence[Glyph], bar: Stroke, heights: tuple[float, float], side: int
) -> list[Glyph]:
    """Return the glyphs above or below a bar, from left to right, with their scripts."""
    lowest, highest = heights
    part = [
        glyph
        for glyph in near
        if bar.start - 1 <= (glyph.left + glyph.right) / 2 <= bar.end + 1
        and lowest <= side * (glyph.base - bar.at) / glyph.typeface.size <= highest
    ]
    nearest = min((abs(glyph.base - bar.at) for glyph in part), default=0.0)
    row = [one for one in part if abs(one.base - bar.at) - nearest < _SCRIPT * one.typeface.size]
    main = max(row, key=lambda one: one.typeface.size, default=None)
    return sorted(
        (
            one for one in part
            if main is not None and abs(one.base - main.base) < _SCRIPT * main.typeface.size
        ),
        key=lambda one: one.left,
    )  # fmt: skip


def _is_root(glyph: Glyph, bar: Stroke) -> bool:
    """Return whether a glyph is the sign of a root whose bar begins at its upper right corner.

    The baseline of the sign is not that of the line, but at its top in fonts of TeX.
    """
    size = glyph.typeface.size
    corner = abs(glyph.right - bar.start), abs(glyph.base + glyph.top * size - bar.at)
    return glyph.text == ROOT and max(corner) < _NEAR_ROOT * size


def _are_parts(
    near: Sequence[Glyph], bar: Stroke, upper: Sequence[Glyph], lower: Sequence[Glyph]
) -> bool:
    """Return whether a bar is as long as what is above or below it, and nothing is beside that.

    The parts have one size. The line below a word is below a part of a line, and above a part of
    the next line; a line that strikes text out is at the height of letters.
    """
    if not upper or not lower:
        return False
    sizes = [max(glyph.typeface.size for glyph in part) for part in (upper, lower)]
    size = max(sizes)
    if min(sizes) < _SMALLER * size or not all(
        any(any(map(str.isalnum, glyph.text)) for glyph in part) for part in (upper, lower)
    ):
        return False
    width = max(part[-1].right - part[0].left for part in (upper, lower))
    parts = {id(glyph) for glyph in (*upper, *lower)}
    return bar.end - bar.start - width <= _LONGER * size and not any(
        glyph.left < bar.end + _OUTSIDE * size
        and bar.start - _OUTSIDE * size < glyph.right
        and id(glyph) not in parts
        and (
            any(abs(glyph.base - part[0].base) < 1 for part in (upper, lower))
            or (
                bar.start < (glyph.left + glyph.right) / 2 < bar.end
                and lower[0].base < glyph.base < upper[0].base
            )
        )
        for glyph in near
    )


def _find_line(
    near: Sequence[Glyph], bar: Stroke, upper: Sequence[Glyph], lower: Sequence[Glyph]
) -> list[Glyph]:
    """Return the glyphs before and behind a bar, on the baseline of its line."""
    least = _SMALLER * upper[0].typeface.size
    line = [
        glyph
        for glyph in near
        if glyph.typeface.size >= least
        and glyph.typeface.turn == upper[0].typeface.turn
        and lower[0].base < glyph.base < upper[0].base
        and _AXIS[0] <= (bar.at - glyph.base) / glyph.typeface.size <= _AXIS[1]
    ]
    before = [
        glyph for glyph in line
        if -1 <= bar.start - glyph.right < _BESIDE * glyph.typeface.size
    ]  # fmt: skip
    behind = [
        glyph for glyph in line
        if -1 <= glyph.left - bar.end < _BESIDE * glyph.typeface.size
    ]  # fmt: skip
    return [
        *sorted(before, key=lambda one: -one.right)[:1],
        *sorted(behind, key=lambda one: one.left)[:1],
    ]


def _insert(
    glyphs: Sequence[Glyph], fraction: Glyph, line: Sequence[Glyph], parts: set[int]
) -> list[Glyph]:
    """Return glyphs with a fraction instead of its parts, in its line and apart from its letters.

    Without a space, `2 1/2` would be another number, and `1/2 x` another term.
    """
    placed: list[Glyph] = []
    for glyph in glyphs:
        is_beside = glyph is line[0]
        if is_beside and glyph.left > fraction.left:
            placed.append(fraction)
        if id(glyph) not in parts:
            placed.append(glyph)
        if is_beside and glyph.left < fraction.left:
            placed.append(fraction)
    behind = line[-1]
    if behind.left > fraction.left and behind.text.isalnum():
        behind.has_space = True
    return placed
