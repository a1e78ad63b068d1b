"""Tables of a PDF whose cells are drawn: what stands inside the lines of a cell is its text."""

import io
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    FrameBreak,
    PageBreak,
    PageTemplate,
    Paragraph,
    Table,
)

from knowledge.documents.page import BlockKind, Page
from knowledge.documents.pdf import pdf_reader
from knowledge.documents.pdf.drawn_grids import find_grids
from knowledge.documents.pdf.page_text import Stroke
from tests.knowledge.documents.layouts import GRID, STYLES, TEXT, build

CENTRED = [*GRID, ("VALIGN", (0, 0), (-1, -1), "MIDDLE")]
CREW = "Call the charge hand, then the control room on line 5150, and write both in the blue log"
LINE_TABLE = [
    ("Pressure", "Valve", "Who is called"),
    ("1 to 3 bar", "stays open", "nobody"),
    ("4 bar", "is closed by half", CREW),
    ("5 bar or more", "is closed", "the fire brigade, at once, by the red telephone in the hall"),
]


def wrap(rows: Sequence[Sequence[str]]) -> list[list[Any]]:
    return [[Paragraph(cell, TEXT) for cell in row] for row in rows]


def read(data: bytes) -> Page:
    return pdf_reader.read(data, "a.pdf")


def list_tables(page: Page) -> list[str]:
    return [block.text for block in page.blocks if block.kind is BlockKind.TABLE]


def write_rows(rows: Sequence[Sequence[str]]) -> str:
    first, *others = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join((first, "|---" * len(rows[0]) + "|", *others))


def draw(paint: Callable[[Canvas], None]) -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    canvas.setFont("Helvetica", 10)
    paint(canvas)
    canvas.save()
    return file.getvalue()


def align(place: str) -> tuple[object, ...]:
    return ("VALIGN", (0, 0), (-1, -1), place)


def rule(kind: str, first: tuple[int, int], last: tuple[int, int]) -> tuple[object, ...]:
    return (kind, first, last, 1, colors.black)


HALLS = [
    ("Hall", "Shift", "Warden"), ("North hall, both floors", "early", "Ines Kraus"),
    ("", "late", "Paolo Riva"), ("South", "early", "Jan Novak"), ("closed on Sunday", "", ""),
]  # fmt: skip
STOPS = [("Stop", "Departs"), ("Harbour", "06:10"), ("Market", "06:25"), ("Mill", "06:40")]
DRAWN = {
    "cells at the top of their rows": (LINE_TABLE, [*GRID, align("TOP")], LINE_TABLE),
    "cells in the middle": (LINE_TABLE, [*GRID, align("MIDDLE")], LINE_TABLE),
    "cells at the bottom": (LINE_TABLE, [*GRID, align("BOTTOM")], LINE_TABLE),
    "no outer lines": (
        LINE_TABLE, [rule("INNERGRID", (0, 0), (-1, -1)), align("MIDDLE")], LINE_TABLE,
    ),
    "no line between rows": (
        STOPS,
        [rule("BOX", (0, 0), (-1, -1)), rule("LINEBELOW", (0, 0), (-1, 0)),
         rule("LINEAFTER", (0, 0), (0, -1))],
        STOPS,
    ),
    "a merged cell belongs to every row that it spans": (
        HALLS,
        [*CENTRED, ("SPAN", (0, 1), (0, 2)), ("SPAN", (0, 4), (2, 4))],
        [*HALLS[:2], ("North hall, both floors", "late", "Paolo Riva"), *HALLS[3:]],
    ),
    "two header rows below a merged cell are one": (
        [("Size", "Price", ""), ("", "inland", "abroad"), ("small", "4.10", "9.80")],
        [*CENTRED, ("SPAN", (1, 0), (2, 0)), ("SPAN", (0, 0), (0, 1))],
        [("Size", "Price inland", "Price abroad"), ("small", "4.10", "9.80")],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "style", "shown"), DRAWN.values(), ids=DRAWN)
def test_text_inside_the_borders_of_a_cell_belongs_to_it(
    rows: Sequence[Sequence[str]], style: list[Any], shown: Sequence[Sequence[str]]
) -> None:
    widths = [80, 90, 110][: len(rows[0])]

    page = read(build([Table(wrap(rows), colWidths=widths, style=style)]))

    assert list_tables(page) == [write_rows(shown)]


def make_long_rows() -> list[tuple[str, str, str]]:
    return [
        (f"Pump {n}", f"after {n} hours of service in the wet season", CREW) for n in range(1, 31)
    ]


