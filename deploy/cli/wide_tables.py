"""Writes tables that are too wide for a terminal as lists: a line for each cell of a row."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

_RULE = re.compile(r"\|?[\s:|-]+\|?")
_BAR = re.compile(r"(?<!\\)\|")
_LEAST_LINES = 3
"""A table has its columns, a rule and a row."""


def list_wide_tables(lines: Sequence[str], width: int) -> Iterator[str]:
    """Yield the lines of a text; those of a table that is wider than `width` as a list."""
    for is_row, part in groupby(lines, key=lambda line: line.lstrip().startswith("|")):
        own = list(part)
        yield from _list_cells(own) if is_row and _is_wide_table(own, width) else own


def _is_wide_table(table: Sequence[str], width: int) -> bool:
    is_table = len(table) >= _LEAST_LINES and bool(_RULE.fullmatch(table[1].strip()))
    return is_table and any(len(line) > width for line in table)


def _list_cells(table: Sequence[str]) -> Iterator[str]:
    _, *columns = _split(table[0])
    for number, line in enumerate(table[2:]):
        name, *cells = _split(line)
        if number:
            yield ""
        yield name
        yield from (
            f"- {column}: {cell}" for column, cell in zip(columns, cells, strict=False) if cell
        )


def _split(line: str) -> list[str]:
    return [cell.strip() for cell in _BAR.split(line.strip().strip("|"))]
