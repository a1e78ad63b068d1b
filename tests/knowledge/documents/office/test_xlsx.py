import io
import zipfile
from datetime import date, datetime

import openpyxl
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart
from openpyxl.comments import Comment
from openpyxl.formatting.rule import Rule
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.styles.differential import DifferentialStyle
from openpyxl.styles.numbers import NumberFormat
from openpyxl.worksheet.filters import AutoFilter, FilterColumn
from openpyxl.worksheet.table import Table

from knowledge.documents.office import xlsx
from knowledge.documents.page import BlockKind, Page


def read(workbook: openpyxl.Workbook) -> Page:
    file = io.BytesIO()
    workbook.save(file)
    return xlsx.read(file.getvalue(), "a.xlsx")


def workbook_of(*rows: tuple[object, ...], title: str = "Prices") -> openpyxl.Workbook:
    workbook = openpyxl.Workbook()
    workbook.active.title = title
    for row in rows:
        workbook.active.append(row)
    return workbook


def test_numbers_on_separate_lines_of_a_cell_stay_apart() -> None:
    workbook = workbook_of(("Item", "Rooms"), ("North wing", "7\n350"), ("South wing", "1\r\n20"))
    workbook.active["B3"].number_format = "@"

    assert read(workbook).content.endswith("| North wing | 7; 350 |\n| South wing | 1; 20 |")


def test_a_letter_in_a_typeface_of_symbols_is_its_symbol() -> None:
    rows = (("Service", "Included"), ("Flight", "\u00fc"), ("Hotel", "\u00fb"), ("Fee", -5))
    workbook = workbook_of(*rows)
    for cell, name in (("B2", "Wingdings"), ("B3", "Wingdings"), ("B4", "Symbol")):
        workbook.active[cell].font = Font(name=name)

    assert read(workbook).content.endswith("| Flight | ✓ |\n| Hotel | ✗ |\n| Fee | -5 |")


def test_a_sheet_is_a_section_whose_rows_stand_below_their_header() -> None:
    rows = [(f"Item {number}", number) for number in range(1, 13)]

    page = read(workbook_of(("Name", "Price"), *rows, title="All prices"))

    heading, first, second = page.blocks
    assert (heading.kind, heading.text) == (BlockKind.HEADING, "All prices")
    assert first.text.startswith("| Name | Price |\n|---|---|\n| Item 1 | 1 |")
    assert second.text == "| Name | Price |\n|---|---|\n| Item 11 | 11 |\n| Item 12 | 12 |"
    assert (first.anchor, second.anchor) == (
        "sheet=All%20prices&row=2-11",
        "sheet=All%20prices&row=12-13",
    )


def test_values_are_written_as_the_sheet_shows_them() -> None:
    workbook = workbook_of(("Day", "Share", "Fee", "At", "Ok"))
    moment = datetime(2026, 3, 1, 9, 30)  # noqa: DTZ001 - a sheet knows no time zones
    workbook.active.append((date(2026, 3, 1), 0.19, 1234.5, moment, True))
    workbook.active["B2"].number_format = "0%"
    share = DifferentialStyle(numFmt=NumberFormat(14, "0.00%"))
    rule = Rule(type="expression", dxf=share, formula=["$B2>1"])
    workbook.active.conditional_formatting.add("A2", rule)
    workbook.active["A2"].number_format = "mm-dd-yy"
    workbook.active["C2"].number_format = "#,##0.00 [$€-407]"

    page = read(workbook)

    assert page.blocks[1].text.endswith(
        "| 2026-03-01 | 19% | 1,234.50 € | 2026-03-01 9:30:00 | TRUE |"
    )


def test_a_merged_cell_belongs_to_every_row_that_it_spans() -> None:
    workbook = workbook_of(("Plan", "Users"), ("Basic", 1), (None, 2))
    workbook.active.merge_cells("A2:A3")

    assert read(workbook).blocks[1].text.endswith("| Basic | 1 |\n| Basic | 2 |")


def test_text_above_a_table_is_not_a_row_and_an_empty_row_begins_another_table() -> None:
    workbook = workbook_of(
        ("Prices of 2026",), ("Name", "Price"), ("A", 1), (), ("Country", "Tax"), ("DE", 19)
    )

    texts = [block.text for block in read(workbook).blocks]

    assert texts == [
        "Prices",
        "Prices of 2026",
        "| Name | Price |\n|---|---|\n| A | 1 |",
        "| Country | Tax |\n|---|---|\n| DE | 19 |",
    ]