@pytest.mark.parametrize("repeated", [0, 1])
def test_a_table_over_pages_has_its_header_on_each_whether_it_is_repeated_or_not(
    repeated: int,
) -> None:
    header = ("Pump", "Oil is changed", "Who is called")
    rows = [header, *make_long_rows()]

    page = read(
        build([Table(wrap(rows), colWidths=[60, 90, 110], style=CENTRED, repeatRows=repeated)])
    )

    tables = list_tables(page)
    assert len(tables) > 2
    assert {table.split("\n")[0] for table in tables} == {f"| {' | '.join(header)} |"}
    assert [row for table in tables for row in table.split("\n")[2:]] == [
        f"| {' | '.join(row)} |" for row in rows[1:]
    ]


def test_a_merged_cell_goes_on_with_its_rows_on_the_next_page() -> None:
    rows = [["Hall", "Locker"], ["North", ""], *[["", f"Locker {n}"] for n in range(1, 60)]]
    rows[1][1] = "Locker 0"
    style = [*GRID, ("VALIGN", (0, 0), (-1, -1), "TOP")]
    halves = (rows[:30], [["", row[1]] for row in rows[30:]])
    first, second = (
        Table(half, colWidths=100, style=[*style, ("SPAN", (0, begin), (0, -1))])
        for half, begin in zip(halves, (1, 0), strict=True)
    )

    page = read(build([first, PageBreak(), second]))

    assert [row for table in list_tables(page) for row in table.split("\n")[2:]] == [
        f"| North | Locker {n} |" for n in range(60)
    ]


def test_narrow_cells_are_parted_by_the_line_between_them() -> None:
    def paint(canvas: Canvas) -> None:
        for row, texts in enumerate((("Code", "Unit", "Load"), ("B17", "kN", "12.5"))):
            for column, text in enumerate(texts):
                left, bottom = 100 + 26 * column, 700 - 16 * row
                canvas.rect(left, bottom, 26, 16)
                canvas.drawString(left + 2, bottom + 4, text)

    assert list_tables(read(draw(paint))) == [
        write_rows([("Code", "Unit", "Load"), ("B17", "kN", "12.5")])
    ]


def test_a_table_in_a_column_stands_between_the_text_of_that_column() -> None:
    file = io.BytesIO()
    frames = [Frame(50, 50, 240, 750, id="left"), Frame(305, 50, 240, 750, id="right")]
    template = BaseDocTemplate(file, pagesize=A4)
    template.addPageTemplates([PageTemplate(frames=frames)])
    prose = "The pump house is inspected by two people, who sign the book at the gate. " * 5
    template.build(
        [
            Paragraph("Pumps", STYLES["Heading2"]),
            Paragraph(prose, TEXT),
            Table(wrap(LINE_TABLE), colWidths=[60, 70, 100], style=CENTRED),
            Paragraph(prose, TEXT),
            FrameBreak(),
            Paragraph("Gates", STYLES["Heading2"]),
            *[Paragraph(prose, TEXT) for _ in range(4)],
        ]
    )

    page = read(file.getvalue())

    assert list_tables(page) == [write_rows(LINE_TABLE)]
    assert [block.text for block in page.blocks if block.level] == ["Pumps", "Gates"]
    kinds = [block.kind for block in page.blocks]
    assert kinds[:4] == [BlockKind.HEADING, BlockKind.TEXT, BlockKind.TABLE, BlockKind.TEXT]


def test_the_lines_of_a_diagram_are_no_table() -> None:
    def paint(canvas: Canvas) -> None:
        canvas.grid([100 + 20 * at for at in range(12)], [400 + 20 * at for at in range(9)])
        canvas.drawString(140, 505, "flow")
        canvas.drawString(250, 445, "return")
        canvas.drawString(100, 380, "Flow and return over the day.")

    assert list_tables(read(draw(paint))) == []


def test_more_lines_than_a_table_has_are_a_drawing() -> None:
    strokes = [
        Stroke(is_vertical, 5.0 * at, 0.0, 5_000.0)
        for at in range(1_000)
        for is_vertical in (False, True)
    ]

    assert find_grids(strokes) == []


