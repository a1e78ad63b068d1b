"""Reads the sheets of OpenDocument files; values are written as displayed."""

from collections.abc import Iterator
from dataclasses import replace
from string import ascii_uppercase
from xml.etree.ElementTree import Element

from knowledge.documents.decoding import clean_text
from knowledge.documents.notation import join_spans
from knowledge.documents.office.opendocument_styles import PLAIN, ColouredSpan
from knowledge.documents.office.opendocument_text import (
    HIDDEN,
    MOST_REPEATED,
    WHITE,
    BodyReader,
    list_rows,
)
from knowledge.documents.office.zipped_xml import (
    BACKGROUND,
    count,
    count_field_in_header,
    find_all,
    find_children,
    to_number,
)
from knowledge.documents.page import Block
from knowledge.documents.tables import (
    CONDITIONAL,
    MOST_COLUMNS,
    TOO_MANY_COLUMNS,
    SheetRow,
    close_gaps,
    fill_merged,
    write_named_sheet,
)

_FORMULA = ("formula", "the file stores no result of it: save it in LibreOffice")
_MOST_COPIES = 200_000
"""Maximum number of cells of repeated rows."""
_FIELDS_OF_PAGES = frozenset(
    {"sheet-name", "page-number", "page-count", "date", "time", "title", "file-name"}
)


