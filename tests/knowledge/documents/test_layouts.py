"""PDF files of many kinds: what is asked is answered from the right place."""

import io
import sys
from collections.abc import Callable

import pytest
from reportlab.pdfgen.canvas import Canvas

from knowledge import chunking
from knowledge.chunking import ChunkText
from knowledge.documents.errors import PicturesError
from knowledge.documents.page import BlockKind, Page
from knowledge.documents.pdf import pdf_reader
from knowledge.documents.recognition import load_recogniser
from tests.knowledge.documents import layouts
from tests.knowledge.documents.printing import print_pdf


def read(data: bytes) -> Page:
    return pdf_reader.read(data, "a.pdf")


def find(page: Page, words: str) -> ChunkText:
    """Return the passage with these words; there is exactly one."""
    (passage,) = [found for found in chunking.passages(page) if words in found.text]
    return passage


@pytest.mark.parametrize(
    ("make", "words", "heading", "place"),
    [
        (layouts.make_numbered_handbook, "28 days of vacation", "2. Vacation", 1),
        (layouts.make_numbered_handbook, "Core hours are from ten", "1. Working hours", 1),
        (layouts.make_numbered_handbook, "needed from the third day", "3. Sick leave", 1),
        (layouts.contract, "2.1 Either party may terminate", "2. Termination", 1),
        (layouts.contract, "limited to the fees of twelve", "3. Liability", 1),
        (layouts.manual, "2. Connect the cable.", "Installation", 2),
        (layouts.slides, "- Hire ten people", "Goals of 2026", 1),
        (layouts.slides, "Two million", "Budget", 3),
        (layouts.report, "rose by 7 %", "Europe", 1),
        (layouts.report, "expect 3 %", "Outlook", 1),
        (layouts.report, "fell by 2 %", "Asia", 1),
        (layouts.questions_and_answers, "from 500 EUR", "Can I pay by invoice?", 1),
        (layouts.form, "within 30 days", "Travel expenses", 1),
        (layouts.invoice, "due within 14 days", "Invoice 2026-17", 1),
        (layouts.plain_table, "| E20 | No ink |", "Errors", 1),
    ],
)
def test_an_answer_is_found_below_its_heading_and_on_its_page(
    make: Callable[[], bytes], words: str, heading: str, place: int
) -> None:
    page = read(make())
    passage = find(page, words)

    assert (passage.heading_path or (page.title,))[-1] == heading
    assert passage.anchor == f"page={place}"


def test_a_table_in_one_column_is_no_table_of_both_columns() -> None:
    page = read(layouts.make_columns_of_prose_and_table())

    texts = [block.text for block in page.blocks]
    assert "Use the filter with cold drinking water only, from 4 to 30 degrees. " in (
        find(page, "well water").text.replace("\n", " ")
    )
    assert [text for text in texts if text.startswith("| Symptom")] == [
        "| Symptom | Cause | Remedy |\n|---|---|---|\n"
        "| Little water | Cartridge is blocked | Change the cartridge |\n"
        "| Water is cloudy | Air in the line | Flush for two minutes |\n"
        "| Leak at the inlet | Seal is worn | Replace the seal |"
    ]
    assert texts[-1] == "The warranty is three years from the date of purchase."


def test_a_numbered_item_that_goes_on_in_the_next_line_is_no_heading() -> None:
    page = read(layouts.make_columns_of_prose_and_table())

    headings = [block.text for block in page.blocks if block.kind is BlockKind.HEADING]
    assert headings == ["Safety", "Installation", "Troubleshooting", "Warranty"]


def test_a_numbered_heading_is_not_glued_to_its_sentence() -> None:
    page = read(layouts.make_numbered_handbook())

    headings = [block.text for block in page.blocks if block.kind is BlockKind.HEADING]
    assert headings == ["Employee Handbook", "1. Working hours", "2. Vacation", "3. Sick leave"]
    assert page.title == "Employee Handbook"
    assert "Page 1" not in page.content


