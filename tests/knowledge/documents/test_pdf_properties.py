"""What holds for every PDF: rows, values and labels arrive as they stand in the file."""

import io
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
import reportlab
from hypothesis import given, settings
from hypothesis import strategies as st
from reportlab.lib import colors
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, PageBreak, Paragraph, Spacer, Table

from citations.verbatim import find_struck
from knowledge.documents.errors import PicturesError
from knowledge.documents.page import BlockKind, Page
from knowledge.documents.pdf import pdf_reader
from knowledge.documents.recognition import RecognisedText
from tests.knowledge.documents.layouts import TEXT, build
from tests.knowledge.documents.printing import file_of, print_pdf

EXAMPLES = settings(max_examples=25, deadline=None)
LABELS = st.lists(
    st.from_regex(r"[A-Z][a-z]{2,9}( [A-Z][a-z]{2,9})?", fullmatch=True),
    min_size=2, max_size=12, unique=True,
)  # fmt: skip
NUMBERS = st.one_of(
    st.integers(-9_999, 99_999).map(str),
    st.decimals(0, 9_999, places=2).map(lambda number: f"{number:,}"),
    st.integers(0, 100).map(lambda share: f"{share} %"),
    st.tuples(st.integers(0, 50), st.integers(51, 99)).map(lambda ends: f"{ends[0]}–{ends[1]}"),
)
RULES = [
    ("BOX", (0, 0), (-1, -1), 0.5, colors.black),
    ("INNERGRID", (0, 0), (-1, 0), 0.5, colors.black),
    ("LINEBELOW", (0, 0), (-1, 0), 0.5, colors.black),
]
COLUMNS = [("LINEBEFORE", (0, 0), (-1, -1), 0.5, colors.black)]


def read(data: bytes) -> Page:
    return pdf_reader.read(data, "a.pdf")


def rows_of(page: Page) -> list[list[str]]:
    """Return the rows of all tables, those of the header included if there is one."""
    lines = (
        line for block in page.blocks if block.kind is BlockKind.TABLE
        for line in block.text.split("\n")
    )  # fmt: skip
    rows = (line.strip("| ").split(" | ") for line in lines if not line.startswith("|---"))
    return [row for row in rows if any(row)]


@EXAMPLES
@given(labels=LABELS, data=st.data(), has_columns=st.booleans())
def test_a_row_of_a_ruled_table_stays_a_row_without_lines_between_rows(
    labels: list[str], data: st.DataObject, has_columns: bool
) -> None:
    values = st.lists(NUMBERS, min_size=len(labels), max_size=len(labels))
    columns = (labels, data.draw(values), data.draw(values))
    rows = [list(row) for row in zip(*columns, strict=True)]
    style = [*RULES, *(COLUMNS if has_columns else ())]
    table = Table([["Item", "Before", "After"], *rows], colWidths=[160, 90, 90], style=style)

    assert rows_of(read(build([table]))) == [["Item", "Before", "After"], *rows]


@EXAMPLES
@given(
    names=LABELS,
    amounts=st.lists(NUMBERS, min_size=12, max_size=12),
    fills_page=st.booleans(),
)
def test_no_page_shows_a_label_of_the_form_on_another_page(
    names: list[str], amounts: list[str], fills_page: bool
) -> None:
    grid = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]
    story: list[Flowable] = []
    for name, amount in zip(names, amounts, strict=False):
        form = [
            [f"Customer {name}", "Amount", "Paid"],
            ["Damage", amount, "0"],
            ["Excess", "150", "9"],
        ]
        story += [Spacer(1, 560 if fills_page else 1), Table(form, style=grid), PageBreak()]

    page = read(build(story))

    for number, name in enumerate(names, start=1):
        own = [block.text for block in page.blocks if f"Customer {name} |" in block.text]
        assert own
        assert {block.anchor for block in page.blocks if block.text in own} == {f"page={number}"}
        assert f"| Damage | {amounts[number - 1]} | 0 |" in own[0]


HEBREW = st.lists(
    st.one_of(
        st.text([chr(code) for code in range(0x5D0, 0x5EA)], min_size=2, max_size=8),
        st.integers(10, 99_999).map(str),
    ),
    min_size=3, max_size=7,
)  # fmt: skip


