"""Text of a PDF whose letters are spaced out for emphasis."""

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
