"""Lays out PDF files of different kinds for tests, as people have them."""

import io
from collections.abc import Sequence
from typing import Any

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4, landscape
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.lib.units import cm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    FrameBreak,
    PageBreak,
    PageTemplate,
    Paragraph,
    Preformatted,
    SimpleDocTemplate,
    Spacer,
    Table,
)

STYLES = getSampleStyleSheet()
TEXT = STYLES["BodyText"]
GRID = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]
PLAIN = ParagraphStyle("plain", parent=TEXT, fontSize=10, leading=13, spaceBefore=8)


def build(
    story: Sequence[Any], *, head: str = "", title: str | None = None, size: Any = A4
) -> bytes:
    """Return a PDF of these parts, with a running head and the numbers of its pages."""
    file = io.BytesIO()

    def decorate(canvas: Canvas, document: Any) -> None:
        canvas.setFont("Helvetica", 8)
        if head:
            canvas.drawString(2 * cm, size[1] - 1 * cm, head)
            canvas.drawCentredString(size[0] / 2, 1 * cm, f"Page {document.page} of 9")

    template = SimpleDocTemplate(file, pagesize=size, title=title)
    template.build(list(story), onFirstPage=decorate, onLaterPages=decorate)
    return file.getvalue()


def make_numbered_handbook() -> bytes:
    """Return a handbook whose numbered headings have the size of its text."""
    story: list[Any] = [Paragraph("Employee Handbook", STYLES["Title"])]
    sections = (
        ("1. Working hours", "Core hours are from ten to three. Everybody may work from home twice "
         "a week, after agreeing with the team."),
        ("2. Vacation", "Every employee has 28 days of vacation a year. Vacation of more than two "
         "weeks is requested a month before it begins."),
        ("3. Sick leave", "A doctor's note is needed from the third day. Tell your lead on the "
         "first day by nine."),
    )  # fmt: skip
    for heading, text in sections:
        story += [Paragraph(heading, PLAIN), Spacer(1, 4), Paragraph(text, TEXT)]
    return build(story, head="Acme Ltd. internal", title="Microsoft Word - handbook_v3.docx")


def contract() -> bytes:
    """Return a contract with numbered clauses and clauses in them."""
    story: list[Any] = [Paragraph("Service Agreement", STYLES["Title"])]
    for number, (name, clauses) in enumerate(
        (
            ("Term", ("This agreement begins on 1 March 2026.", "It is made for two years.")),
            ("Termination", ("Either party may terminate with three months' notice.",
                             "Notice is given in writing.")),
            ("Liability", ("Liability is limited to the fees of twelve months.",)),
        ),
        start=1,
    ):  # fmt: skip
        story.append(Paragraph(f"{number}. {name}", STYLES["Heading2"]))
        story += [
            Paragraph(f"{number}.{part} {clause}", TEXT)
            for part, clause in enumerate(clauses, start=1)
        ]
    return build(story)


def two_columns() -> bytes:
    """Return an article in two columns below a title over both."""
    file = io.BytesIO()
    width, height = A4
    frames = [
        Frame(2 * cm, height - 4 * cm, width - 4 * cm, 2.4 * cm, id="top"),
        Frame(2 * cm, 2 * cm, 8 * cm, height - 6.4 * cm, id="left"),
        Frame(11 * cm, 2 * cm, 8 * cm, height - 6.4 * cm, id="right"),
    ]
    template = BaseDocTemplate(file, pagesize=A4)
    template.addPageTemplates([PageTemplate(frames=frames)])
    left = "The left column speaks about bees and how they keep the hive warm in winter. " * 22
    right = "The right column speaks about wasps, which leave their nest in autumn. " * 18
    template.build(
        [
            Paragraph("Insects in winter", STYLES["Title"]),
            Paragraph("Bees", STYLES["Heading2"]),
            Paragraph(left, TEXT),
            Paragraph("Wasps", STYLES["Heading2"]),
            Paragraph(right, TEXT),
        ]
    )
    return file.getvalue()


