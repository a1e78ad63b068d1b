"""What a PDF page draws besides its text: hidden words, lines that strike out, nested drawings."""

import io
import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
import reportlab
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

from knowledge.documents.page import Page
from knowledge.documents.pdf import pdf_reader as pdf
from knowledge.documents.pictures import write_png
from tests.knowledge.documents.printing import file_of

SHOWN = "The fee is 20 euros."
HIDDEN = "The fee is 99 pounds."


def read_drawn(draw: Callable[[Canvas], object], size: tuple[float, float] = (600, 800)) -> Page:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=size)
    canvas.setFont("Helvetica", 12)
    draw(canvas)
    canvas.save()
    return pdf.read(file.getvalue(), "a.pdf")


def draw_invisible(canvas: Canvas) -> None:
    text = canvas.beginText(50, 650)
    text.setFont("Helvetica", 12)
    text.setTextRenderMode(3)
    text.textLine(HIDDEN)
    canvas.saveState()
    canvas.drawText(text)
    canvas.restoreState()


def draw_white(canvas: Canvas) -> None:
    canvas.setFillGray(1)
    canvas.drawString(50, 650, HIDDEN)


def draw_redacted(canvas: Canvas) -> None:
    canvas.drawString(50, 650, HIDDEN)
    canvas.rect(50.5, 645, 150, 18, fill=1)


def draw_retyped(canvas: Canvas) -> None:
    canvas.drawString(50, 700, HIDDEN)
    canvas.setFillGray(1)
    canvas.rect(48, 695, 150, 18, stroke=0, fill=1)
    canvas.setFillGray(0)


def draw_outside(canvas: Canvas) -> None:
    canvas.drawString(50, 850, HIDDEN)


def draw_clipped(canvas: Canvas) -> None:
    canvas.saveState()
    path = canvas.beginPath()
    path.rect(300, 300, 50, 50)
    canvas.clipPath(path, stroke=0)
    canvas.drawString(50, 650, HIDDEN)
    canvas.restoreState()


@pytest.mark.parametrize(
    "draw", [draw_invisible, draw_white, draw_redacted, draw_retyped, draw_outside, draw_clipped]
)
def test_words_that_a_page_does_not_show_are_left_out_and_counted(
    draw: Callable[[Canvas], None],
) -> None:
    def draw_both(canvas: Canvas) -> None:
        draw(canvas)
        canvas.setFillGray(0)
        canvas.setFont("Helvetica", 12)
        canvas.drawString(50, 700, SHOWN)

    page = read_drawn(draw_both)

    assert page.content == SHOWN
    assert [(part.what, part.count) for part in page.left_out] == [("hidden word", 5)]


HIDDEN_TEXT = f"BT /F1 12 Tf 50 650 Td ({HIDDEN}) Tj ET"


@pytest.mark.parametrize(
    ("content", "drawing", "layer"),
    [(f"/OC /L1 BDC {HIDDEN_TEXT} EMC", "", ""), ("/X1 Do", HIDDEN_TEXT, "/OC 6 0 R")],
)
def test_words_of_a_layer_that_is_off_are_left_out(content: str, drawing: str, layer: str) -> None:
    stream = f"BT /F1 12 Tf 50 700 Td ({SHOWN}) Tj ET {content}"
    data = file_of([
        "<< /Type /Catalog /Pages 2 0 R /OCProperties << /OCGs [6 0 R] /D << /OFF [6 0 R] >> >> >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R "
        "/Resources << /Font << /F1 3 0 R >> /Properties << /L1 6 0 R >> "
        "/XObject << /X1 7 0 R >> >> >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Type /OCG /Name (Draft) >>",
        f"<< /Type /XObject /Subtype /Form /BBox [0 0 600 800] {layer} /Length {len(drawing)} "
        f"/Resources << /Font << /F1 3 0 R >> >> >>\nstream\n{drawing}\nendstream",
    ])  # fmt: skip

    assert pdf.read(data, "a.pdf").content == SHOWN


def test_the_recognised_text_of_a_scan_is_read_although_it_is_invisible() -> None:
    import numpy

    pixels = write_png(numpy.full((80, 60, 1), 255, numpy.uint8))
    assert pixels is not None
    scan = ImageReader(io.BytesIO(pixels))

    def draw(canvas: Canvas) -> None:
        canvas.drawImage(scan, 0, 0, 600, 800)
        draw_invisible(canvas)

    assert read_drawn(draw).content == HIDDEN


@pytest.mark.parametrize("mode", [0, 7])
def test_words_whose_font_has_no_outlines_are_shown(mode: int) -> None:
    font = bytearray((Path(reportlab.__file__).parent / "fonts" / "Vera.ttf").read_bytes())
    offset, length = struct.unpack_from(">II", font, font.index(b"glyf") + 8)
    font[offset : offset + length] = bytes(length)
    pdfmetrics.registerFont(TTFont("Blank", io.BytesIO(font)))

    def draw(canvas: Canvas) -> None:
        text = canvas.beginText(50, 700)
        text.setFont("Blank", 12)
        text.setTextRenderMode(mode)
        text.textLine(SHOWN)
        canvas.drawText(text)
        canvas.rect(0, 690, 600, 40, stroke=0, fill=min(mode, 1))

    assert read_drawn(draw).content == SHOWN


