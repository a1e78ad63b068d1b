"""Lines with right-to-left text: from the order in which a page shows them to that of reading."""

import re

import pytest

from knowledge.documents.pdf.glyphs import Glyph, Typeface
from knowledge.documents.pdf.reading_direction import Piece, join_words, put_in_order
from knowledge.documents.pdf.strikes import PageLines

_PIECES = re.compile(r"\s*(?:[^\W_]+|[^\s])")


def _read(shown: str, *, is_page_reversed: bool = True) -> str:
    """Return a line as it is read; `shown` states its words and signs from left to right."""
    pieces = [Piece(found.strip(), found[:1] == " ") for found in _PIECES.findall(shown)]
    ordered = put_in_order(pieces, is_page_reversed=is_page_reversed)
    return "".join(" " * piece.has_space + piece.text for piece in ordered).strip()


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (".01.10.2026 מיום", "מיום 01.10.2026."),
        ('180-מ ח"ש', 'ש"ח מ-180'),
        (".(לוי) 7 דירה", "דירה 7 (לוי)."),
        (".)לוי( 7 דירה", "דירה 7 (לוי)."),
        ("4 וגם 3 ,2 ,1 :מספרים", "מספרים: 1, 2, 3 וגם 4"),
        ("X-200 מוצר על ISO 9001 התקן", "התקן ISO 9001 על מוצר X-200"),
        ("לפרטים https://example.org/a?c=1 ראו", "ראו https://example.org/a?c=1 לפרטים"),
        ("03-1234567 טלפון info@example.org דואל", "דואל info@example.org טלפון 03-1234567"),
        ("+20 2 2735 0148 :هاتف", "هاتف: +20 2 2735 0148"),
        ("%10 أقصى %1.5 التأخير", "التأخير 1.5% أقصى 10%"),
        ("10% הנחה", "הנחה 10%"),
        ("-5 בין", "בין -5"),
        ("٤٫٥ الوزن", "الوزن ٤٫٥"),
        ("10–7 الصفوف", "الصفوف 7–10"),
        ("20–15:30 ,12:00–9:30 פתוח", "פתוח 9:30–12:00, 15:30–20"),
        ("GPT (beta) גרסה", "גרסה GPT (beta)"),
        ("The word שלום is Hebrew.", "The word שלום is Hebrew."),
        ("12 500 € (net)", "12 500 € (net)"),
    ],
)  # fmt: skip
def test_a_line_is_read_from_the_right_and_its_numbers_from_the_left(
    shown: str, expected: str
) -> None:
    assert _read(shown) == expected


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ("D ויטמין", "ויטמין D"),
        ("The words עליכם שלום are Hebrew", "The words שלום עליכם are Hebrew"),
        ("From שלום to עליכם", "From שלום to עליכם"),
    ],
)
def test_hebrew_words_of_a_page_in_english_are_read_from_the_right(
    shown: str, expected: str
) -> None:
    assert _read(shown, is_page_reversed=False) == expected


def test_the_page_decides_the_direction_of_a_line_with_letters_of_both_kinds_at_its_ends() -> None:
    pieces = [Piece("Total"), Piece("סכום", has_space=True)]

    first, _ = put_in_order(pieces, is_page_reversed=False)

    assert first.text == "Total"


@pytest.mark.parametrize("drawn", ["4A", "A4"])
def test_letters_and_digits_that_run_to_the_right_are_read_by_their_places(drawn: str) -> None:
    face, lefts = Typeface(12, is_bold=False, is_code=False), {"\u05d0": 120, "A": 100, "4": 107}
    glyphs = [
        Glyph(text, lefts[text], lefts[text] + 7, 700, face, False, False, None)
        for text in f"\u05d0{drawn}"
    ]

    ((_, line),) = join_words(glyphs, PageLines([], (600, 800)), is_page_reversed=True)

    assert line.text == "\u05d0 A4"
