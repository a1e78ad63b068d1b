"""The text of a PDF page is read in the order in which a person reads it."""

import io
from collections.abc import Sequence
from itertools import chain
from typing import Any

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import SimpleDocTemplate, Table

from knowledge.documents.page import BlockKind, Page
from knowledge.documents.pdf import pdf_reader
from tests.knowledge.documents.layouts import GRID

RENT = (
    "he committee met in the spring and decided to",
    "renew the lease of the house in the old town. It",
    "agreed that the rent of 1,250 euros is fair, and",
    "asked the treasurer to sign it before the summer",
    "begins. The next meeting is on the first of June.",
)
KEYS = (
    "Members who leave the club return their keys",
    "within two weeks, or they pay 40 euros for a new",
    "lock. The rooms are open on every day from eight",
    "to ten, but not in August. The board may close",
    "them for a day if the house has to be cleaned.",
)
Text = tuple[float, float, float, str]
"""Its left end, its baseline, its size and its words."""


def draw(texts: Sequence[Text], boxes: Sequence[tuple[float, float, float, float]] = ()) -> Page:
    """Return the page with texts, drawn after the boxes behind them."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    canvas.setFillGray(0.9)
    for box in boxes:
        canvas.rect(*box, stroke=0, fill=1)
    canvas.setFillGray(0)
    for left, base, size, text in texts:
        canvas.setFont("Helvetica", size)
        canvas.drawString(left, base, text)
    canvas.save()
    return pdf_reader.read(file.getvalue(), "a.pdf")


def stack(lines: Sequence[str], left: float, top: float = 740) -> list[Text]:
    """Return lines of text below each other."""
    return [(left, top - 12 * at, 10, line) for at, line in enumerate(lines)]


@pytest.mark.parametrize(("beside", "raised"), [(0, 0), (2, 0), (3, 0), (3, 10)])
def test_a_large_first_letter_begins_its_word(beside: int, raised: float) -> None:
    lines = [
        (80 if at < beside else 60, base, size, text)
        for at, (_, base, size, text) in enumerate(stack(RENT, 60))
    ]
    height = 12 * (beside - 1) + 7 if beside else 17
    base = 740.0 + raised - 12 * max(beside - 1, 0)
    letter = (62.0 if beside else 48.0, base, (height - raised) / 0.72, "T")

    (block,) = draw([letter, *lines]).blocks

    assert (block.kind, block.text) == (BlockKind.TEXT, f"T{' '.join(RENT)}")


def test_a_large_letter_beside_a_text_that_ends_there_is_a_word() -> None:
    page = draw(
        [(60, 728, 27, "A"), *stack(("excellent in all of the", "subjects of the year"), 85)]
    )

    assert page.content == "A excellent in all of the subjects of the year"


@pytest.mark.parametrize("has_rows", [False, True])
@pytest.mark.parametrize(
    "caption", [("Costs by year",), ("Costs by year, in euros", "without tax")]
)
def test_a_caption_is_read_with_the_table_below_both_columns(
    caption: Sequence[str], has_rows: bool
) -> None:
    rows = [["Item", "2021", "2022", "2023"], ["Rent", "11", "12", "13"], ["Heat", "4", "5", "6"]]
    rows += [[f"Item {at}", f"{at}1", f"{at}2", f"{at}3"] for at in range(1, 6)]
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    canvas.setFont("Helvetica", 10)
    for left, base, _, text in (*stack(RENT * 2, 50, 760), *stack(KEYS * 2, 310, 760)):
        canvas.drawString(left, base, text)
    for at, line in enumerate(caption):
        canvas.drawString(50, 628 - 12 * at, line)
    style: list[Any] = GRID if has_rows else [("LINEABOVE", (0, 0), (-1, 0), 1, "black")]
    table = Table(rows, colWidths=[210, 100, 100, 85], style=style)
    _, height = table.wrapOn(canvas, 500, 500)
    table.drawOn(canvas, 50, 632 - 12 * len(caption) - height)
    canvas.save()

    blocks = pdf_reader.read(file.getvalue(), "a.pdf").blocks

    assert [block.text for block in blocks[-2:-1]] == [" ".join(caption)]
    assert all(f"| {' | '.join(row)} |" in blocks[-1].text for row in rows)
    assert [block.text for block in blocks[:-2]] == [" ".join(RENT * 2), " ".join(KEYS * 2)]


@pytest.mark.parametrize("layout", ["near rows", "in a frame", "repeated header"])
def test_running_heads_near_a_table_are_no_rows_of_it(layout: str) -> None:
    rows = [["Name", "Amount", "Date"]]
    rows += [[f"Member {at}", f"{at * 13}.50", f"2026-01-{at % 28 + 1:02}"] for at in range(99)]
    width, height = A4

    def decorate(canvas: Canvas, document: Any) -> None:
        if layout == "in a frame":
            canvas.rect(40, 40, width - 80, height - 80)
        canvas.setFont("Helvetica", 8)
        canvas.drawString(60, height - 52, "Acme list of members")
        canvas.drawRightString(530, height - 52, "confidential")
        canvas.drawString(60, 46, f"Page {document.page} of 3")
        canvas.drawRightString(530, 46, "printed in March")

    file = io.BytesIO()
    template = SimpleDocTemplate(
        file, pagesize=A4, topMargin=56, bottomMargin=60, leftMargin=34, rightMargin=34
    )
    style = GRID if layout == "in a frame" else []
    repeated = int(layout == "repeated header")
    table = Table(rows, [(width - 80) / 3] * 3, style=style, repeatRows=repeated)
    template.build([table], onFirstPage=decorate, onLaterPages=decorate)

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    tables = [block.text for block in page.blocks if block.kind is BlockKind.TABLE]
    header = f"| {' | '.join(rows[0])} |\n|---|---|---|\n"
    assert "\n".join(table.removeprefix(header) for table in tables) == "\n".join(
        f"| {' | '.join(row)} |" for row in rows[1:]
    )
    texts = [block.text for block in page.blocks if block.kind is not BlockKind.TABLE]
    assert texts == ["Acme list of members confidential", "Page 1 of 3 printed in March"]


CARDS = (
    ((11, "Revenue"), (24, "4.2M"), (9, "up from 3.9M in 2023")),
    ((11, "Staff"), (24, "310"), (9, "of them 42 abroad")),
    ((11, "Offices"), (24, "17"), (9, "in six countries")),
)
IN_ORDER = " ".join(text for card in CARDS for _, text in card)


def lay_out_cards(shift: float) -> list[list[Text]]:
    """Return cards beside each other, each lower than the one to its left."""
    return [
        [
            (60 + 170 * column, 700 - below - shift * column, size, text)
            for below, (size, text) in zip((0, 30, 50), card, strict=True)
        ]
        for column, card in enumerate(CARDS)
    ]


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("shift", [0, 7])
@pytest.mark.parametrize("is_drawn_by_row", [False, True])
def test_boxes_beside_each_other_are_read_one_after_the_other(
    rows: int, shift: float, is_drawn_by_row: bool
) -> None:
    cards = [
        [(left, base - 120 * row, size, text) for left, base, size, text in card]
        for row in range(rows)
        for card in lay_out_cards(shift)
    ]
    texts = [text for line in zip(*cards, strict=True) for text in line]
    boxes = [(card[0][0] - 8, card[0][1] - 60 + shift, 150.0, 80.0) for card in cards]

    page = draw(texts if is_drawn_by_row else list(chain(*cards)), boxes)

    words = " ".join(block.text for block in page.blocks).split()
    assert " ".join(words) == " ".join([IN_ORDER] * rows)
    assert page.left_out == ()


def test_columns_of_values_in_boxes_are_a_table() -> None:
    columns = (("Feature", "Users", "Storage"), ("Basic", "5", "10"), ("Pro", "50", "100"))
    texts = [text for at, column in enumerate(columns) for text in stack(column, 60 + 170 * at)]

    page = draw(texts, [(52 + 170 * at, 700, 150, 60) for at in range(3)])

    assert all(f"| {' | '.join(row)} |" in page.content for row in zip(*columns, strict=True))


@pytest.mark.parametrize("is_drawn_by_row", [False, True])
def test_texts_beside_each_other_without_rows_are_read_as_drawn_or_reported(
    is_drawn_by_row: bool,
) -> None:
    cards = lay_out_cards(7)
    texts = [text for line in zip(*cards, strict=True) for text in line]

    page = draw(texts if is_drawn_by_row else list(chain(*cards)))

    if is_drawn_by_row:
        assert [part.what for part in page.left_out] == ["reading order"]
    else:
        assert " ".join(" ".join(block.text for block in page.blocks).split()) == IN_ORDER
        assert page.left_out == ()


ADDRESS = ("Mill Lane Dairy", "Ms Ada Boyle", "14 Tanner Street", "Leeds LS1 4AB")
DETAILS = ("Our reference KB 7 of 12 May", "Your contact Tom Hale", "Extension 5110 or 5127",
           "Delivery in calendar week 24")  # fmt: skip


def read_words(page: Page) -> str:
    """Return the words of a page in its order, without those of headings and tables."""
    return " ".join(block.text for block in page.blocks)


@pytest.mark.parametrize("is_right_first", [False, True])
@pytest.mark.parametrize("has_title", [False, True])
def test_texts_at_the_same_heights_that_are_drawn_one_after_the_other_are_not_rows(
    is_right_first: bool, has_title: bool
) -> None:
    sides = [stack(ADDRESS, 60), stack(DETAILS, 330)]
    title = [(60.0, 790.0, 18.0, "Order of spring cheese for shops")] if has_title else []

    page = draw([*title, *chain(*(reversed(sides) if is_right_first else sides))])

    shown = [text for *_, text in title] + list(ADDRESS) + list(DETAILS)
    assert " ".join(read_words(page).split()) == " ".join(shown)
    assert page.left_out == ()


def test_the_same_texts_drawn_line_by_line_are_rows() -> None:
    lines = zip(stack(ADDRESS, 60), stack(DETAILS, 330), strict=True)

    page = draw([text for line in lines for text in line])

    words = read_words(page)
    assert words.index(ADDRESS[0]) < words.index(DETAILS[0]) < words.index(ADDRESS[1])


def test_heads_drawn_as_a_row_above_texts_beside_each_other_are_read_with_them() -> None:
    heads = [(60.0, 760.0, 12.0, "Moving home?"), (330.0, 760.0, 12.0, "Trouble paying?")]
    texts = [*stack(RENT, 60, 735), *stack(KEYS, 330, 735)]

    words = " ".join(read_words(draw([*heads, *texts])).split())

    assert words == " ".join(["Moving home?", *RENT, "Trouble paying?", *KEYS])


def test_running_heads_drawn_after_texts_beside_each_other_are_read_above_them() -> None:
    running = [(60.0, 820.0, 8.0, "Policy 07"), (480.0, 820.0, 8.0, "Remote work")]

    words = read_words(draw([*stack(RENT, 60), *stack(KEYS, 330), *running]))

    assert words.index("Remote work") < words.index(RENT[0]) < words.index(KEYS[0])


def test_cards_without_boxes_are_read_one_after_the_other() -> None:
    people = [
        (f"Name {n}", f"Head of unit {n}", f"Room A {n}", f"Extension {n}", f"p{n}@a.example")
        for n in range(12, 18)
    ]
    cards = [stack(card, 60 + 170 * (n % 3), 740 - 90 * (n // 3)) for n, card in enumerate(people)]

    words = read_words(draw(list(chain(*cards))))

    assert " ".join(words.split()) == " ".join(chain(*people))


@pytest.mark.parametrize(
    ("colon", "values"),
    [("", ("12", "1981", "171", "40")), (":", ("Ada Boyle", "Leeds", "171", "40")),
     (":", ("Ada Boyle", "Leeds", "Large", "None known"))],
)  # fmt: skip
def test_labels_drawn_before_all_values_of_a_form_are_beside_them(
    colon: str, values: Sequence[str]
) -> None:
    labels = [f"{label}{colon}" for label in ("Name", "Born in", "Size of shirts", "Allergy")]

    page = draw([*stack(labels, 60), *stack(values, 330)])

    for label, value in zip(labels, values, strict=True):
        assert f"| {label} | {value} |" in page.content


def test_cells_with_lines_below_each_other_stay_in_their_rows() -> None:
    rows = [
        (("15", "Mar"), ("Compost orders close", "at the gate")),
        (("22", "Mar"), ("Seed swap in the", "club house")),
        (("5 Apr",), ("General meeting of", "all members at seven")),
    ]
    texts: list[Text] = []
    for number, row in enumerate(rows):
        for column, cell in enumerate(row):
            texts += stack(cell, 60 + 60 * column, 740 - 30 * number)

    page = draw(texts)

    for dates, events in rows:
        assert f"| {' '.join(dates)} | {' '.join(events)} |" in page.content


def test_values_of_form_fields_follow_their_labels() -> None:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    labels = {"Organisation": "Mill Lane Dairy", "Contact person": "Ada Boyle", "Town": "Leeds"}
    for at, label in enumerate(labels):
        canvas.drawString(60, 700 - 30 * at, label)
    for at, label in enumerate(labels):
        canvas.acroForm.textfield(
            name=label, value=labels[label], x=200, y=695 - 30 * at, width=300, height=18
        )
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    for label, value in labels.items():
        assert f"| {label} | {value} |" in page.content


def test_a_table_of_texts_that_is_drawn_column_by_column_keeps_its_rows() -> None:
    parts = ("Part", "Ball bearing", "Shaft seal", "Drive belt")
    places = ("Place", "Hall A, shelf 3", "Hall A, shelf 4", "Hall B, shelf 1")
    texts = [
        (left, 740.0 - 19 * at, 9.0, text)
        for left, column in ((60.0, parts), (240.0, places))
        for at, text in enumerate(column)
    ]

    page = draw(texts)

    for part, place in zip(parts, places, strict=True):
        assert f"| {part} | {place} |" in page.content


def test_notes_that_begin_above_the_text_beside_them_are_read_in_one_piece() -> None:
    slide = [(60.0, 740.0, 15.0, "Your first week"), *stack(ADDRESS, 60, 715)]
    notes = ["Notes", "Bring your passport on Monday.", "The badge costs 10 pounds."]

    words = read_words(draw([*slide, *stack(notes, 330, 758)]))

    assert " ".join(notes) in " ".join(words.split())


def test_rules_in_another_column_do_not_join_the_rows_of_a_table() -> None:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    rows = ("Item", "One", "Ten"), ("Rye flour", "480 g", "4 kg"), ("Leaven", "210 g", "2 kg")
    for left, shift in ((50, 0), (320, 20)):
        for at, row in enumerate((*rows, ("Salt", "11 g", "110 g"))):
            for step, text in zip((0, 90, 150), row, strict=True):
                canvas.drawString(left + step, 740 - shift - 18 * at, text)
        for base in (755, 734):
            canvas.line(left, base - shift, left + 190, base - shift)
    canvas.save()

    content = pdf_reader.read(file.getvalue(), "a.pdf").content

    assert content.count("| Leaven | 210 g | 2 kg |") == 2


def test_the_lower_part_of_a_page_that_is_drawn_first_is_read_last() -> None:
    parts = [*stack(ADDRESS, 60, 180), *stack(DETAILS, 330, 190)], [(60.0, 740.0, 10.0, "Invoice")]

    words = read_words(draw(list(chain(*parts))))

    assert " ".join(words.split()) == " ".join(["Invoice", *ADDRESS, *DETAILS])


def test_small_cards_in_a_grid_are_cells() -> None:
    people = [(f"Team {n}", f"Name {n} Smith", f"ext. 22{n}") for n in range(10, 14)]
    cards = [stack(card, 60 + 130 * (n % 2), 740 - 42 * (n // 2)) for n, card in enumerate(people)]

    page = draw(list(chain(*cards)))

    assert all(" ".join(card) in page.content for card in people)