def test_columns_are_read_one_after_the_other() -> None:
    page = read(layouts.two_columns())

    assert [block.text for block in page.blocks if block.level] == [
        "Insects in winter",
        "Bees",
        "Wasps",
    ]
    bees, wasps = (block.text for block in page.blocks if block.kind is BlockKind.TEXT)
    assert "wasps" not in bees
    assert "bees" not in wasps
    assert bees.count("keep the hive warm in winter.") == 22


def test_columns_of_prose_with_figures_between_are_no_rows_of_a_table() -> None:
    page = read(layouts.make_columns_of_prose_and_figures())

    assert "| 40 | 60 | 80 |" in page.content
    prose = [block.text for block in page.blocks if block.kind is BlockKind.TEXT]
    assert not [text for text in prose if "bees" in text and "wasps" in text]
    assert sum(text.count("how bees keep the hive warm") for text in prose) == 6


def test_columns_of_short_lines_are_no_rows_of_a_table() -> None:
    page = read(layouts.make_columns_of_short_lines())

    assert not [block for block in page.blocks if block.kind is BlockKind.TABLE]
    assert page.content.index("9. Open valve V-9.") < page.content.index("Pump 0: 4 bar")


def test_lines_that_begin_with_a_sign_of_no_width_are_no_table() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    for base in (700, 676):
        canvas.setFont("Helvetica", 2)
        canvas.drawString(60, base, ".")
        canvas.setFont("Helvetica", 10)
        canvas.drawString(72, base, "The valve opens at six bar and")
        canvas.drawString(60, base - 12, "closes at four bar again.")
    canvas.save()

    (block,) = read(file.getvalue()).blocks
    assert block.text.count("The valve opens at six bar and closes at four bar again.") == 2


def test_justified_lines_of_two_words_are_no_table() -> None:
    rows = ["The valve", "of pumps", "requires inspection", "every quarter."]
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Helvetica", 10)
    for at, row in enumerate(rows[:2]):
        first, second = row.split()
        canvas.drawString(60, 700 - 12 * at, first)
        canvas.drawRightString(60 + canvas.stringWidth(rows[2]), 700 - 12 * at, second)
    for at, row in enumerate(rows[2:], start=2):
        canvas.drawString(60, 700 - 12 * at, row)
    canvas.save()

    assert read(file.getvalue()).content == " ".join(rows)


def test_a_ruled_header_below_other_rows_begins_its_own_table() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    rows = [("Ordered", "Due"), ("7 May", "21 May"), ("Article", "Price"), ("Valve", "42.00")]
    for at, row in enumerate(rows):
        canvas.setFont("Helvetica" if at % 2 else "Helvetica-Bold", 10)
        for column, text in enumerate(row):
            canvas.drawString(60 + 150 * column, 700 - 20 * at, text)
    for base in (672, 652):
        canvas.line(60, base, 260, base)
    canvas.save()

    content = read(file.getvalue()).content
    assert "| Article | Price |\n|---|---|\n| Valve | 42.00 |" in content
    assert "| Ordered | Due |\n|---|---|\n| 7 May | 21 May |" in content


def test_a_cell_of_two_lines_is_one_cell() -> None:
    page = read(layouts.plain_table())

    assert page.blocks[-1].text == (
        "| Error | Meaning | What to do |\n|---|---|---|\n| E10 | Paper jam | Open the lid |\n"
        "| E20 | No ink | Replace the cartridge and press start |"
    )


def test_the_head_of_a_group_is_not_joined_to_the_row_below_it() -> None:
    page = read(layouts.make_table_with_groups())

    assert page.blocks[-1].text.split("\n")[2:] == [
        "| Property with a long name here |  |  |",
        "| Land in the city | 410 | 420 |",
        "| Buildings | 95 | 97 |",
        "| Claims |  |  |",
        "| Customers and other parties | 61 | 64 |",
        "| Loans that were given to Employees abroad | 7 | 9 |",
    ]


def test_a_title_with_the_number_of_its_page_is_a_running_head_and_not_a_heading() -> None:
    page = read(layouts.make_chapters_with_running_titles())

    texts = [block.text for block in page.blocks if block.kind is BlockKind.HEADING]
    assert [text for text in texts if "." in text] == ["1. Pumps and valves", "2. Users and groups"]
    assert ("header or footer line", 6) in [(left.what, left.count) for left in page.left_out]


