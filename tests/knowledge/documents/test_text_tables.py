"""Tables of a PDF without drawn cells, and lines that are beside or below each other."""

import io
from collections.abc import Iterable, Sequence

import pytest
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from knowledge.documents.page import BlockKind, Page
from knowledge.documents.pdf import pdf_reader

Text = tuple[float, float, str]
"""The place of a text from the left and from below, and the text; bold if it begins with `*`."""


def print_texts(
    texts: Iterable[Text],
    rules: Sequence[tuple[float, float, float]] = (),
    size: float = 9,
    grid: float = 0,
) -> Page:
    """Return the page that is read from texts and rules (left, right and place from below).

    At `grid`, and at both ends of the first rule, there are vertical lines between the rules.
    """
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    for left, base, text in texts:
        canvas.setFont("Helvetica-Bold" if text.startswith("*") else "Helvetica", size)
        canvas.drawString(left, base, text.removeprefix("*"))
    for left, right, base in rules:
        canvas.line(left, base, right, base)
    for left in (*rules[0][:2], grid) if grid else ():
        canvas.line(left, rules[0][2], left, rules[-1][2])
    canvas.save()
    return pdf_reader.read(file.getvalue(), "a.pdf")


def place(rows: Sequence[Sequence[str]], lefts: Sequence[float], pitch: float = 16) -> list[Text]:
    """Return the texts of rows below 700 points."""
    return [
        (left, 700 - pitch * at, text)
        for at, row in enumerate(rows)
        for left, text in zip(lefts, row, strict=False)
        if text
    ]


def list_tables(page: Page) -> list[list[str]]:
    return [block.text.split("\n") for block in page.blocks if block.kind is BlockKind.TABLE]


def test_notes_below_items_and_a_column_without_values_stay_in_the_table_of_an_invoice() -> None:
    lefts = (40, 300, 360, 420, 500)
    texts: list[Text] = [(40, 720, "Mill Street 5"), (420, 720, "No. 4711"), (40, 708, "Nantes")]
    texts += [(left, 690, f"*{text}") for left, text in zip(
        lefts, ("Article", "Quantity", "Price", "Rebate %", "Amount"), strict=True)]  # fmt: skip
    items = [("White paint", "12", "48.90", "586.80", "ref. PA-10"),
             ("Primer", "6", "31.50", "189.00", "14.5 h at 42.00"),
             ("Roller", "20", "4.35", "87.00", "delivered in May")]  # fmt: skip
    for at, (name, count, price, amount, note) in enumerate(items):
        base = 672 - 28 * at
        row = (name, count, price, "", amount)
        texts += [(left, base, text) for left, text in zip(lefts, row, strict=True) if text]
        texts.append((46, base - 11, note))
    texts += [(40, 588, "Brush"), (300, 588, "4"), (360, 588, "2.15"), (500, 588, "8.60")]

    page = print_texts(texts, [(39, 556, 687)])

    assert list_tables(page)[-1] == [
        "| Article | Quantity | Price | Rebate % | Amount |",
        "|---|---|---|---|---|",
        "| White paint ref. PA-10 | 12 | 48.90 |  | 586.80 |",
        "| Primer 14.5 h at 42.00 | 6 | 31.50 |  | 189.00 |",
        "| Roller delivered in May | 20 | 4.35 |  | 87.00 |",
        "| Brush | 4 | 2.15 |  | 8.60 |",
    ]


TOWNS = (("Atri", "7", "9", "8", "11", "5"), ("Campli", "3", "5", "4", "6", "5"),
         ("Canzano", "2", "1", "1", "2", "9"))  # fmt: skip
SEXES = ("Town", "Men", "Women", "Men", "Women")
SEXES_SHOWN = "| Town | Full time Men | Full time Women | Part time Men | Part time Women |"
COSTS = ("Town", "Men", "Women", "Rent", "Energy", "Repair")
COSTS_SHOWN = (
    "| Town | Staff Men | Staff Women "
    "| Costs of it Rent | Costs of it Energy | Costs of it Repair |"
)


