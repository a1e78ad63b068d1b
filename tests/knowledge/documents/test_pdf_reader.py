import io

import pytest
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from knowledge.documents.errors import (
    ReadingError,
    SkippedError,
    TooLargeError,
    WrongFormatError,
)
from knowledge.documents.page import Block, BlockKind, LeftOutCounts
from knowledge.documents.pdf import pdf_reader as pdf
from knowledge.documents.pdf.page_layout import LaidOutPage
from knowledge.documents.pdf.page_text import PageText, Segment
from knowledge.documents.pdf.structure import write_blocks
from knowledge.documents.pdf.text_lines import Line
from tests.knowledge.documents.conftest import Desk
from tests.knowledge.documents.printing import file_of, print_pdf, print_tagged


def test_every_page_is_a_place() -> None:
    page = pdf.read(print_pdf([["Rates are low."], ["Calls are", "free."]]), "a.pdf")

    assert page.blocks == (
        Block(BlockKind.TEXT, "Rates are low.", 0, "page=1"),
        Block(BlockKind.TEXT, "Calls are free.", 0, "page=2"),
    )


def test_page_numbers_and_hyphens_at_line_ends_go() -> None:
    page = pdf.read(print_pdf([["The num-", "ber of calls.", "17"], ["Ten.", "18"]]), "a.pdf")

    assert page.content == "The number of calls.\n\nTen."


