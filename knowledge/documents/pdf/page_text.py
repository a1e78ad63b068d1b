"""The text of a PDF page with positions: segments, and the lines that are drawn.

Text that runs up, down or upside down is read as if the page were turned, so positions are those
that a reader of this text sees.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pypdfium2 import PdfMatrix

from knowledge.documents.pdf.page_objects import Box, Size
from knowledge.documents.pdf.tags import Tag

_TILTED = 15
"""Minimum angle in degrees between text and the nearest side of the page if it is drawn askew."""
_SHORTEST = 3.0
_SHORTEST_RULE = 20


@dataclass(slots=True)
class Segment:
    """Words on one baseline without a wide gap; positions are points from the lower left corner.

    `parts` are the words on both sides of its wider gaps, if it has any. `words` are the left and
    right ends of its words. `number` is its place in the drawing order, which several may share.
    """

    text: str
    left: float
    right: float
    base: float
    size: float
    is_bold: bool = False
    is_code: bool = False
    tag: Tag | None = None
    parts: "list[Segment]" = field(default_factory=list)
    words: list[tuple[float, float]] = field(default_factory=list)
    number: int = 0


@dataclass(frozen=True, slots=True)
class DrawnRule:
    """A horizontal line that is drawn on a page."""

    left: float
    right: float
    base: float


@dataclass(frozen=True, slots=True)
class Stroke:
    """A straight line, in points from the lower left corner; `at` is its position across its
    direction.

    A horizontal line goes from left to right, a vertical one from bottom to top. `number` is its
    place in the drawing order.
    """

    is_vertical: bool
    at: float
    start: float
    end: float
    number: int = field(default=0, compare=False)


@dataclass(slots=True)
class PageText:
    """The content of a page in one direction; `has_pictures`: without text, it may be a scan.

    The file does not state the meaning of its unreadable letters, which are U+FFFD in words. `turn`
    is the direction of the text, see `find_turn`; a watermark or the labels of a chart are askew.
    """

    width: float
    height: float
    segments: list[Segment] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    rules: list[DrawnRule] = field(default_factory=list)
    strokes: list[Stroke] = field(default_factory=list)
    has_pictures: bool = False
    hidden_words: int = 0
    unreadable_letters: int = 0
    turn: int = 0

    @property
    def is_tilted(self) -> bool:
        """Whether the text is drawn askew."""
        return self.turn % 90 > 0


def turn_strokes(lines: list[Box], turn: int, size: Size) -> list[Stroke]:
    """Return lines as seen by a reader of text in a direction; short ones are left out."""
    strokes: list[Stroke] = []
    matrix = turn_page(turn, size)
    for number, line in enumerate(lines):
        left, bottom, right, top = matrix.on_rect(*line)
        if right - left >= max(_SHORTEST, top - bottom):
            strokes.append(Stroke(False, bottom, left, right, number))
        elif top - bottom >= _SHORTEST:
            strokes.append(Stroke(True, left, bottom, top, number))
    return strokes


def list_rules(boxes: Iterable[Box]) -> Iterator[DrawnRule]:
    """Yield the horizontal edges of boxes."""
    for left, bottom, right, top in boxes:
        if right - left > _SHORTEST_RULE:
            yield DrawnRule(left, right, top)
            if top - bottom > 3:
                yield DrawnRule(left, right, bottom)


def find_turn(along: float, rise: float) -> int:
    """Return the direction (`along`, `rise`) of text in degrees counterclockwise.

    Text that is hardly tilted, such as that of a scan, counts as level or upright.
    """
    degrees = math.degrees(math.atan2(rise, along))
    upright = 90 * round(degrees / 90)
    return (upright if abs(degrees - upright) < _TILTED else 5 * round(degrees / 5)) % 360


def turn_page(turn: int, size: Size) -> "PdfMatrix":
    """Return the matrix that turns positions on a page of `size` points for a reader of the text.

    The text runs at `turn` degrees, see `find_turn`.
    """
    turned = PdfMatrix().rotate(turn)
    left, bottom, *_ = turned.on_rect(0, 0, *size)
    return turned.translate(-left, -bottom)


def cut_segment(segment: Segment, gutters: Sequence[tuple[float, float]]) -> list[Segment]:
    """Split a segment at each gutter in a gap between its parts, and return the pieces."""
    pieces: list[Segment] = []
    for part in segment.parts or [segment]:
        before = pieces[-1] if pieces else None
        if before is None or any(
            before.right - 1 < right and left < part.left + 1 for left, right in gutters
        ):
            pieces.append(replace(part, parts=[]))
        else:
            before.text = f"{before.text} {part.text}"
            before.right = max(before.right, part.right)
    return pieces if len(pieces) > 1 else [segment]
