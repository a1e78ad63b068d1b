"""Draws horizontal bars as SVG: colours follow the reader's light or dark scheme."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LEFT, RIGHT = 760, 120, 70
BAR, GAP, TOP, FOOT = 13, 14, 66, 12
COLOURS = ("#3b7dd8", "#e08a1e", "#3f9b5b")

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 15px; }
.value { font-size: 11px; }
.axis { stroke: #8b949e; }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3; } }
"""


@dataclass(frozen=True, slots=True)
class Bars:
    """One group: its name, and a value for each series or None."""

    name: str
    values: Sequence[float | None]


def drawing(title: str, series: Sequence[str], groups: Sequence[Bars], form: str) -> str:
    """Return the SVG; `form` formats a value, the longest bar is as long as there is room."""
    greatest = max((value for group in groups for value in group.values if value), default=1.0)
    scale = (WIDTH - LEFT - RIGHT) / greatest
    parts, top = _head(title, series), TOP
    for group in groups:
        middle = top + BAR * len(group.values) / 2 + 4
        parts.append(_text(LEFT - 8, middle, group.name, 'text-anchor="end"'))
        for number, value in enumerate(group.values):
            parts += _bar(top + number * BAR, number, value, scale, form)
        top += BAR * len(group.values) + GAP
    height = top + FOOT
    axis = f'<path class="axis" d="M{LEFT} {TOP - 6}V{top - GAP + 6}"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-label="{escape(title)}">\n'
        f"<style>{STYLE}</style>\n" + "\n".join([*parts, axis]) + "\n</svg>\n"
    )


def _head(title: str, series: Sequence[str]) -> list[str]:
    parts, left = [_text(12, 22, title, 'class="title"')], LEFT
    for number, name in enumerate(series):
        parts.append(f'<rect x="{left}" y="36" width="12" height="12" fill="{COLOURS[number]}"/>')
        parts.append(_text(left + 18, 47, name))
        left += 40 + 8 * len(name)
    return parts


def _bar(top: float, number: int, value: float | None, scale: float, form: str) -> list[str]:
    length = (value or 0.0) * scale
    label = "-" if value is None else form.format(value)
    return [
        f'<rect x="{LEFT}" y="{top}" width="{length:.1f}" height="{BAR - 2}" '
        f'fill="{COLOURS[number]}"/>',
        _text(LEFT + length + 5, top + BAR - 3, label, 'class="value"'),
    ]


def _text(left: float, top: float, text: str, how: str = "") -> str:
    return f'<text x="{left:.1f}" y="{top:.1f}" {how}>{escape(text)}</text>'
