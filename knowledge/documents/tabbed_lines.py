"""Writes lines of text whose parts are separated by tabs, such as typed price lists, as tables.

A paragraph of a text document is a row if it contains tabs; its tab stops are the columns.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from knowledge.documents.notation import keep_lines
from knowledge.documents.page import Block, BlockKind, LeftOutCounts
from knowledge.documents.tables import Cell, is_value, write_table

_TABS = re.compile(r"\t+")
_LONGEST_PART = 60
_MOST_STOPS = 50
"""Maximum number of tab stops that are columns; each row has a cell for each."""
_LEAST_ROWS_WITHOUT_VALUES = 3


@dataclass(frozen=True, slots=True)
class TabbedLine:
    """A line of text with tabs, and the number of tab stops that its paragraph states."""

    text: str
    stops: int = 0
    is_bold: bool = False

    def list_parts(self) -> list[str]:
        """Return the texts between the tabs.

        Each tab leads to the next stop, and without text between two of them a column is empty.
        Beyond the stated stops, several tabs only move text further.
        """
        text = self.text if self.is_stated() else _TABS.sub("\t", self.text.lstrip())
        return [keep_lines(part) for part in text.rstrip().split("\t")]

    def is_stated(self) -> bool:
        """Return whether there is a stop for each tab."""
        return self.text.count("\t") <= min(self.stops, _MOST_STOPS)


def are_rows(lines: Sequence[TabbedLine]) -> bool:
    """Return whether the lines of a paragraph may be rows of a table: short texts between tabs."""
    parts = [line.list_parts() for line in lines if "\t" in line.text.strip()]
    return bool(parts) and all(map(_is_short, parts))


def write_tabbed_lines(lines: Sequence[TabbedLine], left_out: LeftOutCounts) -> Iterator[Block]:
    """Yield successive lines; those with the same columns are tables, others are text.

    A line of a table whose columns are unclear is counted.
    """
    parts = [line.list_parts() for line in lines]
    widths: Counter[int] = Counter()
    for line, own in zip(lines, parts, strict=True):
        widths[line.stops] = max(widths[line.stops], len(own) if line.is_stated() else 0)
    for line, own in zip(lines, parts, strict=True):
        own += [""] * (widths[line.stops] - len(own) if len(own) > 1 and line.is_stated() else 0)
    for width, group in groupby(zip(lines, parts, strict=True), key=lambda row: len(row[1])):
        rows = list(group)
        if width > 1 and _is_table([own for _, own in rows]):
            yield from _write_table(rows)
            continue
        unclear = sum(width > 2 and _is_row(own) for _, own in rows)
        left_out.add("table structure", "other lines have another number of tabs", unclear)
        texts = (keep_lines(line.text) for line, _ in rows)
        yield from (Block(BlockKind.TEXT, text) for text in texts if text)


def _is_table(parts: Sequence[Sequence[str]]) -> bool:
    """Return whether lines are the rows of a table: several parts, with values or short texts.

    A label with its explanation, or a number with its clause, is text.
    """
    if len(parts) < 2 or not all(map(_is_short, parts)):
        return False
    valued = sum(map(_is_row, parts))
    is_wide = len(parts[0]) > 2 and (valued or len(parts) >= _LEAST_ROWS_WITHOUT_VALUES)
    return valued >= len(parts) - 1 or bool(is_wide)


def _is_row(parts: Sequence[str]) -> bool:
    return _is_short(parts) and any(map(is_value, parts[1:]))


def _is_short(parts: Sequence[str]) -> bool:
    return all(len(part) <= _LONGEST_PART for part in parts)


def _write_table(rows: Sequence[tuple[TabbedLine, list[str]]]) -> Iterator[Block]:
    """Yield a table; its first row is a header if it is bold or has values below it."""
    is_marked = rows[0][0].is_bold and not all(line.is_bold for line, _ in rows)
    cells = [
        [Cell(part, is_header=is_marked and at == 0) for part in own]
        for at, (_, own) in enumerate(rows)
    ]
    yield from write_table(cells, has_header=is_marked or any(_is_row(own) for _, own in rows[1:]))