class SheetReader(BodyReader):
    """Reads sheets one after the other."""

    _copies_left = _MOST_COPIES

    def read(self, body: Element) -> Iterator[Block]:
        """Yield the blocks of the visible sheets."""
        headers = list(_list_headers(body))
        for table in body.findall("table"):
            name = " ".join((table.get("name") or "Sheet").split())
            if self._styles.hides("table", table.get("style-name")):
                self.left_out.add("hidden sheet", HIDDEN, name=name)
                continue
            self._base = ColouredSpan(background=self._find_colour(table, name))
            headers_of_sheet = {row for sheet, row in headers if sheet == table.get("name")}
            self._drawn += table.findall("shapes/*")
            rows = self._sheet_rows(table)
            after = tuple(self._show_drawings())
            before = self._printed_headers(table)
            yield from write_named_sheet(name, rows, headers_of_sheet, before, after)

    def _printed_headers(self, table: Element) -> Iterator[Block]:
        """Yield the printed headers of the first sheet that has them; those with fields are
        counted.
        """
        name = self._styles.find("table", table.get("style-name"), "master-page-name")
        master = self._masters.pop(name, None)
        for line in list(find_all(master, "p")):
            parts = list(line.iter())
            if any(part.tag in _FIELDS_OF_PAGES for part in parts):
                literals = (line.text or "", *(part.tail or "" for part in parts[1:]))
                count_field_in_header(" ".join(literals), self.left_out)
                line.clear()
        return self._page_headers(() if master is None else [master])

    def _sheet_rows(self, table: Element) -> list[SheetRow]:
        columns = _list_columns(table)
        hidden = {at for at, column in columns.items() if _is_collapsed(column)}
        self.left_out.add("hidden column", HIDDEN, len(hidden))
        rows: list[SheetRow] = []
        merged: list[tuple[range, range]] = []
        number, hidden_rows = 1, 0
        for row, _ in list_rows(table):
            times = count(row, "number-rows-repeated")
            cells = self._sheet_cells(row, columns, number, merged)
            if _is_collapsed(row):
                self.left_out.add("hidden row", HIDDEN, times)
                hidden_rows += times
                number += times
                continue
            cells = {at: text for at, text in cells.items() if at not in hidden}
            if cells or row.find("covered-table-cell") is not None:
                shown = min(times, MOST_REPEATED, 1 + self._copies_left // max(1, len(cells)))
                self._copies_left -= (shown - 1) * len(cells)
                self.left_out.add("row", "further repetitions are not shown", times - shown)
                rows += (SheetRow(number + at, dict(cells), hidden_rows) for at in range(shown))
            number += times
        by_number = {row.number: row for row in rows}
        for spanned_rows, spanned_columns in merged:
            fill_merged(by_number, spanned_rows, spanned_columns)
        return close_gaps(rows, hidden)

    def _sheet_cells(
        self,
        row: Element,
        columns: dict[int, Element],
        number: int,
        merged: list[tuple[range, range]],
    ) -> dict[int, str]:
        """Return the texts of the row with a 1-based number; add its merged cells to `merged`."""
        cells: dict[int, str] = {}
        column = 0
        for cell in row:
            times = count(cell, "number-columns-repeated")
            if cell.tag == "table-cell":
                style = (
                    cell.get("style-name")
                    or row.get("default-cell-style-name")
                    or columns.get(column, row).get("default-cell-style-name")
                )
                text = self._sheet_cell(cell, style)
                own = range(column, min(column + times, MOST_COLUMNS)) if text else range(0)
                cells.update(dict.fromkeys(own, text))
                if text and column + times > MOST_COLUMNS:
                    self.left_out.add("cell", TOO_MANY_COLUMNS)
                spans = [count(cell, f"number-{name}-spanned") for name in ("rows", "columns")]
                if text and spans != [1, 1]:
                    merged.append(
                        (range(number, number + spans[0]), range(column, column + spans[1]))
                    )
            column += times
        return cells

    def _sheet_cell(self, cell: Element, style_name: str | None) -> str:
        """Return the text of a cell, or its value if the file does not contain its text."""
        style = self._styles.find_span("table-cell", style_name, self._base)
        if self._styles.has_conditions(style_name):
            style = replace(style, background="")
        text = self._cell(cell, style)
        if text or any("".join(line.itertext()).strip() for line in cell.iter("p")):
            return text
        kind = cell.get("value-type")
        if kind is None and cell.get("formula") is not None:
            self.left_out.add(*_FORMULA)
        stated = cell.get(f"{kind}-value") or cell.get("value") or ""
        value = replace(style, text=" ".join(clean_text(stated).split()))
        if value.text and self._styles.hides_value(style_name):
            self.left_out.add("value", "hidden by the number format")
            return ""
        if value.is_invisible():
            self.left_out.add("value", BACKGROUND)
            return ""
        return value.text.upper() if kind == "boolean" else join_spans([value])

    def _find_colour(self, table: Element, name: str) -> str:
        """Return the colour behind the cells of a sheet, or an empty text if it may depend on
        conditions; count those that strike out cells.
        """
        conditions = list(find_children(table.find("conditional-formats"), "conditional-format"))
        for condition in conditions:
            for rule in condition.findall("condition"):
                style = rule.get("apply-style-name", "").replace(" ", "_20_")
                if self._styles.find_span("table-cell", style, PLAIN).is_struck:
                    place = condition.get("target-range-address", name)
                    self.left_out.add(*CONDITIONAL, name=place)
        return "" if conditions else WHITE


def _list_headers(body: Element) -> Iterator[tuple[str, int]]:
    """Yield the sheet and the 1-based row of each header of a range, such as that of a filter."""
    for declared in body.iter("database-range"):
        first = declared.get("target-range-address", "").partition(":")[0]
        sheet, _, cell = first.rpartition(".")
        if declared.get("contains-header") != "false":
            name = sheet.removeprefix("$").removeprefix("'").removesuffix("'")
            yield name.replace("''", "'"), to_number(cell.lstrip("$" + ascii_uppercase))


def _list_columns(table: Element) -> dict[int, Element]:
    """Return the definitions of the columns of a table by their 0-based index."""
    columns: dict[int, Element] = {}
    at = 0
    for column in table.iter("table-column"):
        times = count(column, "number-columns-repeated")
        columns.update(dict.fromkeys(range(at, min(at + times, MOST_COLUMNS)), column))
        at += times
    return columns


def _is_collapsed(part: Element) -> bool:
    """Return whether a row or a column is hidden; one hidden only by a filter is still valid."""
    return part.get("visibility") == "collapse"