def print_right_to_left(words: list[str]) -> bytes:
    """Return a PDF that shows a line of Hebrew words and numbers as a person sees it."""
    seen = [word if word.isdecimal() else word[::-1] for word in reversed(words)]
    shown = " ".join(seen).translate({0x5D0 + at: 0x61 + at for at in range(26)})
    return print_mapped(shown, "beginbfrange <61> <7A> <05D0> endbfrange")


def print_mapped(shown: str, mapping: str, name: str = "asterisk") -> bytes:
    """Return a PDF with a line whose font states the meaning of its characters.

    `name` is that of the glyph at `*`.
    """
    stream = f"BT /F1 12 Tf 50 700 Td ({shown}) Tj ET"
    names = "1 begincodespacerange <00> <FF> endcodespacerange"
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapType 2 def "
        f"{names} 1 {mapping} endcmap end end"
    )
    return file_of([
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R "
        f"/Encoding << /Type /Encoding /Differences [42 /{name}] >> >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] "
        "/Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        f"<< /Length {len(cmap)} >>\nstream\n{cmap}\nendstream",
    ])  # fmt: skip


@pytest.mark.parametrize("shown", ["1 2 3 4 5", "a A b B c C", "R 7 0 2 4"])
def test_a_row_of_numbers_or_letters_is_not_one_word(shown: str) -> None:
    assert read(print_pdf([[shown]])).content == shown


@EXAMPLES
@given(letter=st.characters(min_codepoint=0x1D400, max_codepoint=0x1D7FF, categories=["L", "N"]))
def test_a_letter_of_a_formula_beyond_the_basic_plane_is_read(letter: str) -> None:
    halves = letter.encode("utf-16-be").hex()

    page = read(print_mapped("a = 17", f"beginbfchar <61> <{halves}> endbfchar"))

    assert page.content == f"{letter} = 17"


def test_a_letter_of_a_formula_that_a_font_states_twice_is_one_letter() -> None:
    page = read(print_mapped("a = 17", "beginbfchar <61> <D835DF07D835DF07> endbfchar"))

    assert page.content == "\U0001d707 = 17"


def test_the_letters_of_a_ligature_that_is_wider_than_high_are_one_word() -> None:
    page = read(print_mapped("Homeo@ce", "beginbfchar <40> <006600660069> endbfchar"))

    assert page.content == "Homeoffice"


def test_a_typographic_hyphen_at_the_end_of_a_line_is_a_hyphen() -> None:
    shown = "num*) Tj 0 -14 Td (ber of calls"

    assert (
        read(print_mapped(shown, "beginbfchar <2A> <2010> endbfchar")).content == "number of calls"
    )


@pytest.mark.parametrize(
    ("shown", "content"), [("a di*cult case", "a di\ufffdcult case"), ("* Apples", "Apples")]
)
def test_a_letter_whose_meaning_is_not_stated_is_counted(shown: str, content: str) -> None:
    page = read(print_mapped(shown, "beginbfchar <2A> <0000> endbfchar"))

    assert page.content == content
    assert [(one.what, one.count) for one in page.left_out] == [("unreadable letter", 1)]


@pytest.mark.parametrize("name", ["fi", "fl"])
@pytest.mark.parametrize("stated", ["0000", "21B5"])
def test_a_ligature_without_a_stated_meaning_is_known_by_its_shape(name: str, stated: str) -> None:
    page = read(print_mapped("A re*ned case", f"beginbfchar <2A> <{stated}> endbfchar", name))

    assert page.content == f"A re{name}ned case"
    assert not page.left_out


