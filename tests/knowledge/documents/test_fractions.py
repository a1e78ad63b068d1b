"""Fractions and roots of a PDF, whose parts are above and below a bar."""

import io

from reportlab.pdfgen.canvas import Canvas

from knowledge.documents.pdf import pdf_reader


def draw_fraction(canvas: Canvas, left: float, parts: tuple[str, str], size: float = 7.0) -> float:
    """Draw a fraction in the line at 700 points, and return where it ends."""
    widths = [canvas.stringWidth(part, "Helvetica", size) for part in parts]
    canvas.setFont("Helvetica", size)
    for part, width, base in zip(parts, widths, (703 + 0.25 * size, 702 - size), strict=True):
        canvas.drawString(left + (max(widths) - width) / 2, base, part)
    canvas.line(left, 702.5, left + max(widths), 702.5)
    canvas.setFont("Helvetica", 10)
    return float(left + max(widths))


def test_a_fraction_is_read_in_its_line() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Helvetica", 10)
    canvas.drawString(50, 712, "The rules for the dose are in this leaflet, see below.")
    canvas.drawString(50, 700, "Take 2")
    end = draw_fraction(canvas, 81, ("3", "4"))
    canvas.drawString(end + 3, 700, "tablets, rate =")
    end = draw_fraction(canvas, end + 75, ("a - b", "12 c"))
    canvas.drawString(end + 3, 700, "of it.")
    canvas.drawString(50, 688, "Do not take more than these in one day, or in one night.")
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert "Take 2 3/4 tablets, rate = (a - b)/(12 c) of it." in page.content


def test_a_root_is_read_in_its_line_whatever_the_place_of_its_sign() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    left = 50.0
    for font, text, base in (
        ("Helvetica", "The side is ", 700), ("Symbol", "\u221a", 700.5),
        ("Helvetica", "a + 2", 700), ("Helvetica", "x of the length.", 700),
    ):  # fmt: skip
        canvas.setFont(font, 10)
        canvas.drawString(left, base, text)
        end = left + canvas.stringWidth(text, font, 10)
        if text == "a + 2":
            canvas.line(left, 709.5, end, 709.5)
        left = end
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert page.content == "The side is \u221a(a + 2) x of the length."


def test_a_line_below_a_word_is_no_bar_of_a_fraction() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Helvetica", 10)
    canvas.drawString(50, 700, "Pay the")
    canvas.drawString(90, 700, "fee")
    canvas.line(90, 698.5, 90 + canvas.stringWidth("fee", "Helvetica", 10), 698.5)
    canvas.drawString(110, 700, "of the year in advance, in")
    canvas.drawString(50, 688, "one sum to the cashier of the club, who gives a receipt.")
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert page.content.startswith("Pay the fee of the year in advance, in one sum to the cashier")