def test_large_titles_that_differ_in_their_numbers_are_headings() -> None:
    page = read(layouts.make_slides_with_numbered_titles())

    headings = [block.text for block in page.blocks if block.kind is BlockKind.HEADING]
    assert headings == ["Step 1", "Step 2", "Step 3", "Step 4"]


def test_pages_that_have_only_lines_at_their_edges_are_read() -> None:
    page = read(layouts.make_signs())

    assert {"Keep this door closed.", "Ring for service."} <= {block.text for block in page.blocks}


def test_totals_at_the_end_of_pages_are_kept_although_they_name_no_page() -> None:
    page = read(layouts.make_chapters_with_running_titles(totals=(400, 380, 410)))

    assert all(f"Total {total}" in page.content for total in (400, 380, 410))


def test_a_line_above_the_first_rule_of_a_table_is_no_row_of_it() -> None:
    page = read(layouts.make_table_below_wide_gap())

    assert [block.text for block in page.blocks] == [
        "The pump stops. It has a limit of its own.",
        "| Model | Flow |\n|---|---|\n| KX-40 | 12 |\n| KX-60 | 18 |",
    ]


def test_rules_below_the_header_alone_do_not_join_the_rows() -> None:
    page = read(layouts.make_table_with_ruled_header())

    assert page.blocks[-1].text == (
        "| Model | Flow |\n|---|---|\n| KX-40 | 12 |\n| KX-60 | 18 |\n| KX-80 | 25 |"
    )


def test_a_manual_has_no_contents_and_no_hyphens() -> None:
    page = read(layouts.manual())

    assert "....." not in page.content
    assert page.content.count("Disposal") == 1
    assert page.content.count("Manual M-7") == 1
    assert "The maintenance of the office unit is yearly." in page.content
    assert "```\nif ready:\n    send(--all, 'x|y')\n```" in page.content


def test_a_letter_without_a_heading_has_no_title_of_its_program() -> None:
    page = read(layouts.letter())

    assert page.title == ""
    assert "delivered on Monday, 4 May" in page.content


def test_lines_to_fill_are_no_text() -> None:
    assert "____" not in read(layouts.form()).content


def test_scanned_pages_are_said_to_be_unreadable() -> None:
    with pytest.raises(PicturesError, match=r"pictures \(2 of 2\)"):
        pdf_reader.read(layouts.scan(2), "a.pdf", lambda _: ())


def test_scanned_pages_without_the_extra_name_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    load_recogniser.cache_clear()
    try:
        with pytest.raises(PicturesError, match=r"\(2 of 2\); .* install the extra refdesk\[ocr\]"):
            pdf_reader.read(layouts.scan(2), "a.pdf")
    finally:
        load_recogniser.cache_clear()


def test_values_behind_rows_of_dots_are_no_contents_and_keep_their_labels() -> None:
    menu = ["Espresso ......... 2", "Cappuccino ........ 3", "Hot chocolate ..... 4"]

    page = pdf_reader.read(print_pdf([menu, ["We are open until ten."]]), "a.pdf")

    assert page.blocks[0].text == "Espresso … 2\nCappuccino … 3\nHot chocolate … 4"


def test_years_beside_values_are_no_line_numbers() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(50, 740, "Freshwater ducks")
    for at, ducks in enumerate((120, 135, 150, 170, 160, 180)):
        canvas.drawRightString(120, 720 - 14 * at, str(2019 + at))
        canvas.drawRightString(170, 720 - 14 * at, str(ducks))
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert "2019" in page.content
    assert page.left_out == ()


def test_a_note_in_small_print_at_the_end_of_a_page_is_kept() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    for price in (400, 420):
        canvas.setFont("Helvetica", 12)
        canvas.drawString(50, 740, f"The hose costs {price} euros.")
        canvas.setFont("Helvetica", 7)
        canvas.drawString(50, 30, f"Without tax; with it {price + 80} euros.")
        canvas.showPage()
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert "480" in page.content
    assert "500" in page.content