def test_a_number_that_does_not_count_pages_is_kept_at_the_end_of_a_page() -> None:
    page = pdf.read(print_pdf([["Total", "3549"], ["Total", "3222"]]), "a.pdf")

    assert "3549" in page.content
    assert "3222" in page.content


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["A self-", "cleaning filter.", "It is self-cleaning."], "A self-cleaning filter."),
        (["A long-", "term plan.", "How long is a term?"], "A long-term plan."),
        (["The over-", "all cost.", "Costs overall, over it all."], "The overall cost."),
        (["Der Haus-", "halt.", "Das Haus, halten."], "Der Haushalt."),
        (["Model X-", "200 and a man-", "ual."], "Model X-200 and a manual."),
        (["Das Homeoffice-Ver-", "bot. Ein Verbot."], "Das Homeoffice-Verbot."),
        (["The state-of-the-", "art pump."], "The state-of-the-art pump."),
        (["It was shown for 2006-", "08 and 2010."], "It was shown for 2006-08 and 2010."),
        (["As indicated in Table 3-", "5. the rate is lower."], "As indicated in Table 3-5. the"),
        (["It fell by 100.50-", "200.75- in a year."], "It fell by 100.50- 200.75- in a year."),
    ],
)
def test_a_compound_keeps_the_hyphen_at_the_end_of_its_line(
    lines: list[str], expected: str
) -> None:
    page = pdf.read(print_pdf([lines]), "a.pdf")

    assert page.content.startswith(expected)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            ["The witness said that the gate", "was open at nine and that the",
             "guard was in the hall.", "Who closed the gate?", "The driver of the red van."],
            "The witness said that the gate was open at nine and that the guard was in the hall.",
        ),
        (
            ["Members shall pay the fee that", "the assembly sets each year, in",
             "two equal parts, the first by", "the end of March, and the other",
             "one by the end of September."],
            "Members shall pay the fee that the assembly sets each year, in two equal parts",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("first", [1, 26])
def test_numbers_that_count_the_lines_of_a_page_are_left_out(
    lines: list[str], expected: str, first: int
) -> None:
    numbered = [f"{number} {line}" for number, line in enumerate(lines, start=first)]

    page = pdf.read(print_pdf([numbered]), "a.pdf")

    assert expected in page.content
    assert str(page.left_out[0]).startswith("5 line numbers left out")


@pytest.mark.parametrize(
    "lines",
    [
        ["1 Open the valve", "2 Wait", "3 Close it and call the manager", "4 Lock", "5 Go home"],
        ["1 Albania 12", "2 Austria 40", "3 Bolivia 7", "4 Bosnia and Herzegovina 12", "5 Chad 9"],
        ["1 Helmets are worn.", "2 No smoking.", "3 Doors stay shut.", "4 Call us.", "5 Leave."],
    ],
)
def test_numbers_of_items_and_rows_stay(lines: list[str]) -> None:
    page = pdf.read(print_pdf([lines]), "a.pdf")

    assert all(line in page.content for line in lines)
    assert page.left_out == ()


@pytest.mark.parametrize("pitch", [11, 16])
@pytest.mark.parametrize("is_numbered", [False, True])
def test_code_keeps_its_lines_its_indentation_and_its_empty_lines(
    pitch: int, is_numbered: bool
) -> None:
    code = ["def total(rows):", "    found = 0", "", "    for row in rows:", "        found += row"]
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.drawString(60, 780, "The function adds the amounts of all rows of a table.")
    for at, line in enumerate(code):
        if is_numbered and line:
            canvas.setFont("Helvetica", 7)
            canvas.drawString(50, 750 - pitch * at, str(at + 1))
        canvas.setFont("Courier", 9)
        canvas.drawString(60, 750 - pitch * at, line)
    canvas.save()

    page = pdf.read(file.getvalue(), "a.pdf")

    if is_numbered:
        code = [f"{at} {line}" if line else "" for at, line in enumerate(code, start=1)]
    assert page.blocks[1].text == "\n".join(("```", *code, "```"))


@pytest.mark.parametrize(
    ("first", "largest", "title"),
    [
        ("Front cover", "Care of pumps", "Care of pumps"),
        ("Chapter one", "4", "Chapter one"),
        ("Care of pumps", "", "Care of pumps"),
    ],
)
def test_the_largest_line_of_the_first_page_is_its_title(
    first: str, largest: str, title: str
) -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setTitle("")
    canvas.setFont("Helvetica-Bold", 14)
    canvas.bookmarkPage("first")
    canvas.addOutlineEntry(first, "first", 0)
    canvas.drawString(60, 700, first)
    canvas.setFont("Helvetica-Bold", 26)
    canvas.drawString(60, 640, largest)
    canvas.setFont("Helvetica", 11)
    canvas.drawString(60, 560, "Pumps are cleaned once a week, and oiled every month.")
    canvas.drawString(60, 545, "Each pump has a name, which stands on its plate.")
    canvas.save()

    assert pdf.read(file.getvalue(), "a.pdf").title == title


def test_a_table_without_clear_columns_is_shown_as_its_lines_and_listed() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Helvetica", 10)
    rows = [("Alder", 210), ("Birch", 225), ("Cedar", 212), ("Elm", 228)]
    for at, (name, left) in enumerate(rows):
        canvas.drawString(60, 700 - 14 * at, name)
        canvas.drawString(left, 700 - 14 * at, f"1{at}5")
        canvas.drawString(left + 26, 700 - 14 * at, f"2{at}7")
    canvas.save()

    page = pdf.read(file.getvalue(), "a.pdf")

    assert [block.text for block in page.blocks] == [
        "Alder 105; 207\nBirch 115; 217\nCedar 125; 227\nElm 135; 237"
    ]
    assert [(left_out.what, left_out.names) for left_out in page.left_out] == [
        ("table structure", ("page 1",))
    ]


@pytest.mark.parametrize(
    "lines",
    [
        ["Customer: Diaz", "Vehicle: Jeep, red, four doors", "Damage: 2,100 euros"],
        ["Ines Kraus", "12 Long Street, third floor", "Springfield"],
        ["Opens at 8", "Closes at 17:30 on all days", "Sundays only by phone"],
    ],
)
def test_lines_that_end_before_they_are_full_stay_lines(lines: list[str]) -> None:
    page = pdf.read(print_pdf([["Notes.", *lines]]), "a.pdf")

    assert "\n".join(lines) in page.content


def test_no_row_of_labels_and_texts_is_a_header() -> None:
    rows = [("Customer", "Diaz"), ("Vehicle", "Jeep"), ("Damage", "a broken door")]
    file = io.BytesIO()
    canvas = Canvas(file)
    for at, (label, text) in enumerate(rows):
        canvas.drawString(60, 700 - 14 * at, label)
        canvas.drawString(200, 700 - 14 * at, text)
    canvas.save()

    table = pdf.read(file.getvalue(), "a.pdf").blocks[0].text

    assert table.split("\n") == ["|  |  |", "|---|---|", *(f"| {a} | {b} |" for a, b in rows)]


def test_headings_come_from_the_outline() -> None:
    outline = (
        "/Outlines << /Type /Outlines /Count 1 /First << /Title (Peak hours) "
        "/Dest [4 0 R /Fit] >> >>"
    )

    page = pdf.read(print_pdf([["Lead.", "Peak hours", "Calls cost more."]], outline), "a.pdf")

    assert [(block.kind, block.text) for block in page.blocks] == [
        (BlockKind.TEXT, "Lead."),
        (BlockKind.HEADING, "Peak hours"),
        (BlockKind.TEXT, "Calls cost more."),
    ]


def test_a_heading_of_the_outline_keeps_the_number_that_its_page_shows() -> None:
    outline = "/Outlines << /Count 1 /First << /Title (Part 2) /Dest [4 0 R /Fit] >> >>"

    page = pdf.read(print_pdf([["Part 1", "Calls.", "Part 2", "Costs."]], outline), "a.pdf")

    assert [block.text for block in page.blocks] == ["Part 1", "Calls.", "Part 2", "Costs."]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"PK\x03\x04rest", "a zip archive"),
        (b"", "something else"),
        (b"%PDF-1.4\nnothing", "the PDF is damaged"),
        (b"%PDF-1.4\n" + b"\xff" * 500 + b"startxref\n5\n%%EOF", "the PDF is damaged"),
    ],
)
def test_a_file_that_is_not_a_pdf_is_reported(data: bytes, found: str) -> None:
    with pytest.raises(WrongFormatError, match=found):
        pdf.read(data, "a.pdf")