@pytest.mark.parametrize(
    ("names", "groups", "rules", "shown"),
    [
        (SEXES, ((190, "Full time"), (310, "Part time")), [], SEXES_SHOWN),
        (SEXES, ((168, "Full time"), (288, "Part time")), [(160, 260), (280, 390)], SEXES_SHOWN),
        (SEXES, ((165, "Full time"), (285, "Part time")), [], None),
        (COSTS, ((200, "Staff"), (350, "Costs of it")), [(165, 265), (285, 440)], COSTS_SHOWN),
        # Costs may be those of energy alone.
        (COSTS, ((200, "Staff"), (350, "Costs of it")), [], f"| {' | '.join(COSTS)} |"),
    ],
)
def test_the_head_of_a_group_is_in_all_of_its_columns_or_shown_as_a_line(
    names: Sequence[str],
    groups: Sequence[tuple[int, str]],
    rules: Sequence[tuple[int, int]],
    shown: str | None,
) -> None:
    lefts = (50, 170, 230, 290, 350, 410)
    heads = [(left, 712.0, text) for left, text in groups]

    page = print_texts(
        [*heads, *place([names, *(row[: len(names)] for row in TOWNS)], lefts, 12)],
        [(left, right, 709.0) for left, right in rules],
    )

    assert [table[0] for table in list_tables(page)] == ([shown] if shown else [])
    is_shared = shown in (SEXES_SHOWN, COSTS_SHOWN)
    assert [part.what for part in page.left_out] == ([] if is_shared else ["table structure"])
    if not is_shared:
        assert f"{groups[0][1]} {groups[1][1]}\n" in page.content
    if shown is None:
        assert "Atri 7; 9; 8; 11" in page.content


@pytest.mark.parametrize(("gap", "lefts"), [(22, (50, 150, 250)), (12, (50, 110, 200))])
def test_a_table_below_another_one_has_a_header_of_its_own(
    gap: int, lefts: tuple[int, int, int]
) -> None:
    towns = [("Town", "People", "Area"), ("Atri", "10", "20"), ("Campli", "11", "21")]
    goods = [("Article", "Price", "Tax"), ("Apple", "1.2", "0.2"), ("Pear", "2.2", "0.4")]
    below = [(left, base - 24 - gap, text) for left, base, text in place(goods, lefts, 12)]

    page = print_texts([*place(towns, (50, 150, 250), 12), *below])

    assert [table[0] for table in list_tables(page)] == [
        f"| {' | '.join(rows[0])} |" for rows in (towns, goods)
    ]


def test_lines_that_are_closer_than_rows_continue_the_cells_of_a_row() -> None:
    lines = [
        (700, "*Item", "*Meaning", "*Cost"), (680, "Long label that", "A first line of", "12.50"),
        (668, "goes on", "a text and a second", ""), (656, "", "line of it", ""),
        (636, "Other", "One line", "8.00"), (616, "Third label", "Another line", "9.00"),
        (604, "wraps too", "", ""),
    ]  # fmt: skip
    lefts = (60, 160, 330)

    page = print_texts(
        (left, base, text)
        for base, *texts in lines
        for left, text in zip(lefts, texts, strict=True)
        if text
    )

    assert list_tables(page)[0][2:] == [
        "| Long label that goes on | A first line of a text and a second line of it | 12.50 |",
        "| Other | One line | 8.00 |",
        "| Third label wraps too | Another line | 9.00 |",
    ]


@pytest.mark.parametrize("has_rules", [True, False])
def test_a_label_in_the_middle_of_rows_is_that_of_each_row_between_two_rules(
    *, has_rules: bool
) -> None:
    lines = [
        (700, "Zone", "Town", "Cost"), (680, "", "Atri", "1.20"), (672, "North", "", ""),
        (664, "", "Campli", "1.40"), (640, "", "Bari", "2.20"), (632, "South", "", ""),
        (624, "", "Lecce", "2.40"),
    ]  # fmt: skip
    rules = [(55.0, 380.0, base) for base in (694.0, 654.0, 616.0)]

    page = print_texts(
        [
            (left, base, text)
            for base, *texts in lines
            for left, text in zip((60, 160, 330), texts, strict=True)
            if text
        ],
        rules if has_rules else [],
    )

    if has_rules:
        assert list_tables(page)[0][2:] == [
            "| North | Atri | 1.20 |", "| North | Campli | 1.40 |",
            "| South | Bari | 2.20 |", "| South | Lecce | 2.40 |",
        ]  # fmt: skip
    else:
        assert page.content.endswith("Atri 1.20\nNorth\nCampli 1.40\nBari 2.20\nSouth\nLecce 2.40")
        assert [part.what for part in page.left_out] == ["table structure"]


