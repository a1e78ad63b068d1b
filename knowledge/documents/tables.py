"""Writes tables as Markdown: merged cells filled in, a header row, long sheets in groups."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from knowledge.documents.page import Block, BlockKind

_VALUE = re.compile(
    r"[(\[]?[<>\u2264\u2265~\u2248\u00b1]?[ ]?[-+\u2212\u2013]?[ ]?[$\u00a3\u00a5\u20ac]?[ ]?"
    r"[-\u2212]?\d[\d.,:/ \u00a0'\u2019\u2013-]*[%\u2030\u20ac$\u00a3*\u2020]{0,2}[)\]]?\Z"
)
_DIGITS = re.compile(r"\d+")
_BREAK_IN_NUMBERS = re.compile(r"(?<=\d)[ ]?\n[ ]?(?=\d)")
_YEAR_OR_COUNT = re.compile(r"(?:[12]\d{3}|[1-9]|[1-3]\d)\Z")
_EMPTY_VALUES = frozenset(
    {"-", "\u2013", "\u2014", "\u2212", ".", "..", "...", "x", "n/a", "n.a.", "na"}
)

MOST_COLUMNS = 500
"""Maximum number of columns of a table; spans beyond that are ignored."""
TOO_MANY_COLUMNS = f"a table can have at most {MOST_COLUMNS} columns"

CONDITIONAL = (
    "conditional format",
    "conditions are not evaluated: the workbook may colour values, strike them out, hide them or "
    "show them in another form",
)
"""What is counted for a rule with a style for cells, by the range to which it applies."""

_MOST_HEADER_ROWS = 3
_MOST_STACKED = 50
"""Maximum number of lines of a row that are rows; each repeats the cells of one line."""
_MOST_INNER_ROWS = 200
Grid = list[list[str]]
ROWS_PER_GROUP = 10
"""Rows per anchor: a citation identifies the group of rows that contains a fact."""

_MOST_SIDES = 8
"""Maximum number of empty columns at which a sheet is divided; a sheet with more is a form."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The text of a cell, and how many columns and rows it spans."""

    text: str
    columns: int = 1
    rows: int = 1
    is_header: bool = False


@dataclass(frozen=True, slots=True)
class SheetRow:
    """A row with its 1-based number and a mapping of 0-based column indexes to its non-empty cells.

    `hidden` counts the hidden rows above it that are left out. `merged` are the columns of its
    merged cells.
    """

    number: int
    cells: dict[int, str]
    hidden: int = 0
    merged: set[int] = field(default_factory=set)


def write_table(
    rows: Sequence[Sequence[Cell]], anchor: str | None = None, *, has_header: bool = True
) -> Iterator[Block]:
    """Yield a table as blocks: a caption if one cell spans the first row, then the table.

    A merged cell belongs to every row that it spans, and to every column unless it spans them all.
    Consecutive header rows become one; a table without a recognisable header has an empty one. A
    table of one column is text.
    """
    grid = expand_cells(rows)
    kept = [index for index, row in enumerate(grid) if any(row)]
    rows, grid = [rows[index] for index in kept], [grid[index] for index in kept]
    while len(grid) > 1 and len(rows[0]) == 1 and len(grid[0]) > 1:
        yield Block(BlockKind.TEXT, rows[0][0].text, anchor=anchor)
        rows, grid = rows[1:], grid[1:]
    grid = _without_empty_columns(grid)
    if not grid:
        return
    if len(grid[0]) == 1:
        yield from (Block(BlockKind.TEXT, row[0], anchor=anchor) for row in grid)
        return
    above = count_header_rows(rows) if has_header else 0
    columns = zip(*grid[:above], strict=True) if above else [()] * len(grid[0])
    header = [_join_distinct(column) for column in columns]
    yield Block(BlockKind.TABLE, write_rows(header, grid[above:]), anchor=anchor)