def encrypt(password: str, strength: int) -> bytes:
    """Return a PDF that may be neither printed nor copied without the password of its owner."""
    file = io.BytesIO()
    forbidden = StandardEncryption(
        password, "owner", canPrint=0, canModify=0, canCopy=0, canAnnotate=0, strength=strength
    )
    canvas = Canvas(file, encrypt=forbidden)
    canvas.drawString(72, 700, "Rates are low.")
    canvas.save()
    return file.getvalue()


@pytest.mark.parametrize("strength", [40, 128])
def test_a_pdf_that_may_not_be_printed_or_copied_is_read(strength: int) -> None:
    page = pdf.read(encrypt("", strength), "a.pdf")

    assert page.content == "Rates are low."
    assert not page.left_out


def test_a_locked_pdf_is_skipped_with_what_to_do() -> None:
    certified = b"/Root 1 0 R /Encrypt << /Filter /Adobe.PubSec /V 4 /R 4 >>"
    by_certificate = print_pdf([["Rates are low."]]).replace(b"/Root 1 0 R", certified)

    for strength in (40, 128):
        with pytest.raises(SkippedError, match="save it without a password"):
            pdf.read(encrypt("secret", strength), "a.pdf")
    with pytest.raises(SkippedError, match="certain people or programs: save it without"):
        pdf.read(by_certificate, "a.pdf")


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.7, 0.8])
def test_a_pdf_that_is_cut_off_is_reported(share: float) -> None:
    whole = print_pdf([["Rates are low."], ["Calls are free."]])

    with pytest.raises(ReadingError, match=r"the PDF is damaged|text"):
        pdf.read(whole[: int(len(whole) * share)], "a.pdf")


def test_pages_that_share_a_drawing_are_read_once() -> None:
    drawing = " ".join(f"(Line {number}.) Tj 0 -2 Td" for number in range(1500))
    kids = " ".join(f"{5 + number} 0 R" for number in range(500))
    sheet = (
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] "
        "/Resources << /Font << /F1 3 0 R >> >> /Contents 4 0 R >>"
    )
    stream = f"BT /F1 12 Tf 50 700 Td {drawing} ET"
    data = file_of(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            f"<< /Type /Pages /Kids [{kids}] /Count 500 >>",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
            *[sheet] * 500,
        ]
    )

    page = pdf.read(data, "a.pdf")

    assert len(data) < 130_000
    assert [block.anchor for block in page.blocks] == ["page=1"]
    assert [(one.what, one.count, one.reason) for one in page.left_out[-1:]] == [
        ("page", 499, "the same as an earlier one")
    ]


def test_more_pages_than_a_document_may_have_are_reported() -> None:
    kids = "3 0 R " * (pdf.MOST_PAGES + 1)
    data = file_of(
        [
            "<< /Type /Catalog /Pages 2 0 R >>",
            f"<< /Type /Pages /Kids [{kids}] /Count {pdf.MOST_PAGES + 1} >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] >>",
        ]
    )

    with pytest.raises(TooLargeError, match="10000 pages"):
        pdf.read(data, "a.pdf")


