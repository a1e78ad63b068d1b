"""Typed tables and broken lines keep their values apart, in the columns that people see."""

import io

import docx
import pptx
import pytest
from docx.document import Document as WordDocument
from docx.shared import Cm

from knowledge.documents.office import docx as docx_reader
from knowledge.documents.office import opendocument
from knowledge.documents.office import pptx as pptx_reader
from knowledge.documents.page import LeftOutCounts, Page
from knowledge.documents.symbols import write_bullet
from knowledge.documents.tabbed_lines import TabbedLine, write_tabbed_lines
from knowledge.documents.tables import Cell, write_table


def read(document: WordDocument) -> Page:
    file = io.BytesIO()
    document.save(file)
    return docx_reader.read(file.getvalue(), "a.docx")


def add(document: WordDocument, *lines: str, stops: int = 0, bold: bool = False) -> None:
    for line in lines:
        paragraph = document.add_paragraph()
        paragraph.add_run(line).bold = bold
        for stop in range(stops):
            paragraph.paragraph_format.tab_stops.add_tab_stop(Cm(3 * stop + 3))


def test_a_missing_value_between_tab_stops_is_an_empty_cell() -> None:
    document = docx.Document()
    add(document, "Item\tEach\t100 pieces\tPallet", stops=3, bold=True)
    add(document, "B-203\t1.95\t149.00\t11 890.00", "B-204\t2.45\t\t14 250.00", stops=3)

    assert read(document).content == (
        "| Item | Each | 100 pieces | Pallet |\n|---|---|---|---|\n"
        "| B-203 | 1.95 | 149.00 | 11 890.00 |\n| B-204 | 2.45 |  | 14 250.00 |"
    )


def test_lines_with_unequal_tabs_and_without_stops_are_text_and_reported() -> None:
    document = docx.Document()
    add(document, "B-203\t1.95\t149\t11 890", "B-204\t2.45\t\t14 250")

    page = read(document)

    assert page.content == "B-203; 1.95; 149; 11 890\n\nB-204; 2.45; 14 250"
    assert [(one.what, one.count) for one in page.left_out] == [("table structure", 2)]


@pytest.mark.parametrize(
    "lines",
    [
        ["1.\tThe tenant pays the rent.", "2.\tThe landlord heats the rooms."],
        ["Tenant:\tMaria Berg", "Landlord:\tHaus GmbH"],
        [f"(1)\ta)\t{'The tenant pays. ' * 5}1".strip()] * 2,
    ],
)
def test_numbered_clauses_and_labels_with_a_tab_are_text(lines: list[str]) -> None:
    document = docx.Document()
    add(document, *lines)

    assert read(document).content.split("\n\n") == [line.replace("\t", " ") for line in lines]


def test_broken_lines_of_a_paragraph_and_of_a_cell_stay_apart() -> None:
    document = docx.Document()
    add(document, "Mill Street 5\n10115 Berlin", "Room 101 \t 250")
    table = document.add_table(2, 2)
    table.cell(0, 0).text = "Item"
    cell = table.cell(1, 1)
    cell.text = "7\n350"
    cell.add_paragraph("20")

    assert read(document).content.startswith("Mill Street 5\n10115 Berlin\n\nRoom 101; 250\n\n")
    assert "7; 350; 20" in read(document).content


def test_values_that_are_stacked_in_cells_stay_beside_their_labels() -> None:
    rows = [(Cell("Item"), Cell("Price")), (Cell("Rent\nHeating"), Cell("500\n80")),
            (Cell("Deposit\nKeys"), Cell("3 rents\n2\n1"))]  # fmt: skip

    (block,) = write_table(rows)

    assert block.text.split("\n")[2:] == [
        "| Rent | 500 |", "| Heating | 80 |", "| Deposit Keys | 3 rents 2; 1 |",
    ]  # fmt: skip


def test_what_is_repeated_for_stacked_lines_and_for_tab_stops_is_bounded() -> None:
    many = "\n".join(["1"] * 5_000)
    stacked = [(Cell("A"), Cell("B"), Cell("C")), (Cell(many), Cell(many), Cell("note " * 500))]
    wide = TabbedLine("\t".join("1" * 5_000), stops=5_000)
    rows = [wide, *[TabbedLine("a\t1", stops=5_000)] * 500]

    sizes = [len(block.text) for block in write_table(stacked)]
    typed = sum(len(block.text) for block in write_tabbed_lines(rows, LeftOutCounts()))

    assert max(sizes) < 60_000
    assert typed < 60_000


def test_typed_tables_and_broken_lines_of_slides_and_open_documents_are_read_alike() -> None:
    presentation = pptx.Presentation()
    slide = presentation.slides.add_slide(presentation.slide_layouts[6])
    slide.shapes.add_textbox(
        0, 0, 9, 9
    ).text_frame.text = "Mill Street 5\v10115 Berlin\nWeek\tRoom 1\tRoom 2\nMonday\t10\t20"
    file = io.BytesIO()
    presentation.save(file)
    paragraphs = "".join(
        f"<text:p>{line}</text:p>"
        for line in (
            "Mill\nStreet 5<text:line-break/>10115 Berlin",
            "Week<text:tab/>Room 1<text:tab/>Room 2",
            "Monday<text:tab/>10<text:tab/>20",
        )
    )
    names = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "text")
    )
    body = f"<office:body><office:text>{paragraphs}</office:text></office:body>"
    flat = f"<office:document{names}>{body}</office:document>"

    pages = (
        pptx_reader.read(file.getvalue(), "a.pptx"),
        opendocument.read(flat.encode(), "a.fodt"),
    )

    for page in pages:
        assert page.content.endswith(
            "Mill Street 5\n10115 Berlin\n\n"
            "| Week | Room 1 | Room 2 |\n|---|---|---|\n| Monday | 10 | 20 |"
        )


def test_bullets_that_are_check_marks_or_crosses_stay() -> None:
    assert [write_bullet(text, "Wingdings") for text in ("\u00fc", "\uf0fb", "\uf0a7")] == [
        "- ✓", "- ✗", "-",
    ]  # fmt: skip
    assert [write_bullet(text, "Arial") for text in ("☐", "•", "")] == ["- ☐", "-", "-"]
