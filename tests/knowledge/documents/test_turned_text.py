"""Pages of a PDF that are turned, and text that runs up or down on a page."""

import io

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

from knowledge.documents.page import BlockKind
from knowledge.documents.pdf import pdf_reader
from knowledge.documents.pdf.page_text import find_turn, turn_page
from tests.knowledge.documents.printing import file_of

WIDTH, HEIGHT = A4
ROWS = (("Radius", "Boom 12 m", "Boom 20 m"), ("4 m", "18.5", "14.0"), ("8 m", "9.6", "8.1"))


def print_turned(drawn: int, stated: int, note: str = "") -> bytes:
    """Return a page drawn turned by `drawn` degrees, with a stated turn and an upright note."""
    file = io.BytesIO()
    # reportlab exchanges the sides of a page that is turned by 90 or 270 degrees.
    canvas = Canvas(file, pagesize=A4 if stated in (0, 180) else A4[::-1])
    canvas.setPageRotation(stated)
    canvas.saveState()
    canvas.translate(
        {90: WIDTH, 180: WIDTH}.get(drawn, 0), {180: HEIGHT, 270: HEIGHT}.get(drawn, 0)
    )
    canvas.rotate(drawn)
    canvas.setFont("Helvetica-Bold", 18)
    canvas.drawString(50, 500, "Load chart")
    canvas.setFont("Helvetica", 10)
    canvas.drawString(50, 470, "The table shows the greatest load in tonnes.")
    for line, row in enumerate(ROWS):
        for column, cell in enumerate(row):
            canvas.drawString(50 + 110 * column, 430 - 18 * line, cell)
    canvas.restoreState()
    canvas.drawString(200, 400, note)
    canvas.save()
    return file.getvalue()


@pytest.mark.parametrize(("drawn", "stated"), [(90, 90), (90, 0), (270, 270), (180, 180), (0, 90)])
def test_a_turned_page_is_read_as_an_upright_one(drawn: int, stated: int) -> None:
    page = pdf_reader.read(print_turned(drawn, stated), "a.pdf")

    assert [block.text for block in page.blocks] == [
        "Load chart",
        "The table shows the greatest load in tonnes.",
        "| Radius | Boom 12 m | Boom 20 m |\n|---|---|---|\n| 4 m | 18.5 | 14.0 |\n"
        "| 8 m | 9.6 | 8.1 |",
    ]
    assert page.blocks[0].kind is BlockKind.HEADING
    assert {block.anchor for block in page.blocks} == {"page=1"}


def test_text_in_another_direction_stands_behind_the_text_of_the_page() -> None:
    page = pdf_reader.read(print_turned(90, 0, note="Printed in Gdynia on recycled paper."), "a")

    assert page.blocks[0].text == "Load chart"
    assert page.blocks[-1].text == "Printed in Gdynia on recycled paper."


@pytest.mark.parametrize(
    ("turn", "along", "rise", "point"),
    [
        (0, 1, 0.01, (10, 30)),
        (90, 0, 2, (30, 90)),
        (180, -1, 0, (90, 170)),
        (270, 0.1, -1, (170, 10)),
    ],
)
def test_a_place_is_turned_with_the_direction_of_its_text(
    turn: int, along: float, rise: float, point: tuple[float, float]
) -> None:
    size = (100.0, 200.0)

    assert find_turn(along, rise) == turn
    assert turn_page(turn, size).on_point(10, 30) == pytest.approx(point)
    turned = (200, 100) if turn in (90, 270) else size
    assert turn_page(turn, size).on_rect(0, 0, *size) == pytest.approx((0, 0, *turned))


def test_text_that_is_drawn_askew_stands_behind_the_rows_that_it_crosses() -> None:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    for row, (label, value) in enumerate(
        (("Power", "250 W"), ("Length", "80 mm"), ("Seal", "IP 54"))
    ):
        canvas.drawString(60, 700 - 20 * row, label)
        canvas.drawString(200, 700 - 20 * row, value)
    canvas.setFont("Helvetica", 60)
    canvas.setFillGray(0.8)
    canvas.translate(80, 560)
    canvas.rotate(45)
    canvas.drawString(0, 0, "DRAFT")
    canvas.save()

    table, mark = pdf_reader.read(file.getvalue(), "a.pdf").blocks

    assert table.text.splitlines()[2:] == [
        "| Power | 250 W |",
        "| Length | 80 mm |",
        "| Seal | IP 54 |",
    ]
    assert (mark.kind, mark.text) == (BlockKind.TEXT, "DRAFT")


def test_letters_of_a_negative_size_in_a_turned_drawing_are_upright() -> None:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    canvas.drawString(60, 700, "Partner's share of income")
    text = canvas.beginText()
    text.setTextTransform(-1, 0, 0, -1, 60, 680)
    text.setFont("Helvetica", -12)
    text.textOut("of the year 2022")
    canvas.drawText(text)
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert page.content == "Partner's share of income of the year 2022"


