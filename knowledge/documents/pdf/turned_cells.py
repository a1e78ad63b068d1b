"""Puts turned words into the cells of the tables of a page: headers that run up or down."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from knowledge.documents.pdf.drawn_grids import find_grids
from knowledge.documents.pdf.page_text import PageText, Segment, turn_page
from knowledge.documents.pdf.ruled_tables import read_grid
from knowledge.documents.pdf.text_lines import find_lines, join_lines
from knowledge.documents.tables import is_value

_Turned = tuple[Segment, Segment]
"""A turned text in the positions of its reader, and in those of a reader of the page."""
_Cell = tuple[list[Segment], Segment]
_LEAST_HEADERS = 2
_RIGHT_ANGLE = 90
_MOST_TURNED = 1_000
"""Maximum number of turned texts of a page with headers; a page with more is a drawing."""
_NEAR = 2.5
"""Maximum distance in points between the lower ends of the headers of a table."""
_FURTHEST_ROW = 3.0
"""Maximum distance of the headers from the first row, in sizes."""


def place_turned(texts: Sequence[PageText]) -> None:
    """Move the words that are in cells of a table, or above its columns, to the text of the page.

    `texts` are those of a page in each direction. Other turned words keep their place behind it.
    """
    first, *others = texts
    for text in others:
        turn = (text.turn - first.turn) % 360
        if turn % 180 == _RIGHT_ANGLE and len(text.segments) <= _MOST_TURNED:
            for find in (_find_cells, _find_headers):
                turned = [(one, _turn(one, turn, text)) for one in text.segments]
                cells = list(find(first, turned))
                moved = {id(own) for held, _ in cells for own in held}
                text.segments = [one for one in text.segments if id(one) not in moved]
                first.segments += [
                    replace(place, text=join_lines(line.text for line in find_lines(held)))
                    for held, place in cells
                ]


def _turn(segment: Segment, turn: int, text: PageText) -> Segment:
    """Return a text in the positions of a reader of the page; its base is its lower end."""
    matrix = turn_page(-turn, (text.width, text.height))
    top = segment.base + segment.size
    left, bottom, right, _ = matrix.on_rect(segment.left, segment.base, segment.right, top)
    return replace(segment, left=left, right=right, base=bottom, parts=[], words=[])


def _find_cells(page: PageText, turned: Sequence[_Turned]) -> Iterator[_Cell]:
    """Yield the words in each cell of a drawn table, and the place of their text."""
    own = {id(place): one for one, place in turned}
    left = [place for _, place in turned]
    for grid in find_grids(page.strokes):
        inside, outside = grid.part(left)
        table = read_grid(grid, grid.part(page.segments)[0]) if inside else None
        if table is None or table.unclear:
            continue
        left = outside
        for cell, places in grid.group(inside).items():
            base = (cell.bottom + cell.top - places[0].size) / 2
            yield [own[id(place)] for place in places], replace(places[0], base=base)


def _find_headers(page: PageText, turned: Sequence[_Turned]) -> Iterator[_Cell]:
    """Yield the words above each column, and the place of their text.

    They end at one height, above a row that has a value below each of them.
    """
    for _, group in groupby(
        sorted(turned, key=lambda one: one[1].base), lambda one: round(one[1].base / _NEAR)
    ):
        headers = list(group)
        place = headers[0][1]
        below = [
            one for one in page.segments
            if is_value(one.text) and 0 < place.base - one.base < _FURTHEST_ROW * one.size
        ]  # fmt: skip
        highest = max((one.base for one in below), default=0.0)
        own: dict[float, list[_Turned]] = {}
        for header in headers:
            middle = (header[1].left + header[1].right) / 2
            column = next(
                (
                    one.left for one in below
                    if highest - one.base < _NEAR and one.left - place.size < middle
                    and middle < one.right + place.size
                ),
                None,
            )  # fmt: skip
            if column is not None:
                own.setdefault(column, []).append(header)
        if len(own) >= _LEAST_HEADERS and sum(map(len, own.values())) == len(headers):
            for held in own.values():
                left, right = min(one.left for _, one in held), max(one.right for _, one in held)
                yield [one for one, _ in held], replace(held[0][1], left=left, right=right)