def test_letters_on_a_dark_box_are_visible() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.rect(40, 690, 300, 30, fill=1)
        canvas.setFillGray(1)
        canvas.drawString(50, 700, SHOWN)

    assert read_drawn(draw).content == SHOWN


def test_lines_and_texts_in_a_drawing_are_where_the_drawing_is_placed() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.beginForm("drawing", 0, 0, 600, 800)
        canvas.setFont("Helvetica", 24)
        canvas.drawString(20, 40, "Old price 30")
        canvas.line(20, 46, 20 + canvas.stringWidth("Old price 30", "Helvetica", 24), 46)
        canvas.endForm()
        canvas.drawString(20, 40, "This line of the page is not struck out.")
        canvas.translate(50, 600)
        canvas.scale(0.5, 0.5)
        canvas.doForm("drawing")

    content = read_drawn(draw).content

    assert content.splitlines()[0] == "~~Old price 30~~"
    assert "This line of the page is not struck out." in content


@pytest.mark.parametrize(("left", "right"), [(1, 50), (-5, 120), (3, 136), (0, 16)])
def test_a_line_that_ends_elsewhere_than_letters_strikes_nothing_out(
    left: float, right: float
) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(150, 700, "The pump needs 40 litres.")
        canvas.line(150 + left, 703.6, 150 + right, 703.6)

    assert read_drawn(draw).content == "The pump needs 40 litres."


@pytest.mark.parametrize("has_rules", [False, True])
def test_a_line_through_a_whole_row_strikes_it_out_and_rules_between_rows_do_not(
    has_rules: bool,
) -> None:
    def draw(canvas: Canvas) -> None:
        for at, name in enumerate(("Article", "Pump", "Hose", "Valve")):
            base = 700 - 20 * at
            canvas.drawString(60, base, name)
            canvas.drawString(200, base, f"{at} pieces" if at else "Quantity")
            canvas.drawString(330, base, f"{at}9.50" if at else "Price in euros")
            if has_rules:
                canvas.line(50, base - 6, 500, base - 6)
        canvas.line(50, 663.6, 500, 663.6)

    assert read_drawn(draw).content.splitlines()[2:] == [
        "| Pump | 1 pieces | 19.50 |",
        "| ~~Hose~~ | ~~2 pieces~~ | ~~29.50~~ |",
        "| Valve | 3 pieces | 39.50 |",
    ]


def test_a_row_is_struck_out_by_a_line_in_each_of_its_cells() -> None:
    edges = (50, 300, 380, 460)

    def draw(canvas: Canvas) -> None:
        for at, row in enumerate((("Article", "Unit", "Price"), ("Hose", "m", "1.50"))):
            for left, text in zip(edges, row, strict=False):
                canvas.drawString(left + 5, 700 - 20 * at, text)
        for base in (714, 694, 674):
            canvas.line(50, base, 460, base)
        for left in edges:
            canvas.line(left, 714, left, 674)
        for left, right in pairwise(edges):
            canvas.line(left, 683.6, right, 683.6)

    content = read_drawn(draw).content

    assert content.splitlines()[2:] == ["| ~~Hose~~ | ~~m~~ | ~~1.50~~ |"]


def test_thousands_of_lines_through_a_text_are_a_drawing() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(50, 700, SHOWN)
        for at in range(5_000):
            canvas.line(40, 702 + at / 2_000, 400 + at / 50, 702 + at / 2_000)

    assert read_drawn(draw).content == SHOWN


def test_a_title_in_the_gap_of_a_frame_is_not_struck_out() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.saveState()
        gap = canvas.beginPath()
        gap.rect(0, 0, 600, 800)
        gap.rect(80, 690, 200, 30)
        canvas.clipPath(gap, stroke=0, fill=0, fillMode=0)
        canvas.rect(50, 600, 400, 103.6)
        canvas.restoreState()
        canvas.drawString(90, 700, "Personal data of the member")

    assert read_drawn(draw).content == "Personal data of the member"


def test_a_line_from_margin_to_margin_strikes_a_sentence_out() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, "The members pay the fee of 2025 in advance.")
        canvas.line(40, 703.6, 560, 703.6)
        canvas.drawString(72, 660, SHOWN)
        canvas.line(40, 658, 560, 658)

    content = read_drawn(draw).content

    assert content == f"~~The members pay the fee of 2025 in advance.~~\n\n{SHOWN}"


