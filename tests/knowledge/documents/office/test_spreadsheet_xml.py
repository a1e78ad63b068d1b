"""Workbooks in XML of Excel 2003 under the extension .xls; no library writes them."""

from knowledge.documents.office import xls
from knowledge.documents.page import Page

NAMESPACE = "urn:schemas-microsoft-com:office:spreadsheet"
STYLES = """<Styles><Style ss:ID="n"><NumberFormat ss:Format="00000"/></Style>
<Style ss:ID="s"><Font ss:StrikeThrough="1"/></Style><Style ss:ID="s2" ss:Parent="s"/>
<Style ss:ID="w"><Font ss:Color="#FFFFFF"/></Style><Style ss:ID="b" ss:Parent="w">
<Interior ss:Color="#1F3864" ss:Pattern="Solid"/></Style>
<Style ss:ID="d"><NumberFormat ss:Format="dd.mm.yyyy"/></Style></Styles>"""


def read(rows: str, more: str = "") -> Page:
    data = (
        f'<?xml version="1.0"?>\n<Workbook xmlns="{NAMESPACE}" xmlns:ss="{NAMESPACE}">{STYLES}'
        f'<Worksheet ss:Name="Stock"><Table>{rows}</Table></Worksheet>{more}</Workbook>'
    )
    return xls.read(data.encode(), "a.xls")


def cell(text: str, kind: str = "String", stated: str = "") -> str:
    return f'<Cell {stated}><Data ss:Type="{kind}">{text}</Data></Cell>'


HEADER = f"<Row>{cell('No.')}{cell('Place')}{cell('Qty')}{cell('Counted')}</Row>"


def test_values_stay_in_their_columns_as_the_sheet_shows_them() -> None:
    styled = 'ss:StyleID="{}"'.format
    plain = (
        cell("815", "Number", styled("n")),
        cell("40", "Number", 'ss:Index="3"'),
        cell("2026-02-01T00:00:00.000", "DateTime", styled("d")),
    )
    merged = (
        cell("816", "Number", styled("n")),
        cell("on order", stated='ss:MergeAcross="1"'),
        cell("old", stated=styled("s2")),
    )
    rows = "".join(f"<Row>{''.join(cells)}</Row>" for cells in (plain, merged))

    assert read(HEADER + rows).blocks[1].text.split("\n")[2:] == [
        "| 00815 |  | 40 | 01.02.2026 |",
        "| 00816 | on order | on order | ~~old~~ |",
    ]


def test_typefaces_in_a_cell_and_its_note_are_kept() -> None:
    note = '<Comment><Data>per <B xmlns="h">year</B></Data></Comment></Cell>'
    typed = cell('m<Sup xmlns="h">2</Sup>, <S xmlns="h">old</S> new').replace("</Cell>", note)

    assert (
        read(f"{HEADER}<Row>{typed}{cell('x')}</Row>")
        .blocks[1]
        .text.endswith("| m^2, ~~old~~ new [Note: per year] | x |  |  |")
    )


def test_hidden_rows_columns_and_sheets_and_formulas_without_a_result_are_counted() -> None:
    rows = (
        f'<Column ss:Index="2" ss:Span="1" ss:Hidden="1"/>{HEADER}'
        f'<Row ss:Hidden="1">{cell("7", "Number")}</Row>'
        f'<Row>{cell("815", "Number")}{cell("B")}<Cell ss:Index="4" ss:Formula="=1+1"/></Row>'
    )
    options = "<WorksheetOptions><Visible>SheetHidden</Visible></WorksheetOptions>"
    hidden = f'<Worksheet ss:Name="Old"><Table>{HEADER}</Table>{options}</Worksheet>'

    page = read(rows, hidden)

    assert "| 815 |  |" in page.content
    assert {(part.what, part.count) for part in page.left_out} == {
        ("hidden column", 2),
        ("hidden row", 1),
        ("formula", 1),
        ("hidden sheet", 1),
    }


def test_white_values_are_hidden_on_cells_without_a_colour() -> None:
    row = cell("margin", stated='ss:StyleID="w"') + cell("rent", stated='ss:StyleID="b"')

    page = read(f"{HEADER}<Row>{row}</Row>")

    assert page.blocks[1].text.split("\n")[-1] == "|  | rent |  |  |"
    assert [(part.what, part.count) for part in page.left_out] == [("value", 1)]
