import io
from datetime import date, datetime

import openpyxl

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