def unfold_tables(
    cells: Sequence[Cell], inner: Sequence[Sequence[Sequence[Cell]]]
) -> Iterator[list[Cell]]:
    """Yield a row once for each row of the largest table in its cells, with that row as text.

    `inner` contains the rows of the table in each cell, empty for a cell without a table. The other
    tables, very long ones, and all in a row with a cell that spans rows, remain as text.
    """
    row = [
        replace(cell, text=_join(cell.text, "; ".join(write_inner_rows(rows)))) if rows else cell
        for cell, rows in zip(cells, inner, strict=True)
    ]
    largest = max(range(len(cells)), key=lambda at: len(inner[at]), default=0)
    texts = list(write_inner_rows(inner[largest])) if cells else []
    if not 1 < len(texts) <= _MOST_INNER_ROWS or any(cell.rows > 1 for cell in cells):
        yield row
        return
    for text in texts:
        own = replace(cells[largest], text=_join(cells[largest].text, text))
        yield [*row[:largest], own, *row[largest + 1 :]]


def write_inner_rows(rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    """Yield the rows of a nested table as text, each value after its column header."""
    filled = [row for row in rows if any(cell.text for cell in row)]
    head: Sequence[Cell] = ()
    if len(filled) > 1 and all(cell.is_header for cell in filled[0]):
        head, filled = filled[0], filled[1:]
    for row in filled:
        named = (
            f"{head[at].text}: {cell.text}" if at < len(head) and head[at].text else cell.text
            for at, cell in enumerate(row)
            if cell.text
        )
        # A label that ends with a colon is followed by its value.
        yield ", ".join(named).replace(":, ", ": ")


def write_rows(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table with a header and rows of the same length.

    A row whose cells contain the same number of lines, some of them values, is as many rows.
    """
    rule = "|---" * len(header) + "|"
    parts = (part for row in rows for part in _part_stacked(row))
    return "\n".join((_write_row(header), rule, *map(_write_row, parts)))


def write_cell(text: str) -> str:
    """Return the text of a cell on one line, with vertical bars escaped.

    Two numbers on separate lines would be read as one without the semicolon between them.
    """
    line = _BREAK_IN_NUMBERS.sub("; ", text)
    return " ".join(line.split()).replace("|", "\\|")


def expand_cells(rows: Sequence[Sequence[Cell]]) -> Grid:
    """Return the texts of all rows, with merged cells repeated in each position that they span."""
    filled: list[dict[int, str]] = [{} for _ in rows]
    for at, cells in enumerate(rows):
        is_alone = len(cells) == 1 and not filled[at]
        column = 0
        for cell in cells:
            while column in filled[at]:
                column += 1
            for offset in range(max(1, min(cell.columns, MOST_COLUMNS - column))):
                if column in filled[at] or column >= MOST_COLUMNS:
                    break
                for row in filled[at : at + cell.rows]:
                    row.setdefault(column, "" if offset and is_alone else cell.text)
                column += 1
    width = max((column + 1 for row in filled for column in row), default=0)
    return [[row.get(column, "") for column in range(width)] for row in filled]


def count_header_rows(rows: Sequence[Sequence[Cell]]) -> int:
    """Return the number of header rows: marked ones, or two rows, the second of which divides a
    merged cell of the first.

    A first row with values is not a header, because nothing identifies it as one, and neither is
    one whose first cell alone is marked: that is the label of the row.
    """
    marked = 0
    for cells in rows[:-1]:
        if marked == _MOST_HEADER_ROWS or not all(cell.is_header for cell in cells):
            break
        marked += 1
    if marked:
        return marked
    is_alone = len(rows) == 1 and not all(cell.is_header for cell in rows[0])
    first = () if is_alone or not rows else rows[0]
    is_labelled = [cell.is_header for cell in first[:2]] == [True, False]
    if not first or is_labelled or not _is_header([cell.text for cell in first]):
        return 0
    widest, *parts = (max((cell.columns for cell in row), default=0) for row in rows[:2])
    has_parts = len(rows) > 2 and any(0 < part < widest for part in parts)
    return 2 if has_parts and _is_header([cell.text for cell in rows[1]]) else 1


def write_sheet(
    rows: Sequence[SheetRow], anchor: str = "", headers: Collection[int] = ()
) -> Iterator[Block]:
    """Yield the blocks of a sheet; an empty row ends a table, and a row with one cell becomes text.

    `headers` are the numbers of the rows that the file declares to be the header of a table.
    Anchors have the form of RFC 7111 (`row=2-11`), prefixed with `anchor`.
    """
    header: list[str] = []
    columns: list[int] = []
    last = ""
    for table in _list_tables(rows, headers):
        while table and len(table[0].cells) == 1 and not _continues(table[0], columns, header):
            (text,) = table[0].cells.values()
            yield Block(BlockKind.TEXT, text, anchor=f"{anchor}row={table[0].number}")
            table = table[1:]
        if not table:
            continue
        if not (header and table[0].number not in headers and _fits(table, columns, last)):
            used = {column for row in table for column in row.cells}
            columns = sorted(used)[:MOST_COLUMNS]
            header, table = _take_header(table, columns, headers)
        last = table[-1].cells.get(columns[0], "") if table else ""
        yield from _write_groups(header, table, columns, anchor)


def is_value(text: str) -> bool:
    """Return whether a cell contains a number, an amount, a range, or a sign for no value."""
    bare = text.removeprefix("~~").removesuffix("~~")
    return _VALUE.match(bare) is not None or bare.lower() in _EMPTY_VALUES


def _join(outside: str, inside: str) -> str:
    return f"{outside} {inside}".strip()


def _write_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(write_cell(cell) for cell in cells)} |"


def _part_stacked(row: Sequence[str]) -> Iterable[Sequence[str]]:
    """Return the rows that are stacked in the cells of one; cells of one line belong to each."""
    cells = [text.split("\n") for text in row]
    count = max(map(len, cells), default=1)
    stacked = [lines for lines in cells if len(lines) > 1]
    has_values = any(all(map(is_value, lines)) for lines in stacked)
    is_even = count <= _MOST_STACKED and all(len(lines) == count for lines in stacked)
    if len(stacked) < 2 or not has_values or not is_even:
        return (row,)
    return zip(*(lines * count if len(lines) == 1 else lines for lines in cells), strict=True)


def _without_empty_columns(grid: Grid) -> Grid:
    filled = [index for index, column in enumerate(zip(*grid, strict=True)) if any(column)]
    return [[row[index] for index in filled] for row in grid]


def _join_distinct(texts: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(text for text in texts if text))


def _list_tables(rows: Sequence[SheetRow], headers: Collection[int]) -> Iterator[list[SheetRow]]:
    """Yield the rows between empty rows; adjacent tables follow one after the other.

    A declared header begins a table, unless the row above it is a part of it.
    """
    begun = 0
    group: list[SheetRow] = []
    groups: dict[tuple[int, int], list[SheetRow]] = {}
    for at, row in enumerate(rows):
        begun += row.number in headers and not _is_part_of_header(group, row)
        group = groups.setdefault((begun, row.number - row.hidden - at), [])
        group.append(row)
    for members in groups.values():
        yield from _part_sides(members)


def _is_part_of_header(group: Sequence[SheetRow], header: SheetRow) -> bool:
    """Return whether the row above a header begins a table below its titles, and has merged cells
    or labels above most columns.
    """
    if not group or any(len(title.cells) > 1 for title in group[:-1]):
        return False
    above = group[-1]
    is_wide = len(above.cells) > 2 and 2 * len(above.cells) > len(header.cells)
    return bool(above.merged) or (is_wide and _is_header(list(above.cells.values())))


def _part_sides(table: list[SheetRow]) -> Iterator[list[SheetRow]]:
    """Yield the tables on both sides of an empty column, provided that their rows differ."""
    used = sorted({column for row in table for column in row.cells})
    gaps = [
        (before, after)
        for before, after in pairwise(used)
        if after > before + 1 and before > used[0] and after < used[-1]
    ]
    for before, after in gaps if len(gaps) <= _MOST_SIDES else ():
        left, right = _cut(table, used[0], before), _cut(table, after, used[-1])
        if [row.number for row in left] != [row.number for row in right]:
            yield left
            yield from _part_sides(right)
            return
    yield table


def _cut(table: Sequence[SheetRow], first: int, last: int) -> list[SheetRow]:
    """Return the cells of rows between two columns."""
    parts = (
        (row, {at: text for at, text in row.cells.items() if first <= at <= last}) for row in table
    )
    return [replace(row, cells=cells) for row, cells in parts if cells]


def _continues(row: SheetRow, columns: Sequence[int], header: Sequence[str]) -> bool:
    return len(columns) == 1 and bool(header) and set(row.cells) <= set(columns)


def _fits(table: Sequence[SheetRow], columns: Sequence[int], last: str) -> bool:
    """Return whether rows after an empty row belong to the previous table.

    This is the case if the first of them has values, or begins with a code like that of the last
    row.
    """
    used = {column for row in table for column in row.cells}
    first = table[0].cells.get(columns[0], "") if columns else ""
    is_code = first != last and _DIGITS.search(last) is not None
    has_same_form = is_code and _DIGITS.sub("#", first) == _DIGITS.sub("#", last)
    has_values = any(map(is_value, table[0].cells.values())) and not first.endswith(":")
    return used <= set(columns) and (has_same_form or has_values)


def _take_header(
    table: list[SheetRow], columns: Sequence[int], headers: Collection[int]
) -> tuple[list[str], list[SheetRow]]:
    first, second = ([row.cells.get(at, "") for at in columns] for row in (table * 2)[:2])
    own = ["" if at in table[0].merged else text for at, text in zip(columns, first, strict=True)]
    # Merged cells, such as years, above a row of labels: both are the header.
    is_above = len(table) > 1 and table[1].number in headers
    # The merged cells of a form are its labels, in the same columns of each row.
    is_group = len(table) > 2 and bool(table[0].merged) and table[0].merged != table[1].merged
    is_above |= is_group and _is_header(own) and _is_header(second)
    if is_above and table[0].number not in headers:
        return [_join_distinct(pair) for pair in zip(first, second, strict=True)], table[2:]
    if table[0].number in headers or _is_header(first):
        return first, table[1:]
    return [""] * len(columns), table


def _write_groups(
    header: Sequence[str], rows: Sequence[SheetRow], columns: Sequence[int], anchor: str
) -> Iterator[Block]:
    if not rows:
        yield Block(BlockKind.TEXT, ", ".join(filter(None, header)))
    for start in range(0, len(rows), ROWS_PER_GROUP):
        group = rows[start : start + ROWS_PER_GROUP]
        table = write_rows(header, ([row.cells.get(at, "") for at in columns] for row in group))
        first, last = group[0].number, group[-1].number
        numbers = str(first) if first == last else f"{first}-{last}"
        yield Block(BlockKind.TABLE, table, anchor=f"{anchor}row={numbers}")


def _is_header(texts: Sequence[str]) -> bool:
    """Return whether a row may be a header: it has no values, and no label of a value beside it."""
    has_label = any(text.endswith(":") for text in texts[:-1])
    if has_label and not all(text.endswith(":") for text in texts if text):
        return False
    # Several lines of a cell may be values with a unit.
    has_values = any(
        all(is_value(line) or ("\n" in text and line[:1].isdigit()) for line in text.split("\n"))
        for text in texts
    )
    return not has_values or _is_numbered_header(texts)


def _is_numbered_header(texts: Sequence[str]) -> bool:
    """Return whether a row consists of evenly increasing numbers, perhaps after a label."""
    numbers = [int(text) for text in texts if _YEAR_OR_COUNT.match(text)]
    steps = {second - first for first, second in pairwise(numbers)}
    words = [text for text in texts if text and not _YEAR_OR_COUNT.match(text)]
    is_even = len(numbers) > 1 and len(steps) == 1 and 0 not in steps
    is_labelled = not _YEAR_OR_COUNT.match(texts[0]) and not any(map(is_value, words))
    return is_even and is_labelled and len(words) <= len(numbers)
