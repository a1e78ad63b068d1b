"""Reads tables of HTML pages: rows and cells by tag or role; tells data from layout tables."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, takewhile

from selectolax.lexbor import LexborNode

from knowledge.documents.notation import read_number
from knowledge.documents.tables import Cell

_ReadText = Callable[[LexborNode], str]
_ROLES = {
    "table": "table", "grid": "table", "treegrid": "table", "row": "tr", "cell": "td",
    "gridcell": "td", "columnheader": "th", "rowheader": "th",
}  # fmt: skip
_TAGS = frozenset({"table", "tr", "td", "th"})
_CELLS = ("td", "th")
_GROUPS = {"thead": -1, "tfoot": 1}
_STRUCTURE = "h1, h2, h3, h4, h5, h6, pre, ul, ol, table"
_PARTS = frozenset(_STRUCTURE.split(", "))
_LISTS = frozenset({"ul", "ol"})
_NUMBER = r"(?:\d{1,3}\.){0,4}\d{1,3}[a-z]?|[a-zA-Z]|[ivxlc]{2,6}|[IVXLC]{2,6}"
_BULLET = "[-*\u2013\u2014\u2022\u00b7\u25aa\u25cf\u25e6]"
_MARK = re.compile(rf"[\u2018\u201c\u201e]?[(\[]?(?:{_NUMBER})[.)\]]{{1,2}}|{_BULLET}")
_Content = tuple[list[LexborNode], str]


def is_table(node: LexborNode) -> bool:
    """Return whether an element is a table and not a layout; one that only has the role of a table
    must have its whole text in cells.
    """
    if node.tag == "table":
        return not _is_layout(node)
    if _find_kind(node) != "table":
        return False
    cells = chain(*map(_list_cells, list_rows(node)))
    size = sum(len("".join(cell.text().split())) for cell in cells)
    return size == len("".join(node.text().split())) and node.css_first(_STRUCTURE) is None


def read_rows(rows: Iterable[LexborNode], read_text: _ReadText) -> Iterator[list[Cell]]:
    """Yield the cells of rows with their texts."""
    return ([_read_cell(cell, read_text) for cell in _list_cells(row)] for row in rows)


def list_rows(table: LexborNode) -> list[LexborNode]:
    """Return the rows of a table as they are shown, the header first and the footer last, without
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
    return rows


def list_plain_rows(row: LexborNode) -> list[LexborNode]:
    """Return a row of a layout table and those below it that have several cells and only text."""
    rows = [node for node in (row.parent or row).iter() if node.tag == "tr"]
    below = rows[next(at for at, node in enumerate(rows) if node.mem_id == row.mem_id) :]
    return list(takewhile(_is_plain, below))


def take_mark(row: LexborNode) -> str:
    """Return the mark of the list item that a row is, without its cell, or an empty string."""
    mark = _find_mark(_list_contents(row))
    if mark:
        next(cell for cell in _list_cells(row) if any(_look_into(cell))).decompose()
    return mark


def _list_cells(row: LexborNode) -> list[LexborNode]:
    return [cell for cell in row.iter() if _find_kind(cell) in _CELLS]


def _list_contents(row: LexborNode) -> list[_Content]:
    """Return what the cells of a row contain, except for empty cells."""
    return [content for content in map(_look_into, _list_cells(row)) if any(content)]


def _look_into(cell: LexborNode) -> _Content:
    """Return the outermost headings, code blocks, lists and tables in a cell, and other text."""
    parts: list[LexborNode] = []
    texts: list[str] = []
    waiting = [cell]
    while waiting:
        node = waiting.pop()
        if node.tag == "-text":
            texts.append(node.text_content or "")
        elif node.tag in _PARTS:
            parts.append(node)
        else:
            waiting += list(node.iter(include_text=True))[::-1]
    return parts, "".join(texts).strip()


def _find_mark(contents: Sequence[_Content]) -> str:
    """Return the mark of a list item if a row consists of one and of text, or an empty string."""
    if len(contents) != 2 or contents[0][0] or not _MARK.fullmatch(contents[0][1]):
        return ""
    return contents[0][1] if any(map(str.isalpha, contents[1][1])) else ""


def _is_plain(row: LexborNode) -> bool:
    contents = _list_contents(row)
    is_item = bool(_find_mark(contents))
    return len(contents) > 1 and not is_item and not any(parts for parts, _ in contents)


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
    """Return whether a table arranges the parts of a page, or is a list.

    It arranges parts if its role says so, if fewer than two of its rows have several cells, or if
    it has no headers, and tables beside each other or several parts in a cell.
    """
    rows = list_rows(table)
    contents = [content for content in map(_list_contents, rows) if content]
    if contents and all(map(_find_mark, contents)):
        return True
    if not any(parts for parts, _ in chain(*contents)):
        return False
    grid = [row for row in contents if len(row) > 1]
    is_marked = table.attributes.get("role") in ("presentation", "none")
    has_header = any(cell.tag == "th" for row in rows for cell in _list_cells(row))
    return is_marked or len(grid) < 2 or (not has_header and any(map(_has_sections, grid)))


def _has_sections(row: Sequence[_Content]) -> bool:
    parts = [[part for part in parts if not _is_list(part)] for parts, _ in row]
    tables = sum(any(part.tag == "table" for part in cell) for cell in parts)
    return tables > 1 or any(len(cell) > 1 for cell in parts)


def _is_list(part: LexborNode) -> bool:
    if part.tag != "table":
        return part.tag in _LISTS
    return all(_find_mark(row) for row in map(_list_contents, list_rows(part)) if row)