def test_a_label_beside_the_middle_of_three_rows_is_reported_as_unclear() -> None:
    rows = [("Zone", "Town", "Cost"), ("", "Atri", "1.20"), ("North", "Campli", "1.40"),
            ("", "Teramo", "1.60"), ("", "Bari", "2.20"), ("South", "Lecce", "2.40"),
            ("", "Foggia", "2.60")]  # fmt: skip

    page = print_texts(place(rows, (50, 100, 200)))

    assert page.content == "\n".join(" ".join(filter(None, row)) for row in rows)
    assert [part.what for part in page.left_out] == ["table structure"]


def test_a_text_of_two_lines_beside_values_is_in_its_column_below_the_header_of_each_page() -> None:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    lefts = (50, 130, 300, 380)
    for page in range(3):
        canvas.setFont("Helvetica", 10)
        texts = place([("Date", "Text", "Debit", "Balance")], lefts)
        for row in range(4):
            base, number = 676 - 30 * row, 4 * page + row
            texts += [(50, base, f"{number + 1:02}.03.2026"), (130, base - 6, "to Mill Ltd")]
            texts += [(130, base + 6, f"Transfer {number}"), (300, base, "13.50")]
            texts.append((380, base, "9.00"))
        for left, height, text in [*texts, (50, 500 - page, f"Part {page} of it goes on.")]:
            canvas.drawString(left, height + 60, text)
        canvas.showPage()
    canvas.save()

    tables = list_tables(pdf_reader.read(file.getvalue(), "a.pdf"))

    assert [table[0] for table in tables] == ["| Date | Text | Debit | Balance |"] * 3
    assert [row for table in tables for row in table[2:]] == [
        f"| {number + 1:02}.03.2026 | Transfer {number} to Mill Ltd | 13.50 | 9.00 |"
        for number in range(12)
    ]


def test_all_values_of_a_row_with_too_many_columns_are_shown() -> None:
    rows = [[str(number + 1000 * row) for number in range(100, 700)] for row in range(1, 4)]
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=(14_000, 800))
    for left, base, text in place(rows, range(50, 13_850, 23)):
        canvas.setFont("Helvetica", 5)
        canvas.drawString(left, base, text)
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert page.content == "\n".join("; ".join(row) for row in rows)
    assert [part.what for part in page.left_out] == ["table structure"]


def test_columns_of_rows_stay_apart_below_a_text_that_spans_them() -> None:
    rows = [("Rate", "Use", "Price"), ("D 01", "household", "2.39"), ("D 02", "workshop", "1.98"),
            ("D 25", "heating", "2.10"), ("Tax of electricity", "", "0.28")]  # fmt: skip

    page = print_texts(place(rows, (50, 100, 200)))

    assert list_tables(page)[0][2:4] == [
        "| D 01 | household | 2.39 |",
        "| D 02 | workshop | 1.98 |",
    ]


def test_numbers_in_columns_of_a_line_are_not_one_number() -> None:
    page = print_texts([(50, 700, "Primer"), (200, 700, "6"), (240, 700, "31.50"), (300, 700, "5")])

    assert page.content.endswith("Primer 6; 31.50; 5")


def test_numbers_below_each_other_in_a_cell_are_not_one_number() -> None:
    rows = [("Substance", "Number"), ("Naphtha", "64742-48-9"), ("", "919-857-5")]

    page = print_texts(
        place(rows, (55, 155), 12), [(50, 250, at) for at in (712, 696, 670)], grid=150
    )

    assert list_tables(page)[0][2:] == ["| Naphtha | 64742-48-9; 919-857-5 |"]


def test_double_spaced_lines_that_end_early_are_texts_of_their_own() -> None:
    lines = ["Close the main valve before you begin with the work at the pump, and wait for a",
             "minute.", "Open the cover.", "Change the seal.", "Close the cover."]  # fmt: skip

    page = print_texts([(50, 700 - 22 * at, line) for at, line in enumerate(lines)])

    assert page.content.split("\n")[-3:] == lines[-3:]
    assert f"{lines[0]} {lines[1]}" in page.content