def make_columns_of_prose_and_figures() -> bytes:
    """Return a page with a table over its width, and two columns of prose and labels of figures."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    canvas.setFont("Helvetica", 10)
    for row, label in enumerate(("Temperature of the hive", "Number of bees", "Weight in grams")):
        canvas.drawString(50, 780 - 14 * row, label)
        for column in range(6):
            canvas.drawString(220 + 55 * column, 780 - 14 * row, str(20 * column + row))
    for left, animals in ((50, "bees"), (310, "wasps")):
        for line in range(12):
            text = (
                f"is about how {animals} keep the hive warm"
                if line % 2
                else "and this long sentence"
            )
            canvas.drawString(left, 700 - 13 * line, text)
        for number in range(30):
            canvas.drawString(left + 35 * (number % 6), 500 - 9.7 * (number // 6), str(number))
    canvas.save()
    return file.getvalue()


def make_columns_of_short_lines() -> bytes:
    """Return a leaflet with steps on the left and settings on the right, no prose in either."""
    file = io.BytesIO()
    template = BaseDocTemplate(file, pagesize=A4)
    frames = [Frame(50, 50, 240, 750, id="left"), Frame(305, 50, 240, 750, id="right")]
    template.addPageTemplates([PageTemplate(frames=frames)])
    steps = [f"{number}. Open valve V-{number}." for number in range(1, 10)]
    settings = [f"Pump {number}: {number + 4} bar" for number in range(10)]
    low = ParagraphStyle("low", parent=PLAIN, leading=14, spaceBefore=11)
    template.build(
        [
            Paragraph("Start up", STYLES["Heading2"]),
            *(Paragraph(step, PLAIN) for step in (*steps, "Close the cover before the start.")),
            FrameBreak(),
            *(Paragraph(setting, low) for setting in (*settings, "Pumps are checked every month.")),
        ]
    )
    return file.getvalue()


def make_columns_of_prose_and_table() -> bytes:
    """Return a leaflet: prose and steps in the left column, a ruled table in the right one."""
    file = io.BytesIO()
    frames = [
        Frame(50, 50, 240, 750, id="left"),
        Frame(305, 50, 240, 750, id="right"),
    ]
    template = BaseDocTemplate(file, pagesize=A4)
    template.addPageTemplates([PageTemplate(frames=frames)])
    rows = [
        ("Symptom", "Cause", "Remedy"),
        ("Little water", "Cartridge is blocked", "Change the cartridge"),
        ("Water is cloudy", "Air in the line", "Flush for two minutes"),
        ("Leak at the inlet", "Seal is worn", "Replace the seal"),
    ]
    template.build(
        [
            Paragraph("Safety", STYLES["Heading2"]),
            Paragraph("Use the filter with cold drinking water only, from 4 to 30 degrees. Do not "
                      "use it with well water.", TEXT),
            Paragraph("Never clean the housing with solvents or with hot water.", TEXT),
            Paragraph("Installation", STYLES["Heading2"]),
            Paragraph("Close the main valve before you begin.", TEXT),
            Paragraph("1. Mount the bracket with two screws.", TEXT),
            Paragraph("2. Open the valve slowly and flush the filter with ten litres.", TEXT),
            Paragraph("The light turns red when the cartridge has to be changed.", TEXT),
            FrameBreak(),
            Paragraph("Troubleshooting", STYLES["Heading2"]),
            Table([[Paragraph(cell, TEXT) for cell in row] for row in rows],
                  colWidths=[70, 80, 85], style=GRID),
            Paragraph("Warranty", STYLES["Heading2"]),
            Paragraph("The warranty is three years from the date of purchase.", TEXT),
        ]
    )  # fmt: skip
    return file.getvalue()


def plain_table() -> bytes:
    """Return a table without any rule, one of its cells on two lines."""
    cells = [
        ["Error", "Meaning", "What to do"],
        ["E10", "Paper jam", "Open the lid"],
        ["E20", "No ink", Paragraph("Replace the cartridge and<br/>press start", PLAIN)],
    ]
    return build(
        [
            Paragraph("Errors", STYLES["Heading1"]),
            Paragraph("The display shows a code.", TEXT),
            Table(cells, colWidths=[80, 140, 200], style=[("VALIGN", (0, 0), (-1, -1), "TOP")]),
        ]
    )


def make_table_with_groups() -> bytes:
    """Return a table whose groups have heads that fill the first column, above indented rows."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    canvas.setFont("Helvetica", 10)
    rows = (
        (72, "Item", "2023", "2024"), (72, "Property with a long name here", "", ""),
        (80, "Land in the city", "410", "420"), (80, "Buildings", "95", "97"),
        (72, "Claims", "", ""), (80, "Customers and other parties", "61", "64"),
        (72, "Loans that were given to", "", ""), (72, "Employees abroad", "7", "9"),
    )  # fmt: skip
    for at, (left, label, first, second) in enumerate(rows):
        for x, text in ((left, label), (222, first), (272, second)):
            canvas.drawString(x, 700 - 13 * at, text)
    canvas.save()
    return file.getvalue()


