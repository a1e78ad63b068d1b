"""Reads tables of HTML pages: rows and cells by tag or role, tables in cells, layout tables."""

from collections.abc import Callable, Iterator
from itertools import chain

from selectolax.lexbor import LexborNode

from knowledge.documents.notation import read_number
from knowledge.documents.tables import Cell, unfold_tables

_ReadText = Callable[[LexborNode], str]
_ROLES = {
    "table": "table", "grid": "table", "treegrid": "table", "row": "tr", "cell": "td",
    "gridcell": "td", "columnheader": "th", "rowheader": "th",
}  # fmt: skip
_TAGS = frozenset({"table", "tr", "td", "th"})
_CELLS = ("td", "th")
_GROUPS = {"thead": -1, "tfoot": 1}
_STRUCTURE = "h1, h2, h3, h4, h5, h6, pre, ul, ol, table"
_ARRANGED = "table, pre, h1, h2, h3, h4, h5, h6"


def is_table(node: LexborNode) -> bool:
    """Return whether an element is a table and not a layout; one that only has the role of a table
    must have its whole text in cells.
    """
    if node.tag == "table":
        return not _is_layout(node)
    if _find_kind(node) != "table":
        return False
    size = sum(len("".join(cell.text().split())) for cell in chain(*_list_rows(node)))
    return size == len("".join(node.text().split())) and node.css_first(_STRUCTURE) is None


def read_rows(table: LexborNode, read_text: _ReadText) -> Iterator[list[Cell]]:
    """Yield the rows of a table; tables inside cells are flattened, and those in them are text."""
    for cells in _list_rows(table):
        inner = [cell.css_first("table") for cell in cells]
        rows = [
            [[_read_cell(cell, read_text) for cell in row] for row in _list_rows(node)]
            if node is not None
            else []
            for node in inner
        ]
        for node in filter(None, inner):
            node.decompose()
        yield from unfold_tables([_read_cell(cell, read_text) for cell in cells], rows)


def _list_rows(table: LexborNode) -> list[list[LexborNode]]:
    """Return the cells of each row as they are shown, the header first and the footer last, without
    those of nested tables.
    """
    rows: list[LexborNode] = []
    moved: dict[str, int] = {}
    waiting = list(table.iter())[::-1]
    while waiting:
        node = waiting.pop()
        kind = _find_kind(node)
        if kind == "tr":
            rows.append(node)
            if node.parent is not None:
                # Only the first header and the first footer are moved.
                moved.setdefault(node.parent.tag or "", node.parent.mem_id)
        elif kind != "table":
            waiting += list(node.iter())[::-1]
    places = {moved[tag]: place for tag, place in _GROUPS.items() if tag in moved}
    rows.sort(key=lambda row: places.get(row.parent.mem_id if row.parent else 0, 0))
    return [[cell for cell in row.iter() if _find_kind(cell) in _CELLS] for row in rows]


def _read_cell(node: LexborNode, read_text: _ReadText) -> Cell:
    # A cell that spans no row spans the rest of its group.
    rows = read_number(node.attributes.get("rowspan"), 1) or 100_000
    columns = read_number(node.attributes.get("colspan"), 1)
    return Cell(read_text(node), max(1, columns), max(1, rows), _find_kind(node) == "th")


def _find_kind(node: LexborNode) -> str:
    """Return the tag of an element of a table, or the one that its role corresponds to."""
    tag = node.tag or ""
    return tag if tag in _TAGS else _ROLES.get(node.attributes.get("role") or "", "")


def _is_layout(table: LexborNode) -> bool:
    """Return whether a table arranges sections or tables: its role says so, it has one column, or
    it has no headers, and tables beside each other in a row, or headings in its only row.
    """
    if not any(part.mem_id != table.mem_id for part in table.css(_ARRANGED)[:2]):
        return False
    rows = _list_rows(table)
    is_column = all(len(cells) < 2 for cells in rows)
    has_header = any(cell.tag == "th" for cell in chain(*rows))
    top = "table" if len(rows) > 1 else _ARRANGED
    has_cards = not has_header and any(
        sum(cell.css_first(top) is not None for cell in cells) > 1 for cells in rows
    )
    return is_column or has_cards or table.attributes.get("role") in ("presentation", "none")