def test_ligatures_are_the_letters_that_they_join() -> None:
    page = pdf.read(print_pdf([["The \\256rst of\\256ce."]]), "a.pdf")

    assert page.blocks[0].text == "The first office."


@pytest.mark.parametrize(
    ("names", "drawn", "shown"),
    [
        ("65 /f_l", "The Aoat is ready.", "The \ufffdoat is ready."),
        ("140 /f_i", "The \\214rst is ready.", "The \ufffdrst is ready."),
        ("3 /g3 55 /g55 75 /g75 72 /g72", "Ready: 7KH\\0037KH", "Ready:"),
    ],
)
def test_codes_whose_meaning_the_file_does_not_state_are_no_letters(
    names: str, drawn: str, shown: str
) -> None:
    encoding = f"<< /Type /Encoding /Differences [{names}] >>"
    font = f"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding {encoding} >>"
    stream = f"BT /F1 12 Tf 50 700 Td ({drawn}) Tj ET"
    data = file_of([
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R "
        f"/Resources << /Font << /F1 {font} >> >> >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
    ])  # fmt: skip

    page = pdf.read(data, "a.pdf")

    assert page.content == shown
    assert [part.what for part in page.left_out] == ["unreadable letter"]


@pytest.mark.slow
async def test_a_pdf_of_ten_thousand_pages_costs_itself_alone(desk: Desk) -> None:
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pageCompression=0)
    for number in range(10_000):
        canvas.drawString(72, 720, f"Page {number} names the part {number}.")
        canvas.showPage()
    canvas.save()
    desk.write("huge.pdf", buffer.getvalue())
    desk.write("good.md", "# Good\n\nThis page is read whatever the other one costs.")

    result = await desk.ingest()

    assert "docs/good" in desk.index.documents
    assert [source for source, _ in result.failed] in ([], ["huge.pdf"])
    assert "docs/huge.pdf" in desk.index.documents or result.failed


def test_a_tagged_file_states_its_headings_and_items() -> None:
    data = print_tagged([
        ("H1", "Storage of samples", (50, 700)),
        ("P", "Samples stay at 4 C.", (50, 680)),
        ("H2", "for long periods", (50, 660)),
        ("P", "Then they are frozen.", (50, 640)),
        ("LI", "Label them.", (50, 620)),
    ])  # fmt: skip

    blocks = pdf.read(data, "a.pdf").blocks

    assert [(block.kind, block.level, block.text) for block in blocks] == [
        (BlockKind.HEADING, 1, "Storage of samples"),
        (BlockKind.TEXT, 0, "Samples stay at 4 C."),
        (BlockKind.HEADING, 2, "for long periods"),
        (BlockKind.TEXT, 0, "Then they are frozen."),
        (BlockKind.ITEM, 0, "Label them."),
    ]


def test_a_hyphen_without_a_tag_belongs_to_its_word() -> None:
    marked = (
        "All con) Tj EMC /Artifact BMC (-) Tj EMC /P << /MCID 0 >> BDC 1 0 0 1 50 680 Tm (tent."
    )

    page = pdf.read(print_tagged([("P", marked, (50, 700))]), "a.pdf")

    assert page.content == "All content."


def test_boxes_of_a_tagged_file_are_read_in_the_order_that_it_states() -> None:
    data = print_tagged([
        ("P", "Open the valve.", (50, 400)),
        ("P", "Wait 30 s.", (300, 700)),
        ("P", "Close it.", (50, 690)),
    ])  # fmt: skip

    texts = [block.text for block in pdf.read(data, "a.pdf").blocks]

    assert texts == ["Open the valve.", "Wait 30 s.", "Close it."]


def test_cells_of_a_tagged_table_are_read_by_their_places() -> None:
    """Files list the cells of a row in any order and omit empty ones."""
    data = print_tagged([
        ("TD", "Part", (50, 700)), ("TD", "Litres", (300, 700)), ("TD", "Metres", (180, 700)),
        ("TD", "Hose", (50, 684)), ("TD", "12", (180, 684)),
        ("TD", "Tank", (50, 668)), ("TD", "400", (300, 668)), ("TD", "3", (180, 668)),
    ])  # fmt: skip

    (table,) = pdf.read(data, "a.pdf").blocks

    assert table.text.splitlines() == [
        "| Part | Metres | Litres |",
        "|---|---|---|",
        "| Hose | 12 |  |",
        "| Tank | 3 | 400 |",
    ]