def test_hidden_sheets_rows_and_columns_are_left_out_with_a_note() -> None:
    workbook = workbook_of(("Name", "Cost", "Price"), ("A", 1, 2), ("B", 3, 4))
    workbook.active.column_dimensions["B"].hidden = True
    workbook.active.row_dimensions[3].hidden = True
    workbook.create_sheet("Secret").append(("Key", "Value"))
    workbook["Secret"].sheet_state = "hidden"

    page = read(workbook)

    assert "Secret" not in page.content
    assert page.blocks[1].text == "| Name | Price |\n|---|---|\n| A | 2 |"
    assert [str(part) for part in page.left_out] == [
        "1 hidden column left out: hidden in the workbook",
        "1 hidden row left out: hidden in the workbook",
        "1 hidden sheet left out (Secret): hidden in the workbook",
    ]


def test_a_hidden_column_does_not_divide_a_table() -> None:
    workbook = workbook_of(
        ("Group", None, None, None),
        ("Name", "Size", "Cost", "Price"),
        ("A", 1, 2, 3),
        ("B", 4, 5, 6),
    )
    workbook.active.column_dimensions["C"].hidden = True

    assert read(workbook).blocks[-1].text.endswith("| A | 1 | 3 |\n| B | 4 | 6 |")


def test_rows_that_the_filter_of_a_table_hides_are_read() -> None:
    workbook = workbook_of(("Name", "State"), ("A", "open"), ("B", "closed"))
    condition = AutoFilter(ref="A1:B3", filterColumn=[FilterColumn(colId=1)])
    workbook.active.add_table(Table(displayName="Cases", ref="A1:B3", autoFilter=condition))
    workbook.active.row_dimensions[3].hidden = True

    page = read(workbook)

    assert page.blocks[1].text == "| Name | State |\n|---|---|\n| A | open |\n| B | closed |"


def test_the_first_row_of_a_table_or_a_filter_is_its_header() -> None:
    rows = [("Created", "2026-05-01"), ("Month", "2026-01"), ("Rent", "700"), ("Water", "40")]
    declared, filtered, merged = (workbook_of(*rows) for _ in range(3))
    declared.active.add_table(Table(displayName="Costs", ref="A2:B4"))
    filtered.active.auto_filter.ref = "A2:B4"
    merged.active["A1"] = "2026"
    merged.active.merge_cells("A1:B1")
    merged.active.auto_filter.ref = "A2:B4"

    table = "| Month | 2026-01 |\n|---|---|\n| Rent | 700 |\n| Water | 40 |"
    assert read(declared).blocks[-1].text == table
    assert read(filtered).blocks[-1].text == table
    assert read(merged).blocks[-1].text == table


def test_only_the_struck_out_part_of_a_text_is_marked() -> None:
    valid = TextBlock(InlineFont(strike=False), " 380 €")
    workbook = workbook_of(("Part", "Price"), ("Valve", CellRichText("400", valid)))
    workbook.active["B2"].font = Font(strike=True, vertAlign="superscript")

    assert read(workbook).blocks[1].text.endswith("| Valve | ~~400~~ 380 € |")


def test_a_date_in_iso_8601_is_written_in_its_format() -> None:
    workbook = workbook_of(("Start", "End"), (date(2026, 3, 1), date(2026, 12, 24)))
    workbook.active["B2"].number_format = "d mmmm yyyy"
    workbook.iso_dates = True

    assert read(workbook).blocks[1].text.endswith("| 2026-03-01 | 24 December 2026 |")


def test_the_merged_labels_of_a_form_are_not_joined_to_one_header() -> None:
    form = workbook_of(("Number", None, "LN-87"), ("Customer", None, "Øst"), ("Weight", None, 12.4))
    for row in "123":
        form.active.merge_cells(f"A{row}:B{row}")

    lines = read(form).blocks[1].text.split("\n")

    assert "| Number | Number | LN-87 |" in lines
    assert "| Customer | Customer | Øst |" in lines


def test_merged_years_above_labels_are_part_of_the_header() -> None:
    rows = [("Region", 2023, None), (None, "Q1", "Q2"), ("North", 1, 2), ("South", 3, 4)]
    workbook = workbook_of(*rows)
    workbook.active.merge_cells("A1:A2")
    workbook.active.merge_cells("B1:C1")

    assert read(workbook).blocks[1].text.startswith("| Region | 2023 Q1 | 2023 Q2 |\n|---")