NOTE = ["Return of keys", "by members"]
PROSE = [
    "The members of the club elect a board every second year, which has five seats.",
    "It meets at least once a month and writes minutes of each meeting that members",
    "may read. A member who leaves the club returns the key within two weeks, or pays",
    "for a new lock. The rooms are open on each day of the week from eight to ten.",
]


@pytest.mark.parametrize(
    ("left", "size", "place"), [(40, 7, 1), (520, 7, 1), (520, 7.5, 2), (520, 14, 1)]
)
def test_a_note_beside_prose_is_no_part_of_its_lines(left: float, size: float, place: int) -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Helvetica", 10)
    for at, line in enumerate(PROSE):
        canvas.drawString(110, 740 - 13 * at, line)
    canvas.setFont("Helvetica", size)
    for at, line in enumerate(NOTE):
        canvas.drawString(left, 740 - 13 * place - 1.2 * size * at, line)
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    texts = [block.text for block in page.blocks]
    note = [text for text in texts if text in (" ".join(NOTE), *NOTE)]
    assert " ".join(note) == " ".join(NOTE)
    assert " ".join(text for text in texts if text not in note) == " ".join(PROSE)


def test_labels_in_another_size_than_their_texts_stay_cells() -> None:
    rows = [
        ("Bedroom", "A bed, a table and two chairs"),
        ("Kitchen", "A stove, a sink and a table"),
    ]
    file = io.BytesIO()
    canvas = Canvas(file)
    for at, (label, text) in enumerate(rows):
        canvas.setFont("Helvetica", 12)
        canvas.drawString(50, 740 - 14 * at, label)
        canvas.setFont("Helvetica", 9)
        canvas.drawString(150, 740 - 14 * at, text)
    canvas.save()

    content = pdf_reader.read(file.getvalue(), "a.pdf").content

    assert all(f"| {label} | {text} |" in content for label, text in rows)


def test_text_that_is_drawn_again_over_the_box_that_covers_it_is_shown() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    for price, is_drawn_again in (("400 euros", True), ("350 euros", False)):
        base = 700 - len(price) * 5 - 100 * is_drawn_again
        canvas.setFillGray(0)
        canvas.drawString(50, base, price)
        canvas.setFillColorRGB(0.8, 0.9, 1)
        canvas.rect(40, base - 5, 200, 20, stroke=0, fill=1)
        canvas.setFillGray(0)
        if is_drawn_again:
            canvas.drawString(50, base, price)
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert page.content == "400 euros"
    assert [(part.what, part.count) for part in page.left_out] == [("hidden word", 2)]


def test_another_text_over_the_box_that_covers_a_text_replaces_it() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(50, 700, "8.640,00 EUR")
    canvas.setFillGray(1)
    canvas.rect(48, 696, 90, 16, stroke=0, fill=1)
    canvas.setFillGray(0)
    canvas.drawString(50, 700, "9.120,00 EUR")
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert page.content == "9.120,00 EUR"
    assert [(part.what, part.count) for part in page.left_out] == [("hidden word", 2)]


BOX = ("Contact the office on", "extension 4411 before", "you book a holiday.")


@pytest.mark.parametrize("shift", [0, 6])
@pytest.mark.parametrize("is_filled", [False, True])
def test_a_box_in_the_size_of_the_prose_beside_it_is_no_part_of_its_lines(
    is_filled: bool, shift: float
) -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFillGray(0.9)
    canvas.rect(50, 740 - 13 * 3 - shift, 120, 13 * 4, stroke=not is_filled, fill=is_filled)
    canvas.setFillGray(0)
    canvas.setFont("Helvetica", 10)
    for at, line in enumerate(PROSE):
        is_beside = at < 3 + bool(shift)
        canvas.drawString(180 if is_beside else 50, 740 - 13 * at, line)
    for at, line in enumerate(BOX):
        canvas.drawString(56, 740 - 13 * at - shift, line)
    canvas.save()

    texts = [block.text for block in pdf_reader.read(file.getvalue(), "a.pdf").blocks]

    texts.remove(" ".join(BOX))
    assert " ".join(texts) == " ".join(PROSE)