def test_lines_of_a_chart_and_beside_a_title_strike_nothing_out() -> None:
    def draw(canvas: Canvas) -> None:
        for base in (300, 350, 400):
            canvas.line(100, base + 3.6, 500, base + 3.6)
            canvas.drawString(300, base, f"{base}.5")
        canvas.line(40, 703.6, 400, 703.6)
        canvas.setFillGray(1)
        canvas.rect(150, 695, 160, 20, stroke=0, fill=1)
        canvas.setFillGray(0)
        canvas.drawString(160, 700, "Terms and conditions")

    content = read_drawn(draw).content

    assert "Terms and conditions" in content
    assert "~~" not in content


def test_a_line_through_a_sign_alone_strikes_nothing_out() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(50, 700, ">")
        canvas.line(48, 703.6, 60, 703.6)

    assert read_drawn(draw).content == ">"


def test_the_bar_of_a_fraction_strikes_nothing_out() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(50, 700, "Share = ")
        canvas.setFont("Helvetica", 8)
        canvas.drawString(100, 705, "part")
        canvas.drawString(100, 696, "total")
        canvas.line(100, 703, 100 + canvas.stringWidth("total"), 703)

    assert "~~" not in read_drawn(draw).content


def test_words_that_an_annotation_strikes_out_are_marked() -> None:
    file = io.BytesIO()
    canvas = Canvas(file, pageCompression=0)
    canvas.setFont("Helvetica", 12)
    canvas.drawString(50, 700, SHOWN)
    start, end = (50 + canvas.stringWidth(part) for part in ("The fee is ", "The fee is 20"))
    points = [start, 710, end, 710, start, 697, end, 697]
    canvas.highlightAnnotation("", (start, 697, end, 710), points)
    canvas.save()

    page = pdf.read(file.getvalue().replace(b"/Highlight", b"/StrikeOut"), "a.pdf")

    assert page.content == "The fee is ~~20~~ euros."


def test_words_that_are_struck_out_over_two_lines_are_one_text() -> None:
    def draw(canvas: Canvas) -> None:
        for base, line in ((700, "The old entrance fee of all mem-"), (686, "bers is gone.")):
            canvas.drawString(50, base, line)
            canvas.line(50, base + 3.6, 50 + canvas.stringWidth(line), base + 3.6)

    assert read_drawn(draw).content == "~~The old entrance fee of all members is gone.~~"


@pytest.mark.parametrize(("flags", "content"), [("print", "Rent 890"), ("hidden", "Rent")])
def test_a_field_of_a_cropped_page_is_beside_its_label_unless_it_is_hidden(
    flags: str, content: str
) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setCropBox((40, 300, 500, 760))
        canvas.drawString(60, 706, "Rent")
        canvas.acroForm.textfield(
            name="rent", value="890", x=120, y=700, height=20, fieldFlags="", annotationFlags=flags
        )
        canvas.drawString(60, 500, "Signed in Berlin.")

    page = read_drawn(draw)

    assert page.blocks[0].text == content
    assert [part.count for part in page.left_out] == ([1] if flags == "hidden" else [])


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        (b"/AcroForm", b"/NoLonger", "1,500.00"),
        (b"/V (1,500.00)", b"/V (1500)", "1,500.00"),
        (b"/FT /Tx", b"/FT /Sig", "1,500.00"),
        (b"/FT /Tx", b"/FT /Btn /AS /Yes", "[x]"),
        (b"/FT /Tx", b"/FT /Btn /AS /Off", "[ ]"),
        (b"/Subtype /Widget", b"/Subtype /Stamp", "1,500.00"),
    ],
)
def test_fields_signatures_and_stamps_are_read_as_the_page_shows_them(
    old: bytes, new: bytes, shown: str
) -> None:
    file = io.BytesIO()
    canvas = Canvas(file, pageCompression=0)
    canvas.drawString(60, 706, "Rent")
    canvas.acroForm.textfield(name="a", value="1,500.00", x=120, y=700, height=20, fieldFlags="")
    canvas.save()

    page = pdf.read(file.getvalue().replace(old, new), "a.pdf")

    assert page.content == f"Rent {shown}"


def test_a_form_that_asks_for_new_drawings_shows_its_values() -> None:
    file = io.BytesIO()
    canvas = Canvas(file, pageCompression=0)
    canvas.drawString(60, 706, "Rent")
    canvas.acroForm.textfield(name="rent", value="890", x=120, y=700, height=20, fieldFlags="")
    canvas.save()
    filled = file.getvalue().replace(b"/V (890)", b"/V (910)")

    page = pdf.read(filled.replace(b"/Fields", b"/NeedAppearances true /Fields"), "a.pdf")

    assert page.content == "Rent 910"


def test_the_feet_of_cropped_pages_are_running_feet() -> None:
    def draw(canvas: Canvas) -> None:
        for page in range(3):
            canvas.setCropBox((0, 300, 600, 800))
            canvas.setFont("Helvetica", 12)
            canvas.drawString(60, 315, "Rules of the club")
            canvas.drawString(60, 600, f"Rule {'abc'[page]} is about members.")
            canvas.showPage()

    page = read_drawn(draw)

    assert page.content.count("Rules of the club") == 1
    assert page.left_out[0].count == 2