@pytest.mark.parametrize("sign", [".", "\u00b7", "_", "-"])
def test_a_price_behind_a_row_of_signs_ends_its_line(sign: str) -> None:
    dishes = [("Soup of the day", "6.50 EUR"), ("Pie", "from 9.50"), ("Coffee", "1.80 / 2.20 EUR")]
    lines = [f"{dish} {sign * (40 - len(dish))} {price}" for dish, price in dishes]

    page = print_texts([(50, 700 - 14 * at, line) for at, line in enumerate(lines)])

    assert [line.split()[-1] for line in page.content.split("\n")] == ["EUR", "9.50", "EUR"]
    assert [line.split()[0] for line in page.content.split("\n")] == ["Soup", "Pie", "Coffee"]


@pytest.mark.parametrize("has_lines", [False, True])
def test_all_lines_of_a_row_that_a_line_strikes_out_are_struck_out(has_lines: bool) -> None:
    rows = [
        ("Article", "Price"),
        ("Pump", "410"),
        ("Hose of rubber", "95"),
        ("", ""),
        ("Seal", "7"),
    ]
    texts = [*place(rows, (60, 200), 14), (60, 660, "for hot water")]
    grid = [(50, 260, base) for base in (712, 696, 682, 654, 638)]

    page = print_texts(texts, [(58, 222, 675), *(grid if has_lines else ())])

    assert "| ~~Hose of rubber for hot water~~ | ~~95~~ |" in page.content
    assert "| Pump | 410 |" in page.content


def test_a_page_with_three_columns_above_two_is_read_column_by_column() -> None:
    entries = {
        left: [f"Chapter {name} about pumps {at}" for at in range(12)]
        for left, name in ((40, "A"), (220, "B"), (400, "C"))
    }
    texts: list[Text] = [(250, 780, "Table of contents")]
    for step, (left, lines) in zip((13, 14.5, 16), entries.items(), strict=True):
        texts += [(left, 740 - step * at, line) for at, line in enumerate(lines)]
    below = {
        left: [f"The {name} text goes on in many lines that are long {at}" for at in range(8)]
        for left, name in ((40, "first"), (310, "second"))
    }
    for left, lines in below.items():
        texts += [(left, 480 - 12 * at, line) for at, line in enumerate(lines)]

    page = print_texts(texts, [(36, 560, 500)], 8)

    words = page.content.replace("\n", " ")
    places = [words.index(line) for lines in (*entries.values(), *below.values()) for line in lines]
    assert places == sorted(places)


def test_a_table_below_two_columns_of_prose_is_not_divided_between_them() -> None:
    prose = "The dose depends on the age and the weight of"
    lines = [(left, 760 - 11 * at, prose) for left in (40, 310) for at in range(8)]
    rows = [("Age", "Weight", "Mild", "Bad", "Most"), ("1-4", "10 kg", "5 ml", "7.5 ml", "22 ml"),
            ("5-9", "19 kg", "7 ml", "10 ml", "30 ml")]  # fmt: skip
    table = [
        (left, 660 - 18 * at, text)
        for at, row in enumerate(rows)
        for left, text in zip((40, 140, 220, 340, 460), row, strict=True)
    ]

    page = print_texts([*lines, *table], [(36, 540, 653), (36, 540, 635)])

    assert list_tables(page)[0][2:] == [
        "| 1-4 | 10 kg | 5 ml | 7.5 ml | 22 ml |", "| 5-9 | 19 kg | 7 ml | 10 ml | 30 ml |",
    ]  # fmt: skip


def test_lines_at_the_edges_of_pages_are_no_rows_of_the_tables_between_them() -> None:
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    for number in range(3):
        head, foot = ("Harbour price list", "", f"page {number + 1}"), ("Valid in May", "euros", "")
        rows = [head, *((f"Hose {number}{at}", f"{at}.50", "1.20") for at in range(50)), foot]
        for left, base, text in place(rows, (60, 260, 400), 14):
            canvas.drawString(left, base + 100, text)
        canvas.showPage()
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert [len(table) for table in list_tables(page)] == [52, 52, 52]
    assert "Harbour price list page 1" in [block.text for block in page.blocks]