def test_conditions_that_change_how_cells_look_are_reported() -> None:
    workbook = workbook_of(("Task", "State"), ("Paint", "done"), ("Sweep", "open"))
    struck = DifferentialStyle(font=Font(strike=True))
    rule = Rule(type="expression", dxf=struck, formula=['$B2="done"'])
    workbook.active.conditional_formatting.add("A2:B3", rule)

    assert [str(part) for part in read(workbook).left_out] == [
        "1 conditional format left out (Prices!A2:B3): conditions are not evaluated: the workbook "
        "may colour values, strike them out, hide them or show them in another form"
    ]


@pytest.mark.parametrize(
    ("reference", "other", "shown"),
    [
        ('r="D2"', 'r="E2"', "| Mon | Ada | [Note: closed] |"),
        ('r="9"><c r="A9"', 'r="8"><c r="A8"', "[Note: closed]"),
    ],
)
def test_a_note_on_a_cell_that_the_file_does_not_contain_is_read(
    reference: str, other: str, shown: str
) -> None:
    workbook = workbook_of(("Day", "Duty"), ("Mon", "Ada"))
    workbook.active[reference.split('"')[-2]].comment = Comment("closed", "a")

    assert read_changed(workbook, reference, other).content.endswith(shown)


def test_the_addresses_of_links_are_kept_with_their_labels() -> None:
    workbook = workbook_of(("Part", "Sheet"), ("P-1", "Data sheet"))
    workbook.active["B2"].hyperlink = "https://plant.example/p1.pdf"
    workbook.active["B3"] = 'price list"&A1'
    cell = '<c r="B3" t="inlineStr"><f>HYPERLINK("https://plant.example/","List")</f>'

    page = read_changed(workbook, '<c r="B3" t="inlineStr">', cell)

    assert set(page.links) == {
        ("Data sheet", "https://plant.example/p1.pdf"), ('price list"&A1', "https://plant.example/")
    }  # fmt: skip


def test_rows_and_columns_of_a_collapsed_group_are_read_and_other_hidden_ones_are_not() -> None:
    workbook = workbook_of(("Cost", "Place", "Note"), ("Rent", "Berlin", "x"), ("Tax", "Bonn", "y"))
    workbook.active.row_dimensions.group(2, hidden=True)
    workbook.active.row_dimensions[3].hidden = True
    workbook.active.column_dimensions.group("B", hidden=True)

    assert read(workbook).content.endswith("| Rent | Berlin | x |")


def read_changed(workbook: openpyxl.Workbook, old: str, new: str) -> Page:
    """Read a workbook in which a part is renamed, or text of its sheets, drawings or styles is
    replaced."""
    file, changed = io.BytesIO(), io.BytesIO()
    workbook.save(file)
    with zipfile.ZipFile(file) as parts, zipfile.ZipFile(changed, "w") as archive:
        for name in parts.namelist():
            data = parts.read(name)
            is_changed = any(part in name for part in ("sheets/", "drawing1.xml", "styles.xml"))
            text = data.replace(old.encode(), new.encode()) if is_changed else data
            archive.writestr(name.replace(old, new), text)
    return xlsx.read(changed.getvalue(), "a.xlsx")


@pytest.mark.parametrize(("cells", "shown"), [("FFFFFF", ["Sale"]), ("1F3864", ["Old", "Sale"])])
def test_white_text_of_a_shape_is_hidden_where_only_white_can_be_behind_it(
    cells: str, shown: list[str]
) -> None:
    def shape(text: str, fill: str) -> str:
        white = '<a:solidFill><a:schemeClr val="bg1"/></a:solidFill>'
        return (
            f'<oneCellAnchor xmlns:a="a"><sp><spPr>{fill}</spPr><txBody><a:p><a:r><a:rPr>{white}'
            f"</a:rPr><a:t>{text}</a:t></a:r></a:p></txBody></sp></oneCellAnchor>"
        )

    workbook = workbook_of(("Name", "Price"), ("A", 1))
    workbook.active["A1"].fill = PatternFill("solid", fgColor=cells)
    workbook.active.add_chart(BarChart())
    dark = '<a:solidFill><a:srgbClr val="1F3864"/></a:solidFill>'
    light = '<a:solidFill><a:schemeClr val="lt1"/></a:solidFill>'
    drawn = shape("Old", "<a:noFill/>") + shape("Sale", dark) + shape("Older", light)

    page = read_changed(workbook, "<oneCellAnchor>", f"{drawn}<oneCellAnchor>")

    assert [block.text for block in page.blocks[2:]] == shown
    assert ("hidden passage", 3 - len(shown)) in [(part.what, part.count) for part in page.left_out]