@pytest.mark.parametrize(
    ("name", "letters"), [(b"f_f_i", "ffi"), (b"T_h", "Th"), (b"glyph1", "\ufffd")]
)
def test_the_name_of_a_glyph_states_its_letters(name: bytes, letters: str) -> None:
    folder = Path(reportlab.__file__).parent / "fonts"
    program = (folder / "callig15.pfb").read_bytes()
    first = program.index(b"dup 2/circumflex put")
    named = b"dup 2/%s put" % name
    program = program[:first] + named.ljust(30) + program[first + 30 :]
    stream = f"BT /F1 12 Tf 50 700 Td (Of{chr(2)}ce) Tj ET"
    page = read(file_of([
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Callig /FontDescriptor 6 0 R >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] "
        "/Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        "<< /Type /FontDescriptor /FontName /Callig /Flags 4 /FontFile 7 0 R >>",
        f"<< /Filter /ASCIIHexDecode /Length {2 * len(program)} >>\n"
        f"stream\n{program.hex()}\nendstream",
    ]))  # fmt: skip

    assert page.content == f"Of{letters}ce"


def test_a_return_sign_of_a_page_is_no_ligature() -> None:
    page = read(print_mapped("Press * twice", "beginbfchar <2A> <21B5> endbfchar"))

    assert page.content == "Press \u21b5 twice"


def test_tildes_of_a_page_do_not_strike_out_its_text() -> None:
    content = read(print_pdf([["See ~~y~~ and ~~~z~~~ here"]])).content

    assert find_struck(content) == []
    assert content.replace("\u200c", "") == "See ~~y~~ and ~~~z~~~ here"


def test_the_letters_of_a_page_are_recognised_if_the_meaning_of_none_is_stated() -> None:
    data = print_mapped("****", "beginbfchar <2A> <0000> endbfchar")

    page = pdf_reader.read(data, "a.pdf", lambda _: [RecognisedText("Pump", 10, 100, 20)])

    assert page.content == "Pump"
    assert not page.left_out
    with pytest.raises(PicturesError, match="unreadable letters"):
        pdf_reader.read(data, "a.pdf", lambda _: [])


def test_a_note_at_the_foot_of_the_margin_is_not_mixed_into_two_columns() -> None:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(612, 792))
    for at in range(30):
        for left, name in ((165, "left"), (370, "right")):
            canvas.drawString(left, 440 - 13 * at, f"and the {name} column goes on {at}")
    canvas.setFont("Helvetica", 8)
    for at in range(9):
        canvas.drawString(60, 128 - 8 * at, f"Note of author {at}")
    canvas.save()

    content = read(file.getvalue()).content

    assert content.index("left column goes on 29") < content.index("right column goes on 0")
    assert "goes on 28 and the left" in content


@pytest.mark.parametrize("sign", ["F0B7", "0099", "0088", "2022"])
def test_an_item_may_have_the_bullet_of_a_symbol_font(sign: str) -> None:
    page = read(print_mapped("* Apples", f"beginbfchar <2A> <{sign}> endbfchar"))

    assert [(block.kind, block.text) for block in page.blocks] == [(BlockKind.ITEM, "- Apples")]


@EXAMPLES
@given(words=HEBREW.filter(lambda words: not words[0].isdecimal() and not words[-1].isdecimal()))
def test_a_line_from_right_to_left_is_read_in_its_order(words: list[str]) -> None:
    page = read(print_right_to_left(words))

    # Numbers beside each other are one run, which a person may read in either order.
    assert Counter(page.content.split()) == Counter(words)
    assert [word for word in page.content.split() if not word.isdecimal()] == [
        word for word in words if not word.isdecimal()
    ]


@pytest.mark.parametrize(
    ("shown", "read_as"),
    [
        (".01.10.2026 cb", "bc 01.10.2026."),
        ("180-a", "a-180"),
        ("%10 a", "a 10%"),
        (r"\(cb\) a", "a (bc)"),
        ("-5 a", "a -5"),
        ("+20 2 2735 0148 :a", "a: +20 2 2735 0148"),
        ("17 496", "17 496"),
    ],
)
def test_signs_and_numbers_of_hebrew_text_are_read_as_they_are_seen(
    shown: str, read_as: str
) -> None:
    page = read(print_mapped(shown + " ", "beginbfrange <61> <7A> <05D0> endbfrange"))

    hebrew = {0x61 + at: 0x5D0 + at for at in range(26)}
    assert page.content == read_as.translate(hebrew)


