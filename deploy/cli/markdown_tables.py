"""Lays tables out for a terminal: aligned columns, or a line for each cell if it is too narrow."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest

_RULE = re.compile(r"\|?[\s:|-]+\|?")
_BAR = re.compile(r"(?<!\\)\|")
_LEAST_LINES = 3
"""A table has its columns, a rule and a row."""


def columns(text: str) -> int:
    """Return the number of terminal columns of a text; the marks of bold words take none."""
    return sum(
        0 if unicodedata.combining(sign) else 1 + (unicodedata.east_asian_width(sign) in "WF")
        for sign in text.replace("**", "")
    )


def lay_out_tables(lines: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines of a text; a table that is wider than `width` becomes a list."""
    for is_row, part in groupby(lines, key=lambda line: line.lstrip().startswith("|")):
        own = list(part)
        yield from _lay_out(own, width) if is_row and _is_table(own) else own


def _is_table(lines: Sequence[str]) -> bool:
    return len(lines) >= _LEAST_LINES and bool(_RULE.fullmatch(lines[1].strip()))


def _lay_out(table: Sequence[str], width: int) -> Iterator[str]:
    aligned = [*_align_cells([_split(line) for line in table])]
    yield from _list_cells(table) if columns(aligned[0]) > width else aligned


def _align_cells(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows with each column as wide as its widest cell; the second one is the rule."""
    named = [row for number, row in enumerate(rows) if number != 1]
    widths = [max(map(columns, cells)) for cells in zip_longest(*named, fillvalue="")]
    for number, row in enumerate(rows):
        filled = [*row[: len(widths)], *[""] * (len(widths) - len(row))]
        cells = [
            "-" * wide if number == 1 else cell + " " * (wide - columns(cell))
            for cell, wide in zip(filled, widths, strict=True)
        ]
        yield f"| {' | '.join(cells)} |"


def _list_cells(table: Sequence[str]) -> Iterator[str]:
    _, *names = _split(table[0])
    for number, line in enumerate(table[2:]):
        name, *cells = _split(line)
        if number:
            yield ""
        yield name
        yield from (
            f"- {column}: {cell}" for column, cell in zip(names, cells, strict=False) if cell
        )


def _split(line: str) -> list[str]:
    return [cell.strip() for cell in _BAR.split(line.strip().removeprefix("|").removesuffix("|"))]