def make_chapters_with_running_titles(totals: Sequence[int] = ()) -> bytes:
    """Return chapters whose pages have their chapter's title and the page's number at the top.

    `totals` are numbers below the word "Total" at the end of the pages, from the first one on.
    """
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    chapters = ("1. Pumps and valves", "2. Users and groups")
    for number in range(6):
        chapter = chapters[number // 3]
        canvas.setFont("Helvetica", 12)
        canvas.drawString(72, 800, f"{chapter} {number + 79}")
        if number % 3 == 0:
            canvas.drawString(72, 700, chapter)
        canvas.setFont("Helvetica", 10)
        for line in range(6):
            canvas.drawString(72, 660 - 13 * line, f"Part {number}{line} is set by its maker.")
        canvas.drawString(72, 500, "Total")
        if number < len(totals):
            canvas.drawString(72, 60, f"Total {totals[number]}")
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def make_slides_with_numbered_titles() -> bytes:
    """Return pages whose large titles at the top differ only in their numbers."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=landscape(A4))
    for number in range(1, 5):
        canvas.setFont("Helvetica", 24)
        canvas.drawString(72, landscape(A4)[1] - 60, f"Step {number}")
        canvas.setFont("Helvetica", 12)
        canvas.drawString(72, 300, f"Turn the valve {number * 90} degrees to the left.")
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def make_signs() -> bytes:
    """Return two pages with the same lines at their edges and nothing between them."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    lines = [(800, "Keep this door closed."), (60, "Ring for service.")]
    for drawn in (lines, lines[::-1]):
        for base, text in drawn:
            canvas.drawString(72, base, text)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def make_table_below_wide_gap() -> bytes:
    """Return a table as TeX sets it, between two rules, below a line with a wide gap in it."""
    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    canvas.setFont("Helvetica", 10)
    for x, y, text in (
        (72, 700, "The pump stops."), (240, 700, "It has a limit of its own."),
        (130, 672, "Model"), (220, 672, "Flow"),
        (130, 655, "KX-40"), (220, 655, "12"), (130, 643, "KX-60"), (220, 643, "18"),
    ):  # fmt: skip
        canvas.drawString(x, y, text)
    for y in (684, 667, 637):
        canvas.line(125, y, 250, y)
    canvas.save()
    return file.getvalue()


def make_table_with_ruled_header() -> bytes:
    """Return a table as browsers print it: a rule below each cell of the header, and no others."""
    cells = [["Model", "Flow"], ["KX-40", "12"], ["KX-60", "18"], ["KX-80", "25"]]
    rules = [("LINEBELOW", (column, 0), (column, 0), 0.5, colors.black) for column in (0, 1)]
    return build([Paragraph("Limits", STYLES["Heading1"]), Table(cells, [80, 80], style=rules)])


def manual() -> bytes:
    """Return a manual with contents, steps, code and words that are cut at line ends."""
    story: list[Any] = [Paragraph("Contents", STYLES["Heading1"])]
    story += [
        Paragraph(f"{name} {'.' * 60} {page}", TEXT)
        for name, page in (("Installation", 2), ("Maintenance", 3), ("Disposal", 4))
    ]
    story += [
        PageBreak(),
        Paragraph("Installation", STYLES["Heading1"]),
        Paragraph("1. Unpack the unit.", TEXT),
        Paragraph("2. Connect the cable.", TEXT),
        Paragraph("Run this command:", TEXT),
        Preformatted("if ready:\n    send(--all, 'x|y')", STYLES["Code"]),
        PageBreak(),
        Paragraph("Maintenance", STYLES["Heading1"]),
        Paragraph("The main-<br/>tenance of the office unit is yearly.", TEXT),
        PageBreak(),
        Paragraph("Disposal", STYLES["Heading1"]),
        Paragraph("Return the unit.", TEXT),
    ]
    return build(story, head="Manual M-7")


def slides() -> bytes:
    """Return slides as a program exports them."""
    story: list[Any] = []
    for title, points in (
        ("Goals of 2026", ("Open in Oslo", "Hire ten people")),
        ("Risks", ("Supply of chips", "Currency")),
        ("Budget", ("Two million in total",)),
    ):
        story += [Paragraph(title, STYLES["Title"])]
        story += [Paragraph(f"\u2022 {point}", TEXT) for point in points]
        story.append(PageBreak())
    return build(story, size=landscape(A4))


def form() -> bytes:
    """Return a form with labels and lines to fill."""
    story = [
        Paragraph("Travel expenses", STYLES["Heading1"]),
        Paragraph("Name: ____________________ Date: ____________", TEXT),
        Paragraph("Send the form to travel@example.com within 30 days.", TEXT),
    ]
    return build(story)


def letter() -> bytes:
    """Return a letter of one page without any heading."""
    story = [
        Paragraph("Dear customer,", TEXT),
        Paragraph("your order 4711 is delivered on Monday, 4 May, between 8 and 12.", TEXT),
        Paragraph("Kind regards", TEXT),
    ]
    return build(story, title="untitled")


def invoice() -> bytes:
    """Return an invoice: a table of three columns and a total below."""
    rows = [["Item", "Hours", "Amount"], ["Design", "12", "1,200.00"], ["Review", "3", "300.00"]]
    story = [
        Paragraph("Invoice 2026-17", STYLES["Title"]),
        Table(rows, style=[("LINEBELOW", (0, 0), (-1, 0), 1, colors.black)], colWidths=120),
        Spacer(1, 20),
        Paragraph("The total of 1,500.00 EUR is due within 14 days.", TEXT),
    ]
    return build(story)


def report() -> bytes:
    """Return a report with headings of three sizes and a bold one."""
    story: list[Any] = [
        Paragraph("Annual report", STYLES["Title"]),
        Paragraph("Results", STYLES["Heading1"]),
        Paragraph("Europe", STYLES["Heading2"]),
        Paragraph("Sales in Europe rose by 7 %.", TEXT),
        Paragraph("<b>Outlook</b>", TEXT),
        Paragraph("We expect 3 % next year.", TEXT),
        Paragraph("Asia", STYLES["Heading2"]),
        Paragraph("Sales in Asia fell by 2 %.", TEXT),
    ]
    return build(story)


def questions_and_answers() -> bytes:
    """Return a list of questions in bold, each with its answer."""
    story: list[Any] = [Paragraph("FAQ", STYLES["Title"])]
    for question, answer in (
        ("How do I reset my password?", "Choose Forgot password on the first page."),
        ("Can I pay by invoice?", "Yes, from 500 EUR on."),
    ):
        story += [Paragraph(f"<b>{question}</b>", TEXT), Paragraph(answer, TEXT)]
    return build(story)


def scan(pages: int = 1) -> bytes:
    """Return pages that are pictures."""
    from PIL import Image
    from reportlab.lib.utils import ImageReader

    file = io.BytesIO()
    canvas = Canvas(file, pagesize=A4)
    for _ in range(pages):
        canvas.drawImage(ImageReader(Image.new("L", (60, 80), 200)), 0, 0, *A4)
        canvas.showPage()
    canvas.save()
    return file.getvalue()