@pytest.mark.parametrize(
    ("shown_values", "values"),
    [
        (["250"] * 3, ["250"] * 3),
        (["10 - 7"] * 3, ["7 - 10"] * 3),
        (["7-10"] * 3, ["7-10"] * 3),
        (["1 - 3", "12:30 - 9", "2 - 0"], ["3 - 1", "9 - 12:30", "0 - 2"]),
        (["7 - 10", "1 - 3", "5 - 2"], ["7 - 10", "1 - 3", "5 - 2"]),
    ],
)
def test_the_columns_and_ranges_of_a_hebrew_table_begin_at_the_right(
    shown_values: list[str], values: list[str]
) -> None:
    rows = ["ba", "dc", "fe"]
    shown = " ".join(
        f"1 0 0 1 {place} {700 - 20 * at} Tm ({text}) Tj"
        for at, (row, value) in enumerate(zip(rows, shown_values, strict=True))
        for place, text in ((400, row), (250, value), (100, f"z{row}"))
    )

    page = read(print_mapped(f") Tj {shown} (", "beginbfrange <61> <7A> <05D0> endbfrange"))

    assert [row[1] for row in rows_of(page)][-3:] == values
    first = "".join(map(chr, (0x5D4, 0x5D5)))
    assert rows_of(page)[-1] == [first, values[-1], f"{first}{chr(0x5E9)}"]


def test_an_item_goes_on_in_a_large_line_below_its_text() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Helvetica", 10)
    for at in range(8):
        canvas.drawString(
            60, 300 - 12 * at, "The text of the page is smaller than that of its list."
        )
    canvas.setFont("Helvetica", 24)
    for left, base, text in ((60, 700, "\u2013 Steel prices up 14%"), (83, 668, "since May")):
        canvas.drawString(left, base, text)
    canvas.save()

    first = read(file.getvalue()).blocks[0]

    assert (first.kind, first.text) == (BlockKind.ITEM, "- Steel prices up 14% since May")


def test_hebrew_letters_that_overlap_are_read_from_the_right() -> None:
    letters = (("c", "05D2", 100), ("b", "05D1", 105), ("a", "05D0", 110))
    shown = " ".join(
        f"/Span << /ActualText <FEFF{code}> >> BDC 1 0 0 1 {place} 700 Tm ({letter}) Tj EMC"
        for letter, code, place in letters
    )

    page = read(print_mapped(f") Tj {shown} (", "beginbfrange <61> <63> <05D0> endbfrange"))

    assert page.content == "\u05d0\u05d1\u05d2"


def test_arabic_digits_are_read_from_the_left() -> None:
    signs = (("c", "062F", 120), ("a", "0661", 100), ("b", "0662", 106))
    shown = " ".join(
        f"/Span << /ActualText <FEFF{code}> >> BDC 1 0 0 1 {place} 700 Tm ({sign}) Tj EMC"
        for sign, code, place in signs
    )

    page = read(print_mapped(f") Tj {shown} (", "beginbfrange <61> <63> <0661> endbfrange"))

    assert page.content == "\u062f \u0661\u0662"


@pytest.mark.parametrize(("letter", "accent"), list(zip("ÄÉÊÑ", "¨´ˆ˜", strict=True)))
def test_an_accent_that_is_drawn_higher_is_part_of_the_capital_below_it(
    letter: str, accent: str
) -> None:
    base = unicodedata.normalize("NFD", letter)[0]
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(50, 700, "It is in ")
    left = 50 + canvas.stringWidth("It is in ")
    width = canvas.stringWidth(base) - canvas.stringWidth(accent)
    canvas.drawString(left + width / 2, 703, accent)
    canvas.drawString(left, 700, f"{base}bc of the plan: 7 yes,")
    canvas.drawString(50, 686, "2 no.")
    canvas.save()

    assert (
        read(file.getvalue()).content.split()
        == f"It is in {letter}bc of the plan: 7 yes, 2 no.".split()
    )


