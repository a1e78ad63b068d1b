"""Turns places on a page so that text which runs up, down or upside down stands upright."""

import math
from enum import Enum

Size = tuple[float, float]
Box = tuple[float, float, float, float]


class TextDirection(Enum):
    """The direction in which text runs on a page, in quarters of a circle against the clock."""

    NONE = 0
    UP = 1
    UPSIDE_DOWN = 2
    DOWN = 3


def find_turn(along: float, rise: float) -> TextDirection:
    """Return the direction nearest to that of text whose unit runs `along` and rises by `rise`."""
    return TextDirection(round(math.atan2(rise, along) / (math.pi / 2)) % 4)


def turn_size(turn: TextDirection, size: Size) -> Size:
    """Return the width and height of a page of `size` points for a reader of the turned text."""
    width, height = size
    return (height, width) if turn in (TextDirection.UP, TextDirection.DOWN) else (width, height)


def turn_point(turn: TextDirection, x: float, y: float, size: Size) -> tuple[float, float]:
    """Return a point of a page of `size` points, seen with the page turned for the text."""
    width, height = size
    if turn is TextDirection.UP:
        return y, width - x
    if turn is TextDirection.UPSIDE_DOWN:
        return width - x, height - y
    return (height - y, x) if turn is TextDirection.DOWN else (x, y)


def turn_box(turn: TextDirection, box: Box, size: Size) -> Box:
    """Return left, bottom, right and top of a box, seen with the page turned for the text."""
    if turn is TextDirection.NONE:
        return box
    one, other = turn_point(turn, *box[:2], size), turn_point(turn, *box[2:], size)
    (left, right), (bottom, top) = (sorted(ends) for ends in zip(one, other, strict=True))
    return left, bottom, right, top