def test_rows_without_lines_are_rows_beside_a_cell_over_several_drawn_rows() -> None:
    style = [*GRID, ("SPAN", (0, 1), (0, 2)), ("VALIGN", (1, 1), (1, 1), "BOTTOM")]
    towns, people = "Atri\nCampli\nCanzano", "10,064\n6,630\n1,794"
    rows = [["Region", "Town", "People"], ["Abruzzo", towns, people], ["", "Total", "18,488"]]

    page = read(build([Table(rows, style=style)]))

    assert list_tables(page) == [
        write_rows([
            ("Region", "Town", "People"), ("Abruzzo", "Atri", "10,064"),
            ("Abruzzo", "Campli", "6,630"), ("Abruzzo", "Canzano", "1,794"),
            ("Abruzzo", "Total", "18,488"),
        ])
    ]  # fmt: skip


SHOP = [("Item", "Price"), ("Apple", "1.20"), ("Pear", "1.50"), ("Plum", "2.10")]
STAFF = [("Name", "Phone"), ("Kraus", "5150"), ("Riva", "5151"), ("Novak", "5152"),
         ("Weber", "5153"), ("Lang", "5154")]  # fmt: skip
ROOMS = [("Room", "Seats"), ("Atlas", "12"), ("Borneo", "8"), ("Ceylon", "20"), ("Delos", "6")]


def paint_table(
    canvas: Canvas, left: float, rows: Sequence[Sequence[str]], height: float, lines: str = "all"
) -> None:
    """Paint rows of two columns below 760 points; `lines` are all, rules or none."""
    rights = [left, left + 90, left + 150]
    tops = [760 - height * at for at in range(len(rows) + 1)]
    if lines == "all":
        canvas.grid(rights, tops)
    for top in (tops[0], tops[1], tops[-1]) if lines == "rules" else ():
        canvas.line(rights[0], top, rights[-1], top)
    for top, row in zip(tops[1:], rows, strict=True):
        for right, cell in zip(rights, row, strict=False):
            canvas.drawString(right + 3, top + 4, cell)


@pytest.mark.parametrize("gap", [0, 1.5])
@pytest.mark.parametrize("title", ["", "The shop and those who work there"])
def test_tables_that_touch_each_other_are_read_one_after_the_other(gap: float, title: str) -> None:
    tables = [(SHOP, 30.0), (STAFF, 20.0), (ROOMS, 24.0)]

    def paint(canvas: Canvas) -> None:
        for at, (rows, height) in enumerate(tables):
            paint_table(canvas, 60 + (150 + gap) * at, rows, height)
        if title:
            canvas.rect(60, 760, 450 + 2 * gap, 20)
            canvas.drawString(70, 766, title)

    page = read(draw(paint))

    assert list_tables(page) == [write_rows(rows) for rows, _ in tables]
    assert [block.text for block in page.blocks if block.kind is not BlockKind.TABLE] == [
        *filter(None, [title])
    ]


@pytest.mark.parametrize(("height", "lines"), [(24, "all"), (18, "none")])
def test_names_of_tables_next_to_each_other_are_above_their_tables(
    height: float, lines: str
) -> None:
    def paint(canvas: Canvas) -> None:
        for left, name in ((64, "Table A: the shop"), (304, "Table B: all who work")):
            canvas.drawString(left, 765, name)
        paint_table(canvas, 60, SHOP, 24, lines)
        paint_table(canvas, 300, STAFF, height, lines)

    page = read(draw(paint))

    expected = ("Table A: the shop", write_rows(SHOP), "Table B: all who work", write_rows(STAFF))
    assert [block.text for block in page.blocks] == [*expected]


@pytest.mark.parametrize("lines", ["rules", "none"])
def test_rows_at_different_heights_are_those_of_tables_next_to_each_other(lines: str) -> None:
    def paint(canvas: Canvas) -> None:
        paint_table(canvas, 60, SHOP, 24, lines)
        paint_table(canvas, 240, STAFF, 18, lines)

    assert list_tables(read(draw(paint))) == [write_rows(SHOP), write_rows(STAFF)]


def test_rows_of_a_form_with_shifted_cells_are_no_header_of_each_other() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    rows = [
        ((0, 3, "1 Sender", "Fjord AS"), (3, 6, "2 Receiver", "Le Goff")),
        ((0, 2, "3 Number", "DN 55"), (2, 4, "4 Order", "PO 77"), (4, 6, "5 Terms", "DAP")),
    ]
    for row, cells in enumerate(rows):
        for start, end, label, value in cells:
            left, top = 50 + 80 * start, 700 - 50 * row
            canvas.rect(left, top - 50, 80 * (end - start), 50)
            canvas.drawString(left + 4, top - 14, label)
            canvas.drawString(left + 4, top - 30, value)
    canvas.save()

    words = " ".join(pdf_reader.read(file.getvalue(), "a.pdf").content.split())

    shown = [text for cells in rows for *_, label, value in cells for text in (label, value)]
    assert [words.index(text) for text in shown] == sorted(words.index(text) for text in shown)