@pytest.mark.parametrize("letter", ["ä", "é", "ô", "ñ", "ç"])
def test_an_accent_that_is_drawn_over_or_under_a_letter_is_part_of_it(letter: str) -> None:
    base, mark = list(unicodedata.normalize("NFD", letter))
    accent = {"\u0308": "¨", "\u0301": "´", "\u0302": "ˆ", "\u0303": "˜", "\u0327": "¸"}[mark]
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(50, 700, "For")
    canvas.drawString(50 + canvas.stringWidth("For"), 700, accent)
    canvas.drawString(50 + canvas.stringWidth("For"), 700, f"{base}ts")
    canvas.save()

    assert read(file.getvalue()).content == f"For{letter}ts"


def test_digits_that_a_font_draws_raised_are_an_exponent() -> None:
    digit = "550 0 50 0 450 700 d1 50 0 400 700 re f"
    drawn = {
        "one": digit,
        "zero": digit,
        "minus": "350 0 30 500 300 550 d1 30 500 270 50 re f",
        "six": "350 0 30 360 300 700 d1 30 360 270 340 re f",
    }
    codes = " ".join(("<61> <0031>", "<62> <0030>", "<63> <2212>", "<64> <0036>"))
    streams = [
        "BT /F1 12 Tf 50 700 Td (abcd) Tj ET",
        f"begincmap 1 begincodespacerange <00> <FF> endcodespacerange 4 beginbfchar {codes} "
        "endbfchar endcmap",
        *drawn.values(),
    ]
    places = " ".join(f"/{name} {at} 0 R" for at, name in enumerate(drawn, start=7))
    data = file_of([
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type3 /FontBBox [0 0 550 700] /FontMatrix [.001 0 0 .001 0 0] "
        f"/FirstChar 97 /LastChar 100 /Widths [550 550 350 350] /CharProcs << {places} >> "
        f"/Encoding << /Differences [97 /{' /'.join(drawn)}] >> /Resources << >> "
        "/ToUnicode 6 0 R >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] "
        "/Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>",
        *(f"<< /Length {len(own)} >>\nstream\n{own}\nendstream" for own in streams),
    ])  # fmt: skip

    assert read(data).content == "10^\u22126"


@EXAMPLES
@given(
    base=st.integers(1, 99), power=st.integers(2, 99), index=st.integers(2, 9),
    word=st.from_regex(r"[A-Z]{5,9}", fullmatch=True),
)  # fmt: skip
def test_raised_lowered_and_spaced_out_text_keeps_its_meaning(
    base: int, power: int, index: int, word: str
) -> None:
    formula = (
        f"<super>{power}</super>U: take {base}<super>{power}</super> parts of "
        f"H<sub>{index}</sub>O in 12 m."
    )
    spaced = Paragraph(" ".join(word), ParagraphStyle("spaced", fontSize=12))

    content = read(build([Paragraph(formula, TEXT), Spacer(1, 30), spaced])).content

    assert f"^{power}U: take {base}^{power} parts of H{index}O in 12 m." in content
    assert word in content.split()


@EXAMPLES
@given(rooms=st.lists(st.integers(100, 999), min_size=3, max_size=6, unique=True))
def test_lines_at_the_edge_that_differ_in_a_number_are_content(rooms: list[int]) -> None:
    pages = [[f"Room {room}", f"Seats {room % 7} people."] for room in rooms]

    page = read(print_pdf(pages))

    assert page.content.split() == " ".join(line for lines in pages for line in lines).split()


@EXAMPLES
@given(labels=LABELS, values=st.lists(st.integers(0, 9_999).map(str), min_size=12, max_size=12))
def test_a_value_of_a_form_field_stands_beside_its_label(
    labels: list[str], values: list[str]
) -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    for at, (label, value) in enumerate(zip(labels, values, strict=False)):
        base = 740 - 40 * at
        canvas.drawString(60, base, label)
        canvas.acroForm.textfield(name=str(at), value=value, x=250, y=base - 6, height=20)
    canvas.save()

    page = read(file.getvalue())

    filled = zip(labels, values, strict=False)
    assert rows_of(page) == [list(row) for row in filled]


def test_all_selected_options_of_a_form_are_read_by_their_labels() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    options = [("Earth", "E1"), ("Mars", "M2"), ("Venus", "V3")]
    canvas.drawString(60, 700, "Planets")
    canvas.acroForm.listbox(
        value=["E1", "V3"], options=options, fieldFlags="multiSelect", x=250, y=690, height=60
    )
    canvas.save()

    assert read(file.getvalue()).content == "Planets Earth, Venus"