def test_entries_of_contents_are_left_out_only_if_their_pages_have_these_titles() -> None:
    titles = ["Valves", "Pumps", "Spare parts"]
    contents = ["Contents", *(f"{title} {at}" for at, title in enumerate(titles, start=2))]
    pages = [[title, f"The text about {title.lower()}."] for title in titles]

    read = pdf.read(print_pdf([contents, *pages]), "a.pdf")
    unproved = pdf.read(print_pdf([contents, ["Rooms"], ["Doors"], ["Keys"]]), "a.pdf")
    rooms = [[f"Room {number}", f"It has {number} chairs."] for number in (101, 102, 103)]
    numbered = pdf.read(print_pdf([["Rooms", *(name for name, _ in rooms)], *rooms]), "a.pdf")

    assert "Pumps 3" not in read.content
    assert [(part.what, part.count) for part in read.left_out] == [("contents line", 3)]
    assert "Pumps 3" in unproved.content
    assert numbered.content.count("Room 102") == 2


def test_a_letter_that_is_drawn_twice_is_two_letters_unless_it_is_a_shadow() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Times-Italic", 20)
    for text, steps in (("offer", [10, 5, 5, 9, 0]), ("ffat", [0.4, 6, 10, 0])):
        at = 100.0
        for letter, step in zip(text, steps, strict=True):
            canvas.drawString(at, 700, letter)
            at += step
        canvas.translate(0, -40)
    canvas.save()

    assert pdf.read(file.getvalue(), "a.pdf").content.split() == ["offer", "fat"]


def test_a_bar_inside_a_letter_strikes_nothing_out() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Helvetica", 20)
    canvas.drawString(100, 700, "Breeds")
    left = 100 + canvas.stringWidth("Br", "Helvetica", 20)
    canvas.line(left + 2, 706, left + 9, 706)
    canvas.save()

    assert pdf.read(file.getvalue(), "a.pdf").content == "Breeds"


def test_values_beside_the_middle_of_a_label_are_on_its_line() -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setFont("Helvetica", 10)
    for row, label in enumerate(
        ("Income|of households", "Years lost|before 75", "Days|in hospital")
    ):
        base = 700 - 30 * row
        for line, part in enumerate(label.split("|")):
            canvas.drawString(50, base + 6 - 12 * line, part)
        for column in range(3):
            canvas.drawString(200 + 80 * column, base, f"{row}.{column}5")
    canvas.save()

    content = pdf.read(file.getvalue(), "a.pdf").content

    assert "| Years lost before 75 | 1.05 | 1.15 | 1.25 |" in content


def test_a_text_that_is_written_beside_a_label_of_a_tagged_file_stays_beside_it() -> None:
    note = "<< /Type /Annot /Subtype /FreeText /Rect [120 692 200 708] /Contents (Ada) >>"
    blocks = [("P", "Name", (50, 696)), ("P", "Town", (50, 600)), ("P", "Date", (50, 500))]

    page = pdf.read(print_tagged(blocks, note), "a.pdf")

    assert [block.text for block in page.blocks] == ["Name Ada", "Town", "Date"]


def test_a_fault_in_a_table_costs_its_columns_and_not_its_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = [("Wood", "2024", "2025"), ("Alder",), (" ", "105", "207"), ("Elm", "135", "237")]
    lines = [
        Line(
            [
                Segment(text, 60 + 90 * column, 80 + 90 * column, 700 - 12 * at, 10)
                for column, text in enumerate(row)
            ],
            page=1,
        )
        for at, row in enumerate(rows)
    ]  # fmt: skip
    left_out = LeftOutCounts()

    blocks = list(write_blocks([LaidOutPage(1, PageText(600, 800), lines)], {}, left_out))

    assert " ".join(block.text for block in blocks).split() == [
        "Wood", "2024;", "2025", "Alder", "105;", "207", "Elm", "135;", "237"
    ]  # fmt: skip
    assert [(part.what, part.count, part.names) for part in left_out.list()] == [
        ("table structure", 1, ("page 1",)),
        ("text layout", 1, ("page 1",)),
    ]
    assert all("IndexError" in part.reason for part in left_out.list())
    assert "IndexError" in caplog.text


@pytest.mark.parametrize("error", [TooLargeError, MemoryError, KeyboardInterrupt])
def test_limits_and_interruptions_end_the_reading_of_a_file(error: type[BaseException]) -> None:
    with pytest.raises(error), LeftOutCounts().contain("page", "1"):
        raise error