def test_a_group_between_the_header_and_the_first_row_is_no_end_of_the_header() -> None:
    rows = [("", "Actual 2023", "Budget 2024"), ("Income",), ("Fees", "18,240.00", "20,400.00"),
            ("Tickets", "7,630.25", "8,000.00"), ("Grants", "12,000.00", "9,000.00")]  # fmt: skip
    texts = [
        (left, 740 - 13 * at, text)
        for at, row in enumerate(rows)
        for left, text in zip((44, 228, 307), row, strict=False) if text
    ]  # fmt: skip

    page = print_texts(texts)

    assert list_tables(page)[0] == [
        "|  | Actual 2023 | Budget 2024 |", "|---|---|---|", "| Income |  |  |",
        "| Fees | 18,240.00 | 20,400.00 |", "| Tickets | 7,630.25 | 8,000.00 |",
        "| Grants | 12,000.00 | 9,000.00 |",
    ]  # fmt: skip


@pytest.mark.parametrize(("first", "is_proved"), [("Ada", False), ("12.50", True)])
def test_rows_that_nothing_proves_are_reported(first: str, is_proved: bool) -> None:
    rows = [("Person", "Duty"), (first, "Opens the hall"), ("Tom", "Keeps the keys")]
    texts = [
        (left, 740 - 14 * at, text)
        for at, row in enumerate(rows)
        for left, text in zip((40, 160), row, strict=True)
    ]

    page = print_texts(texts)

    assert "| Tom | Keeps the keys |" in page.content
    assert [part.what for part in page.left_out] == ([] if is_proved else ["reading order"])


@pytest.mark.parametrize("first", ["*Item", ""])
def test_headers_at_the_left_of_their_columns_are_above_values_at_the_right(first: str) -> None:
    rows = [("Pens", "17", "4.20"), ("Paper", "136", "12.00"), ("Ink", "9", "8.10")]
    values = [
        (right - 5 * len(value), 684 - 14 * at, value)
        for at, row in enumerate(rows) for right, value in zip((290, 390), row[1:], strict=True)
    ]  # fmt: skip
    labels = [(60, 684 - 14 * at, row[0]) for at, row in enumerate(rows)]
    heads = place([(first, "*On hand", "*Price")], (60, 200, 300))

    table = list_tables(print_texts([*heads, *labels, *values]))[0]

    assert [table[0], table[2]] == [
        f"| {first.removeprefix('*')} | On hand | Price |", "| Pens | 17 | 4.20 |"
    ]  # fmt: skip


def test_a_double_line_below_the_header_does_not_part_the_rows() -> None:
    rows = [
        ("*Code", "*Meaning", "*Remedy"),
        ("E1", "Water inlet too slow", "Open the tap fully and clean the"),
        ("", "", "inlet filter. Check the pressure."),
        ("E2", "Drain time exceeded", "Clean the pump."),
    ]
    rules = [(60, 420, 716), (60, 420, 697), (60, 420, 695), (60, 420, 656)]

    table = list_tables(print_texts(place(rows, (64, 110, 220), 12), rules))[0]

    assert table[2:] == [
        "| E1 | Water inlet too slow | "
        "Open the tap fully and clean the inlet filter. Check the pressure. |",
        "| E2 | Drain time exceeded | Clean the pump. |",
    ]


def test_a_heading_between_two_tables_is_no_row() -> None:
    days = [("Stop", "501", "503"), ("Pier", "5:12", "5:42"), ("Port", "5:16", "5:46")]
    sundays = [("Stop", "701", "703"), ("Pier", "7:12", "7:42"), ("Port", "7:16", "7:46")]
    file = io.BytesIO()
    canvas = Canvas(file)
    for left, base, text in [*place(days, (60, 200, 300)), (60.0, 640.0, "Sundays")]:
        canvas.setFont("Helvetica", 14 if text == "Sundays" else 9)
        canvas.drawString(left, base, text)
    for left, base, text in place(sundays, (60, 220, 330)):
        canvas.setFont("Helvetica", 9)
        canvas.drawString(left, base - 80, text)
    canvas.save()

    page = pdf_reader.read(file.getvalue(), "a.pdf")

    assert [len(table) for table in list_tables(page)] == [5, 5]
    assert [block.text for block in page.blocks if "\n" not in block.text] == ["Sundays"]