@pytest.mark.parametrize(
    ("fields", "counted"), [(1, []), (3, ["1 annotation left out: a page can have at most"])]
)
def test_a_long_value_of_a_form_is_read_or_counted(fields: int, counted: list[str]) -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(60, 800, "Remarks")
    for at in range(fields):
        canvas.acroForm.textfield(name=str(at), value="value " * 100_000, maxlen=None, y=90 * at)
    canvas.save()

    page = read(file.getvalue())

    assert page.content.count("value") == 100_000 * min(fields, 2)
    assert [str(left_out)[:46] for left_out in page.left_out] == counted


@EXAMPLES
@given(old=st.integers(100, 9_999), new=st.integers(100, 9_999), size=st.sampled_from([10, 20, 34]))
def test_struck_out_text_is_marked(old: int, new: int, size: int) -> None:
    text = f"Price: <strike>{old} euros</strike> <font size={size}>{new} euros</font>"

    page = read(build([Paragraph(text, TEXT)]))

    assert page.content.replace("# ", "") == f"Price: ~~{old} euros~~ {new} euros"


@EXAMPLES
@given(
    labels=LABELS.filter(lambda labels: len(labels) > 1),
    data=st.data(),
    is_drawn=st.booleans(),
    gap=st.sampled_from([1.0, 3.0]),
)
def test_values_beside_each_other_under_one_head_have_a_column_each(
    labels: list[str], data: st.DataObject, is_drawn: bool, gap: float
) -> None:
    values = st.lists(st.integers(1_000, 9_999).map(str), min_size=4, max_size=4)
    rows = [[label, *data.draw(values)] for label in labels]
    width = 4 * 5.56
    rights = [250.0, 250.0 + width + 10 * gap, 420.0, 420.0 + width + 10 * gap]
    heads = [(rights[0] + 5 * gap, "Members"), (rights[2] + 5 * gap, "Guests of members")]
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Helvetica", 10)
    canvas.drawString(62, 740, "Month")
    for middle, head in heads:
        canvas.drawCentredString(middle, 740, head)
    for at, (label, *own) in enumerate(rows):
        canvas.drawString(62, 720 - 14 * at, label)
        for right, value in zip(rights, own, strict=True):
            canvas.drawRightString(right, 720 - 14 * at, value)
    if is_drawn:
        canvas.grid([58, 200, 350, 530], [752, *(732 - 14 * at for at in range(len(rows) + 1))])
    canvas.save()

    assert rows_of(read(file.getvalue())) == [
        ["Month", "Members", "Members", "Guests of members", "Guests of members"],
        *rows,
    ]


@EXAMPLES
@given(labels=LABELS.filter(lambda labels: len(labels) > 2), values=st.lists(NUMBERS, min_size=12))
def test_a_label_belongs_to_its_row_where_lines_are_drawn_between_the_values_alone(
    labels: list[str], values: list[str]
) -> None:
    rows = [list(row) for row in zip(labels, values, values[::-1], strict=False)]
    inner = [("INNERGRID", (1, 1), (-1, -1), 0.5, colors.black)]
    style = [*RULES, *COLUMNS, *inner]
    table = Table([["Item", "Before", "After"], *rows], colWidths=[160, 90, 90], style=style)

    assert rows_of(read(build([table]))) == [["Item", "Before", "After"], *rows]


@EXAMPLES
@given(labels=LABELS.filter(lambda labels: len(labels) > 3), data=st.data())
def test_a_line_that_heads_some_rows_leaves_the_table_whole(
    labels: list[str], data: st.DataObject
) -> None:
    group, *others = labels
    values = st.lists(st.integers(1_000, 9_999).map(str), min_size=3, max_size=3)
    rows = [[label, *data.draw(values)] for label in others]
    head = ["Item", "Small", "Large", "All"]
    table = Table([head, rows[0], [group, "", "", ""], *rows[1:]], colWidths=[160, 90, 90, 90])

    assert rows_of(read(build([table]))) == [head, rows[0], [group], *rows[1:]]