def test_escaped_characters_are_no_text_and_results_that_nobody_calculated_no_values() -> None:
    workbook = workbook_of(("Item", "Total"), ("Pipe_x000D_\nlong", "=4*12.50"))

    page = read_changed(workbook, "</f>", "</f><v>0</v>")

    assert page.blocks[1].text.endswith("| Pipe long |  |")
    assert [(part.what, part.count) for part in page.left_out] == [("formula", 1)]


def test_names_of_parts_are_equal_regardless_of_case() -> None:
    page = read_changed(workbook_of(("Name", "Place"), ("A", "Jena")), "sheet1", "Sheet1")

    assert "| A | Jena |" in page.content


def test_only_columns_in_use_count_towards_the_limit() -> None:
    workbook = workbook_of(("Name", *range(1, 500)), ("A",))
    workbook.active.cell(2, 16_000, "far away")
    workbook.active.cell(1, 499).value = None

    page = read(workbook)

    assert page.content.endswith("| far away |")
    assert not page.left_out
    workbook.active.cell(2, 16_001, "beyond")
    assert [(part.what, part.count) for part in read(workbook).left_out] == [("cell", 1)]


def test_values_in_the_colour_of_their_cells_are_hidden_unless_a_condition_may_change_it() -> None:
    workbook = workbook_of(("Flat", "Rent"), ("1A", 640), ("margin", 18), ("deposit", 2))
    dark = DifferentialStyle(fill=PatternFill(bgColor="1F3864"))
    rule = Rule(type="expression", dxf=dark, formula=["TRUE"])
    workbook.active.conditional_formatting.add("A4:B4", rule)
    for place in ("A1", "B1", "A3", "B3", "A4", "B4"):
        workbook.active[place].font = Font(color="FFFFFF")
    for place in ("A1", "B1"):
        workbook.active[place].fill = PatternFill("solid", fgColor="1F3864")
    workbook.active["C2"] = "margin 21"
    workbook.active["C2"].font = Font(color="1F3864")
    workbook.active["C2"].fill = PatternFill("solid", fgColor="1F3864")

    page = read(workbook)

    tables = [block.text.split("\n")[2:] for block in page.blocks[1:]]
    assert tables == [["| 1A | 640 |"], ["| deposit | 2 |"]]
    assert page.blocks[1].text.startswith("| Flat | Rent |")
    assert ("value", 3) in [(part.what, part.count) for part in page.left_out]


def test_check_boxes_in_cells_are_shown() -> None:
    workbook = workbook_of(("Task", "Done", "Valid"), ("Paint", True, True))
    workbook.active["B2"].alignment = Alignment(horizontal="center")

    page = read_changed(workbook, 'alignment horizontal="center"', 'xfComplement i="0"')

    assert page.content.endswith("| Paint | ☑ | TRUE |")


def test_a_white_part_of_a_text_on_a_white_cell_is_hidden() -> None:
    white = TextBlock(InlineFont(color="FFFFFF"), " (margin 18)")
    workbook = workbook_of(("Flat", "Rent"), ("1A", "x"), ("2B", "x"))
    for place in ("B2", "B3"):
        workbook.active[place] = CellRichText("640", white)
    workbook.active["B3"].fill = PatternFill("solid", fgColor="1F3864")

    page = read(workbook)

    assert page.content.endswith("| 1A | 640 |\n| 2B | 640 (margin 18) |")
    assert [(part.what, part.count) for part in page.left_out] == [("hidden passage", 1)]


def test_printed_headers_are_read_and_those_with_fields_are_counted() -> None:
    workbook = workbook_of(("Name", "Price"), ("A", 1))
    workbook.active.oddHeader.left.text = "QP-114 R&&D"
    workbook.active.oddHeader.left.size = 12
    workbook.active.oddFooter.center.text = "Page &P of &N"

    page = read(workbook)

    assert page.blocks[1].text == "QP-114 R&D"
    assert [(part.what, part.count) for part in page.left_out] == [("printed header", 1)]
