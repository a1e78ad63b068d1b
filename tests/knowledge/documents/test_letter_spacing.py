"""Text of a PDF whose letters are spaced out for emphasis, or are in boxes of their own."""

import io
from collections.abc import Sequence

import pytest
from reportlab.pdfgen.canvas import Canvas

from knowledge.documents.pdf import pdf_reader


def print_spaced(parts: Sequence[tuple[str, float]], *, by_letter: bool = False) -> bytes:
    """Return a line of texts with the space between their letters, in points; no space is drawn
    if each letter is.
    """
    file = io.BytesIO()
    canvas = Canvas(file)
    left = 50.0
    for shown, space in parts:
        for letter in shown if by_letter else [shown]:
            text = canvas.beginText(left, 700)
            text.setFont("Helvetica", 12)
            text.setCharSpace(space)
            text.textOut("" if by_letter and letter == " " else letter)
            canvas.drawText(text)
            left += canvas.stringWidth(letter, "Helvetica", 12) + space * len(letter)
    canvas.save()
    return file.getvalue()


@pytest.mark.parametrize("by_letter", [False, True])
@pytest.mark.parametrize("space", [1.5, 2.4, 3.6])
def test_spaced_out_words_and_numbers_are_words_and_numbers(space: float, by_letter: bool) -> None:
    parts = [("Reply by ", 0.0), ("12. March 2026", space), (" to us, fee 45,50 EUR", 0.0)]

    page = pdf_reader.read(print_spaced(parts, by_letter=by_letter), "a.pdf")

    assert page.content == "Reply by 12. March 2026 to us, fee 45,50 EUR"


def test_the_groups_of_a_spaced_out_account_number_are_its_groups() -> None:
    shown = "DE44  2105  0170  0012"

    page = pdf_reader.read(print_spaced([(shown, 1.8)], by_letter=True), "a.pdf")

    assert page.content == "DE44 2105 0170 0012"


@pytest.mark.parametrize("shown", ["Levels 1 2 3 4 5", "Take a b c d e, then"])
def test_words_of_one_letter_or_digit_stay_apart(shown: str) -> None:
    page = pdf_reader.read(print_spaced([(shown, 0.0)], by_letter=True), "a.pdf")

    assert page.content == shown


@pytest.mark.parametrize("has_boxes", [True, False])
@pytest.mark.parametrize(
    ("shown", "read"),
    [("DE4421050170", "DE4421050170"), ("MARA LIM", "MARA LIM"), ("1.80", "1.80"),
     ("12345", "1; 2; 3; 4; 5"), ("XXX", "X X X")],
)  # fmt: skip
def test_letters_in_boxes_of_a_form_are_words_and_numbers_unless_they_count(
    shown: str, read: str, *, has_boxes: bool
) -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Helvetica", 10)
    canvas.drawString(50, 700, "Field")
    canvas.rect(120, 696, 14 * len(shown), 16)
    for at, letter in enumerate(shown):
        canvas.line(120 + 14 * at, 696, 120 + 14 * at, 712 if has_boxes else 702)
        canvas.drawCentredString(127 + 14 * at, 700, letter.strip())
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert page.content == f"Field {read}"


def test_single_letters_in_the_cells_of_several_rows_stay_cells() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Helvetica", 10)
    for row, letters in enumerate(("KMZ", "408", "172")):
        for at, letter in enumerate(letters):
            canvas.rect(120 + 14 * at, 696 - 16 * row, 14, 16)
            canvas.drawCentredString(127 + 14 * at, 700 - 16 * row, letter)
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert page.content == "| K | M | Z |\n|---|---|---|\n| 4 | 0 | 8 |\n| 1 | 7 | 2 |"
