"""Reads the cells of a table in AsciiDoc."""

import re
from collections.abc import Callable, Iterator, Sequence

from knowledge.documents.tables import MOST_COLUMNS, Cell

_CELL = re.compile(r"(?:(?<=\s)|\A)((?:\d{0,3}(?:\.\d{1,3})?[+*])?[<^>.]{0,4}[aehlmsdv]?)\|(?!=)")
_SPAN = re.compile(r"(\d{0,3})(?:\.(\d{1,3}))?([+*])")
_COLUMNS = re.compile(r"cols=\"?([^\"\]]{1,300})")
_TIMES = re.compile(r"(\d{1,3})\*")
_BARS = "\x1b"


def read_table(lines: Sequence[str], style: str, plain: Callable[[str], str]) -> list[list[Cell]]:
    """Return the rows of a table whose block attributes are `style`.

    Without a number of columns the first line has one row.
    """
    stated = _count_columns(style)
    first = next((line for line in lines if line.strip()), "")
    cells = list(_cells(lines, plain))
    width = stated or sum(cell.columns for cell in _cells([first], plain)) or 1
    rows: list[list[Cell]] = [[]]
    filled = 0
    taken: dict[int, int] = {}
    for cell in cells:
        if filled + taken.get(len(rows) - 1, 0) >= width:
            rows.append([])
            filled = 0
        for below in range(1, min(cell.rows, 1000)):
            at = len(rows) - 1 + below
            taken[at] = taken.get(at, 0) + cell.columns
        rows[-1].append(cell)
        filled += cell.columns
    return [row for row in rows if row]


def _count_columns(style: str) -> int:
    found = _COLUMNS.search(style)
    if found is None:
        return 0
    parts = [part for part in found[1].replace(";", ",").split(",") if part.strip()]
    times = (_TIMES.match(part.strip()) for part in parts)
    return min(sum(int(found[1]) if found else 1 for found in times), MOST_COLUMNS)


def _cells(lines: Sequence[str], plain: Callable[[str], str]) -> Iterator[Cell]:
    text = "\n".join(lines).replace(_BARS, "").replace("\\|", _BARS)
    marks = list(_CELL.finditer(text))
    for index, mark in enumerate(marks):
        end = marks[index + 1].start() if index + 1 < len(marks) else len(text)
        content = plain(" ".join(text[mark.end() : end].split())).replace(_BARS, "|")
        span = _SPAN.match(mark[1])
        columns, rows = 1, 1
        if span is not None:
            columns, rows = int(span[1] or 1), int(span[2] or 1)
        if span is not None and span[3] == "*":
            yield from [Cell(content)] * min(columns, MOST_COLUMNS)
        else:
            yield Cell(content, max(columns, 1), max(rows, 1))