def test_columns_of_japanese_letters_down_the_page_have_an_unclear_order() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))
    canvas.setFont("HeiseiMin-W3", 12)
    for at, letter in enumerate("休憩は正午から一時間とする"):
        canvas.drawString(500 - 24 * (at // 7), 700 - 12 * (at % 7), letter)
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert [part.what for part in page.left_out] == ["reading order"]


def test_two_columns_of_japanese_prose_are_no_table() -> None:
    left = (
        "健康診断は来週の月曜日から木曜日まで本社の三階会議室で行"
        "います前日の夜は食事をとらないでください問診票は当日まで"
        "に記入し保険証と一緒にお持ちください受診できない方は総務"
        "課に"
    )
    right = (
        "駐車場は来月の一日から舗装工事のため使用できません期間中"
        "は第五駐車場をご利用ください工事は月末に終わる予定です自"
        "転車置き場は通常どおり使用できます車通勤の方は許可証を見"
        "え"
    )
    file = io.BytesIO()
    canvas = Canvas(file)
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))
    canvas.setFont("HeiseiMin-W3", 12)
    for at in range(5):
        canvas.drawString(60, 700 - 16 * at, left[16 * at : 16 * at + 16])
        canvas.drawString(300, 700 - 16 * at, right[16 * at : 16 * at + 16])
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert page.content.split("\n\n") == [left[:80], right[:80]]


def test_days_of_a_calendar_below_each_other_are_rows() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))
    canvas.setFont("HeiseiMin-W3", 12)
    for at, day in enumerate("月火水木金"):
        canvas.drawString(60, 700 - 20 * at, day)
        canvas.drawString(150, 700 - 20 * at, "午前九時から午後五時まで")
        canvas.drawString(400, 700 - 20 * at, f"{at + 1}00")
    canvas.save()

    (block,) = pdf_reader.read(file.getvalue(), "a.pdf").blocks

    assert block.text.splitlines()[2:] == [
        f"| {day} | 午前九時から午後五時まで | {at}00 |"
        for at, day in enumerate("月火水木金", start=1)
    ]


@pytest.mark.parametrize("turn", [30, 90, 180, 270])
def test_narrow_signs_of_turned_numbers_have_no_space_beside_them(turn: int) -> None:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    canvas.translate(300, 400)
    canvas.rotate(turn)
    canvas.setFont("Courier", 10)
    canvas.drawString(0, 0, "3.9 mg/l [4.0-10.0]")
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert page.content.strip("`\n") == "3.9 mg/l [4.0-10.0]"


def test_letters_of_turned_text_that_are_placed_one_by_one_are_words_and_numbers() -> None:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    canvas.drawString(72, 700, "Duty roster of the house")
    for left, day in ((240, "Mo 11.05."), (300, "Tu 12.05.")):
        text = canvas.beginText()
        base = 560.0
        for letter in day:
            text.setTextTransform(0, 1, -1, 0, left, base)
            text.textOut(letter)
            base += pdfmetrics.stringWidth(letter, "Helvetica", 12)
        canvas.drawText(text)
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert page.content == "Duty roster of the house\n\nMo 11.05.\n\nTu 12.05."


@pytest.mark.parametrize("turn", [90, 270])
@pytest.mark.parametrize("has_grid", [True, False])
def test_turned_words_are_the_headers_of_their_columns(turn: int, *, has_grid: bool) -> None:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    canvas.drawString(55, 760, "Towns of the province of Teramo")
    lefts, words = (55, 150, 190), ("Inhabitants", "Area", "Schools")
    for left, word in zip(lefts, words, strict=True):
        # The lower end of a word that runs down is its last letter.
        rise = canvas.stringWidth(word) if turn == 270 else 0
        canvas.saveState()
        canvas.translate(left + 10, 626 + rise)
        canvas.rotate(turn)
        canvas.drawString(0, 0, word)
        canvas.restoreState()
    for at, row in enumerate((("4100", "20", "3"), ("6630", "21", "4"), ("1794", "12", "2"))):
        for left, text in zip(lefts, row, strict=True):
            canvas.drawString(left, 606 - 20 * at, text)
    if has_grid:
        canvas.grid([50, 145, 185, 260], [720, 622, 602, 582, 562])
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert [block.text.split("\n")[:3] for block in page.blocks[1:]] == [
        ["| Inhabitants | Area | Schools |", "|---|---|---|", "| 4100 | 20 | 3 |"]
    ]


@pytest.mark.parametrize("turn", ["0 .24 -.24 0 300 200", ".24 0 0 .24 60 600"])
def test_letters_that_stand_for_others_in_a_drawing_are_in_their_word(turn: str) -> None:
    drawn = (
        "BT /F1 40 Tf 1 0 0 1 400 300 Tm (Gefahrsto) Tj ET /Span << /ActualText (ff) >> BDC "
        "BT /F1 40 Tf 1 0 0 1 580 300 Tm (f) Tj ET EMC BT /F1 40 Tf 1 0 0 1 595 300 Tm (e) Tj ET"
    )
    shown = f"{turn} cm /X1 Do"
    data = file_of([
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] "
        "/Resources << /XObject << /X1 6 0 R >> >> /Contents 5 0 R >>",
        f"<< /Length {len(shown)} >>\nstream\n{shown}\nendstream",
        "<< /Type /XObject /Subtype /Form /BBox [0 0 2000 2000] "
        f"/Resources << /Font << /F1 3 0 R >> >> /Length {len(drawn)} >>\n"
        f"stream\n{drawn}\nendstream",
    ])  # fmt: skip

    page = pdf_reader.read(data, "a.pdf")

    assert page.content == "Gefahrstoffe"
    assert not page.left_out