def print_rows(rows: list[dict[float, str]]) -> bytes:
    """Return a page with rows of cells by their right or, with a minus, their left end."""
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Helvetica", 10)
    for at, row in enumerate(rows):
        for end, text in row.items():
            (canvas.drawRightString if end > 0 else canvas.drawString)(
                abs(end), 700 - 16 * at, text
            )
    canvas.save()
    return file.getvalue()


def test_headers_with_only_a_space_between_are_those_of_their_own_columns() -> None:
    rows = [
        ("Paper", "21%", "10", "4,50"),
        ("Toner", "21%", "2", "89,00"),
        ("Book", "9%", "1", "25,00"),
    ]
    ends = (-60, 300, 360, 430)
    header = ("Article", "BTW", "Hoeveelheid", "Prijs")

    page = read(print_rows([dict(zip(ends, row, strict=True)) for row in (header, *rows)]))

    assert page.content.splitlines()[0] == "| Article | BTW | Hoeveelheid | Prijs |"


def test_a_header_of_several_columns_is_not_divided_between_them() -> None:
    rows = [("North", "120", "130"), ("South", "220", "230"), ("West", "320", "330")]
    table: list[dict[float, str]] = [dict(zip((-60, 300, 340), row, strict=True)) for row in rows]

    page = read(print_rows([{-60: "Region", 345: "Turnover 2025"}, *table]))

    assert page.content.splitlines()[0] == "| Region | Turnover 2025 | Turnover 2025 |"


def test_rows_whose_text_runs_into_the_next_column_stay_rows_with_a_note() -> None:
    overlong = "Payment against the bills no. 133, 132, 139, 138, 143, 140 and 142"
    table: list[dict[float, str]] = [
        {-50: "Date", -120: "Type", -180: "Particulars", 420: "Debit", 480: "Credit"},
        {-50: "01-Apr-16", -120: "A", -180: "Opening balance", 420: "100", 480: "27614207"},
        {-50: "13-May-16", -120: "BP", -180: overlong + " of May", 530: "1207631"},
        {-50: "25-Jun-16", -120: "BP", -180: overlong + " of June", 530: "1074935"},
    ]

    page = read(print_rows(table))

    assert page.content.splitlines()[-2:] == [
        f"13-May-16 BP {overlong} of May 1207631", f"25-Jun-16 BP {overlong} of June 1074935",
    ]  # fmt: skip
    assert [part.what for part in page.left_out] == ["table structure"]


def test_a_point_that_is_drawn_after_its_number_is_in_its_place() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Helvetica", 10)
    canvas.drawString(50, 700, "Yield")
    for left, text in ((100, "1"), (108.4, "9"), (105.6, ".")):
        canvas.drawString(left, 700, text)
    canvas.save()

    assert read(file.getvalue()).content.split()[-1] == "1.9"


def test_each_label_of_an_invoice_keeps_its_own_amount_and_a_centred_cell_its_row() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    lines = [
        (700, "Ref.", "Item", "", "Total"), (684, "", "Oak window", "", ""),
        (679, "MN-04", "", "", "2,450.00"), (674, "", "two panes", "", ""),
        (660, "PO-11", "Fitting", "", "980.00"), (648, "", "Discount 5 %", "", "-171.50"),
        (632, "", "", "Net", "3,258.50"), (620, "", "", "Tax 20 %", "651.70"),
    ]  # fmt: skip
    canvas.setFont("Helvetica", 10)
    for base, *texts in lines:
        for text, left in zip(texts, (50, 110, 300, 0), strict=True):
            (canvas.drawString if left else canvas.drawRightString)(left or 450, base, text)
    for base in (694, 642):
        canvas.line(50, base, 450, base)
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert page.blocks[-1].text.split("\n")[2:] == [
        "| MN-04 | Oak window two panes |  | 2,450.00 |",
        "| PO-11 | Fitting |  | 980.00 |",
        "|  | Discount 5 % |  | -171.50 |",
        "|  |  | Net | 3,258.50 |",
        "|  |  | Tax 20 % | 651.70 |",
    ]