def test_a_text_that_runs_into_the_next_column_is_not_repeated_beside_the_value_there() -> None:
    rows = [("A1", "Travel", "601.30"), ("A2", "Travel", "304.30"), ("A3", "Travel", "697.00")]

    def paint(canvas: Canvas) -> None:
        canvas.grid([60, 120, 300, 400], [760, 740])
        canvas.rect(60, 640, 340, 100)
        for left, text in zip((64, 124, 304), ("No.", "Purpose", "Amount"), strict=True):
            canvas.drawString(left, 746, text)
        for at, row in enumerate(rows):
            for left, text in zip((64, 124, 360), row, strict=True):
                canvas.drawString(left, 726 - 30 * at, text)
            canvas.drawString(124, 714 - 30 * at, "of Ms Riva and Mr Novak by train and back")

    rest = "of Ms Riva and Mr Novak by train and back"
    assert list_tables(read(draw(paint))) == [
        write_rows([
            ("No.", "Purpose", "Amount"),
            *((number, f"{text} {rest}", value) for number, text, value in rows),
        ])
    ]  # fmt: skip


def test_boxes_of_a_form_whose_rows_interlock_are_shown_one_after_the_other_with_a_note() -> None:
    boxes = [
        (60, 700, 150, 60, ("Sender", "Harbour Tools Limited, Mill Street 5")),
        (210, 725, 150, 35, ("No. 4711",)), (60, 640, 150, 60, ("Receiver", "Mill Street 5")),
        (210, 680, 150, 45, ("Weight", "12 kg")), (210, 640, 150, 40, ("Parcels", "3")),
    ]  # fmt: skip

    def paint(canvas: Canvas) -> None:
        for left, bottom, width, height, texts in boxes:
            canvas.rect(left, bottom, width, height)
            for at, text in enumerate(texts):
                canvas.drawString(left + 4, bottom + height - 12 - 12 * at, text)

    page = read(draw(paint))

    assert [block.text for block in page.blocks] == [
        "Sender\nHarbour Tools Limited, Mill Street 5\nNo. 4711\nWeight\n12 kg\n"
        "Receiver\nMill Street 5\nParcels\n3"
    ]
    assert [(left_out.what, left_out.count) for left_out in page.left_out] == [
        ("table structure", 1)
    ]


def test_columns_of_prose_between_tables_of_the_page_are_no_rows() -> None:
    bees = [
        "The bees keep the hive warm in winter", "by moving the muscles of their wings,",
        "and they eat the honey that they made", "in the summer, about twenty kilograms",
        "in a hive of ten thousand bees until", "the first flowers open again in March.",
    ]  # fmt: skip
    wasps = [
        "The wasps of a nest do not survive the", "first frost, with the exception of the",
        "young queens, which spend the winter", "under the bark of a tree or in a roof",
        "and found a nest in the next spring,", "each of them alone and without a helper.",
    ]  # fmt: skip

    def paint(canvas: Canvas) -> None:
        for at in range(14):
            for column in range(8):
                canvas.drawString(60 + 60 * column, 700 - 14 * at, str(100 * at + column))
        for at, lines in enumerate(zip(bees, wasps, strict=True)):
            canvas.drawString(60, 460 - 12 * at, lines[0])
            canvas.drawString(300, 460 - 12 * at, lines[1])

    page = read(draw(paint))

    assert [block.text for block in page.blocks[1:]] == [" ".join(bees), " ".join(wasps)]


SALES = [("Revenue", ""), ("Europe", "120"), ("Asia", "80"), ("America", "95")]
PEOPLE = [("Employees", ""), ("Europe", "1,200"), ("Asia", "400"), ("Africa", "310")]
SENDER = [("Sender", ""), ("Harbour Tools Ltd", ""), ("Mill Street 5", ""), ("Leeds", "")]
RECIPIENT = [("Recipient", ""), ("Anna Weber", ""), ("Long Lane 17", ""), ("Munich", "")]


@pytest.mark.parametrize(("lefts", "is_filled"), [((60, 300), 0), ((60, 300), 1), ((60, 220), 0)])
@pytest.mark.parametrize("boxes", [(SALES, PEOPLE), (SENDER, RECIPIENT)])
def test_boxes_next_to_each_other_are_read_one_after_the_other(
    lefts: tuple[int, int], is_filled: int, boxes: tuple[list[tuple[str, str]], ...]
) -> None:
    def paint(canvas: Canvas) -> None:
        for left, rows in zip(lefts, boxes, strict=True):
            canvas.setFillGray(0.9)
            canvas.rect(left - 5, 690, 160, 70, fill=is_filled, stroke=1 - is_filled)
            canvas.setFillGray(0)
            paint_table(canvas, left, rows, 16, "none")

    page = read(draw(paint))

    shown = [text for rows in boxes for row in rows for text in row if text]
    assert page.content.replace("|", " ").replace("---", " ").split() == " ".join(shown).split()
    assert page.left_out == ()


def test_texts_in_the_middle_of_drawn_cells_belong_to_all_rows_and_columns_in_them() -> None:
    rows = [("Estonia", "46", "144"), ("Slovenia", "56", "130"), ("Switzerland", "64", "122")]

    def paint(canvas: Canvas) -> None:
        canvas.grid([60, 120, 220, 280], [760, 740, 720, 660])
        canvas.drawCentredString(170, 745, "Replies")
        for left, text in ((62, "Country"), (125, "2006"), (190, "2007"), (225, "Level")):
            canvas.drawString(left, 725, text)
        for at, (name, first, second) in enumerate(rows):
            canvas.drawString(62, 705 - 14 * at, name)
            canvas.drawRightString(150, 705 - 14 * at, first)
            canvas.drawRightString(210, 705 - 14 * at, second)
        canvas.drawString(225, 691, "Medium")

    (table,) = list_tables(read(draw(paint)))

    assert table.split("\n")[0] == "| Country | Replies 2006 | Replies 2007 | Level |"
    assert table.split("\n")[2:] == [f"| {' | '.join(row)} | Medium |" for row in rows]


@pytest.mark.parametrize("drawn", ["below", "above", "behind"])
def test_what_is_drawn_for_each_cell_shows_its_sides_if_no_line_is_between_columns(
    drawn: str,
) -> None:
    edges, heights = (50, 90, 260, 340), (720, 700, 660, 640)
    cells = [
        (54, 706, "No."), (94, 706, "Cover"), (264, 706, "Sum"),
        (54, 677, "1"), (94, 684, "Liability of the owner and"),
        (94, 670, "of all tenants in the house"),
        (264, 677, "5,000 euros"), (54, 646, "2"), (94, 646, "Fire"), (264, 646, "900 euros"),
    ]  # fmt: skip

    def paint(canvas: Canvas) -> None:
        for row in range(3):
            bottom, top = heights[row + 1], heights[row]
            for left, right in pairwise(edges):
                if drawn != "behind":
                    at = bottom if drawn == "below" else top
                    canvas.line(left, at, right, at)
                elif row == 1:
                    canvas.setFillGray(0.9)
                    canvas.rect(left, bottom, right - left, top - bottom, stroke=0, fill=1)
        canvas.setFillGray(0)
        canvas.drawString(
            50, 760, "The contract has the following parts, all of which are listed here."
        )
        for left, base, text in cells:
            canvas.drawString(left, base, text)
        canvas.drawString(50, 610, "Sums in euros, as of 2 May, without the tax on insurances.")

    page = read(draw(paint))

    assert list_tables(page) == [
        write_rows([
            ["No.", "Cover", "Sum"],
            ["1", "Liability of the owner and of all tenants in the house", "5,000 euros"],
            ["2", "Fire", "900 euros"],
        ])
    ]  # fmt: skip
    assert page.blocks[0].text.endswith("listed here.")
    assert page.blocks[-1].text.startswith("Sums in euros")


def test_lines_of_cells_that_meet_at_other_places_are_those_of_another_table() -> None:
    def paint(canvas: Canvas) -> None:
        for edges, heights in (
            ((50, 150, 300), (700, 680, 660)),
            ((50, 220, 300), (620, 600, 580)),
        ):
            for at, (left, right) in ((at, side) for at in heights for side in pairwise(edges)):
                canvas.line(left, at, right, at)
        for at, text in enumerate(("Town", "Atri", "Sum", "Fire")):
            canvas.drawString(54, (686, 666, 606, 586)[at], text)
        for at, text in enumerate(("People", "12", "Euros", "900")):
            canvas.drawString((154, 154, 224, 224)[at], (686, 666, 606, 586)[at], text)
        canvas.drawString(50, 636, "Insured")

    page = read(draw(paint))

    assert list_tables(page) == [
        write_rows([["Town", "People"], ["Atri", "12"]]),
        write_rows([["Sum", "Euros"], ["Fire", "900"]]),
    ]
