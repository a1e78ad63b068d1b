"""Properties of all readers: no value changes, a row stays a row, what is invalid is marked.

Documents with random texts, numbers and notations are written by the usual libraries and read.
"""

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from email.message import EmailMessage
from html import escape

import docx
import odf.element
import odf.opendocument
import odf.style
import odf.table
import odf.text
import openpyxl
import pptx
import pytest
from docx.oxml import OxmlElement
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.comments import Comment
from pptx.oxml.ns import qn

from knowledge.documents.errors import ReadingError
from knowledge.documents.interchange import delimited, mail
from knowledge.documents.markup import html, markdown
from knowledge.documents.office import docx as docx_reader
from knowledge.documents.office import opendocument, xlsx
from knowledge.documents.office import pptx as pptx_reader
from knowledge.documents.page import Page

LETTERS = "abcdefgäöéßжщ中文テ"
WORDS = st.text(LETTERS, min_size=2, max_size=8).map(lambda word: f"w{word}")
NUMBERS = st.one_of(
    st.integers(-(10**6), 10**9).map(str),
    st.decimals("-9999", "9999", places=2).map(str),
    st.tuples(st.integers(1, 99), st.integers(1, 99)).map(lambda pair: f"{pair[0]}–{pair[1]} °C"),
)
POWERS = st.tuples(st.integers(2, 99), st.integers(2, 30))
ROWS = st.integers(2, 4).flatmap(
    lambda width: st.lists(
        st.tuples(WORDS, *[st.one_of(WORDS, NUMBERS)] * (width - 1)), min_size=1, max_size=6
    )
)
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True)
class Sample:
    """What a document contains: a sentence with a power and a struck-out price, and a table."""

    label: str
    power: tuple[int, int]
    old: str
    new: str
    rows: Sequence[Sequence[str]]

    @property
    def header(self) -> list[str]:
        return [f"Head {chr(65 + at)}" for at in range(len(self.rows[0]))]


SAMPLES = st.builds(Sample, WORDS, POWERS, NUMBERS.map(lambda item: f"{item} euros"), NUMBERS, ROWS)
Write = Callable[[Sample], Page]


def read_docx(sample: Sample) -> Page:
    document = docx.Document()
    paragraph = document.add_paragraph(f"{sample.label} {sample.power[0]}")
    paragraph.add_run(str(sample.power[1])).font.superscript = True
    paragraph.add_run(" costs ")
    paragraph.add_run(sample.old).font.strike = True
    paragraph.add_run(f" {sample.new}.")
    table = document.add_table(0, len(sample.header))
    for row in (sample.header, *sample.rows):
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    file = io.BytesIO()
    document.save(file)
    return docx_reader.read(file.getvalue(), "a.docx")


def read_pptx(sample: Sample) -> Page:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    paragraph = slide.shapes.add_textbox(0, 0, 99, 99).text_frame.paragraphs[0]
    for text, name, value in (
        (f"{sample.label} {sample.power[0]}", "", ""),
        (str(sample.power[1]), "baseline", "30000"),
        (" costs ", "", ""),
        (sample.old, "strike", "sngStrike"),
        (f" {sample.new}.", "", ""),
    ):
        run = paragraph.add_run()
        run.text = text
        if name:
            run.font._element.set(name, value)  # noqa: SLF001 - the library cannot write it
    shape = slide.shapes.add_table(len(sample.rows) + 1, len(sample.header), 0, 0, 99, 99)
    for at, row in enumerate((sample.header, *sample.rows)):
        for column, text in enumerate(row):
            shape.table.cell(at, column).text = text
    file = io.BytesIO()
    deck.save(file)
    return pptx_reader.read(file.getvalue(), "a.pptx")


def read_xlsx(sample: Sample) -> Page:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet["A1"] = CellRichText(
        f"{sample.label} {sample.power[0]}",
        TextBlock(InlineFont(vertAlign="superscript"), str(sample.power[1])),
        " costs ",
        TextBlock(InlineFont(strike=True), sample.old),
        f" {sample.new}.",
    )
    for row in ([], sample.header, *sample.rows):
        sheet.append(list(row))
    file = io.BytesIO()
    workbook.save(file)
    return xlsx.read(file.getvalue(), "a.xlsx")


def read_odt(sample: Sample) -> Page:
    document = odf.opendocument.OpenDocumentText()
    raised = odf.style.Style(name="Raised", family="text")
    raised.addElement(odf.style.TextProperties(textposition="super 58%"))
    struck = odf.style.Style(name="Struck", family="text")
    struck.addElement(odf.style.TextProperties(textlinethroughstyle="solid"))
    for style in (raised, struck):
        document.automaticstyles.addElement(style)
    paragraph = odf.text.P(text=f"{sample.label} {sample.power[0]}")
    paragraph.addElement(odf.text.Span(stylename=raised, text=str(sample.power[1])))
    paragraph.addText(" costs ")
    paragraph.addElement(odf.text.Span(stylename=struck, text=sample.old))
    paragraph.addText(f" {sample.new}.")
    document.text.addElement(paragraph)
    table = odf.table.Table()
    for row in (sample.header, *sample.rows):
        written = odf.table.TableRow()
        for text in row:
            cell = odf.table.TableCell()
            cell.addElement(odf.text.P(text=text))
            written.addElement(cell)
        table.addElement(written)
    document.text.addElement(table)
    file = io.BytesIO()
    document.save(file)
    return opendocument.read(file.getvalue(), "a.odt")


def write_html(sample: Sample) -> str:
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>"
        for row in (sample.header, *sample.rows)
    )
    return (
        f"<p>{sample.label} {sample.power[0]}<sup>{sample.power[1]}</sup> costs "
        f"<del>{sample.old}</del> {sample.new}.</p><table>{rows}</table>"
    )


def read_html(sample: Sample) -> Page:
    return html.read(write_html(sample).encode(), "a.html")


def read_markdown(sample: Sample) -> Page:
    rows = [" | ".join(row) for row in (sample.header, ["---"] * len(sample.header), *sample.rows)]
    table = "\n".join(f"| {row} |" for row in rows)
    return markdown.read(
        f"{sample.label} {sample.power[0]}<sup>{sample.power[1]}</sup> costs ~~{sample.old}~~ "
        f"{sample.new}.\n\n{table}\n".encode(),
        "a.md",
    )


def read_mail(sample: Sample) -> Page:
    message = EmailMessage()
    message["Subject"] = sample.label
    message.set_content("This program shows no HTML.")
    message.add_alternative(write_html(sample), subtype="html")
    return mail.read(message.as_bytes(), "a.eml")


FORMATS = [read_docx, read_pptx, read_xlsx, read_odt, read_html, read_markdown, read_mail]


@pytest.mark.slow
@pytest.mark.parametrize("write", FORMATS)
@QUICK
@given(sample=SAMPLES)
def test_values_notation_and_rows_are_read_as_a_person_sees_them(
    write: Write, sample: Sample
) -> None:
    content = write(sample).content

    base, exponent = sample.power
    assert f"{sample.label} {base}^{exponent} costs ~~{sample.old}~~ {sample.new}." in content
    assert f"| {' | '.join(sample.header)} |" in content
    assert write_rows(sample.rows) in content


def write_rows(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@dataclass(frozen=True)
class Region:
    """A table whose first cell is merged with those below it, and a text that is not shown."""

    name: str
    rows: Sequence[tuple[str, str]]
    hidden: str

    @property
    def cells(self) -> list[list[str]]:
        """The rows of the table, empty where a cell is merged with the one above it."""
        first, *others = self.rows
        return [
            ["Region", "Item", "Value"],
            [self.name, *first],
            *(["", *row] for row in others),
        ]


REGIONS = st.builds(
    Region, WORDS, st.lists(st.tuples(WORDS, NUMBERS), min_size=2, max_size=5), WORDS
)
ReadRegion = Callable[[Region], Page]


def read_docx_region(region: Region) -> Page:
    document = docx.Document()
    paragraph = document.add_paragraph("Seen, A")
    paragraph.add_run()._element.append(OxmlElement("w:noBreakHyphen"))  # noqa: SLF001 - as above
    paragraph.add_run("7. ")
    paragraph.add_run(f"gone-{region.hidden}").font.hidden = True
    deletion, run, text = map(OxmlElement, ("w:del", "w:r", "w:delText"))
    text.text = f"gone-{region.hidden}"
    run.append(text)
    deletion.append(run)
    paragraph._element.append(deletion)  # noqa: SLF001 - as above
    paragraph.add_run("old").font.double_strike = True
    table = document.add_table(0, 3)
    for row in region.cells:
        for cell, value in zip(table.add_row().cells, row, strict=True):
            cell.text = value
    merged = table.cell(1, 0).merge(table.cell(len(region.rows), 0))
    merged.text = region.name
    wide = document.add_table(2, 3)
    wide.cell(0, 0).text, wide.cell(0, 2).text = "Wide", "Last"
    wide.cell(0, 0).merge(wide.cell(0, 1))
    wide.cell(1, 0).text, wide.cell(1, 1).text, wide.cell(1, 2).text = "1", "2", "3"
    file = io.BytesIO()
    document.save(file)
    page = docx_reader.read(file.getvalue(), "a.docx")
    assert "Seen, A-7. ~~old~~" in page.content
    assert "| Wide | Wide | Last |" in page.content
    assert ("deleted passage", 1) in {(part.what, part.count) for part in page.left_out}
    return page


def read_pptx_region(region: Region) -> Page:
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    for text, is_hidden in (("Seen", "0"), (f"gone-{region.hidden}", "1")):
        box = slide.shapes.add_textbox(0, 0, 99, 99)
        box.text_frame.text = text
        box._element.nvSpPr.cNvPr.set("hidden", is_hidden)  # noqa: SLF001 - as above
    table = slide.shapes.add_table(len(region.cells), 3, 0, 0, 99, 99).table
    for at, row in enumerate(region.cells):
        for column, text in enumerate(row):
            table.cell(at, column).text = text
    table.cell(1, 0).merge(table.cell(len(region.rows), 0))
    file = io.BytesIO()
    deck.save(file)
    return pptx_reader.read(file.getvalue(), "a.pptx")


def read_xlsx_region(region: Region) -> Page:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    for row in region.cells:
        sheet.append([*row, f"gone-{region.hidden}"])
    sheet.merge_cells(f"A2:A{len(region.cells)}")
    sheet.column_dimensions["D"].hidden = True
    file = io.BytesIO()
    workbook.save(file)
    return xlsx.read(file.getvalue(), "a.xlsx")


def write_odf_table(region: Region) -> odf.element.Element:
    table = odf.table.Table(name="Sheet")
    for at, row in enumerate(region.cells):
        written = odf.table.TableRow()
        for column, text in enumerate(row):
            is_merged = at == 1 and column == 0
            cell = odf.table.TableCell(numberrowsspanned=len(region.rows) if is_merged else 1)
            cell.addElement(odf.text.P(text=text))
            written.addElement(cell if text else odf.table.CoveredTableCell())
        table.addElement(written)
    return table


def read_odt_region(region: Region) -> Page:
    document = odf.opendocument.OpenDocumentText()
    hidden = odf.style.Style(name="Hidden", family="text")
    hidden.addElement(odf.style.TextProperties(display="none"))
    document.automaticstyles.addElement(hidden)
    paragraph = odf.text.P(text="Seen ")
    paragraph.addElement(odf.text.Span(stylename=hidden, text=f"gone-{region.hidden}"))
    document.text.addElement(paragraph)
    document.text.addElement(write_odf_table(region))
    file = io.BytesIO()
    document.save(file)
    return opendocument.read(file.getvalue(), "a.odt")


def read_ods_region(region: Region) -> Page:
    document = odf.opendocument.OpenDocumentSpreadsheet()
    table = write_odf_table(region)
    hidden = odf.table.TableRow(visibility="collapse")
    for text in ("", f"gone-{region.hidden}"):
        cell = odf.table.TableCell(numbercolumnsrepeated=2)
        cell.addElement(odf.text.P(text=text))
        hidden.addElement(cell)
    table.addElement(hidden)
    repeated = odf.table.TableRow()
    for text, times in (("twice", 2), ("3", 1)):
        cell = odf.table.TableCell(numbercolumnsrepeated=times)
        cell.addElement(odf.text.P(text=text))
        repeated.addElement(cell)
    table.addElement(repeated)
    document.spreadsheet.addElement(table)
    file = io.BytesIO()
    document.save(file)
    page = opendocument.read(file.getvalue(), "a.ods")
    assert "| twice | twice | 3 |" in page.content
    return page


def read_html_region(region: Region) -> Page:
    first, *others = region.rows
    merged = f"<td rowspan={len(region.rows)}>{region.name}</td>"
    rows = [f"{merged}<td>{'</td><td>'.join(first)}</td>"]
    rows += (f"<td>{'</td><td>'.join(row)}</td>" for row in others)
    hidden = f"gone-{region.hidden} and gone, and gone again"
    return html.read(
        f"<p>Seen <span style='display: none'>{hidden}</span></p>"
        f"<p hidden>{hidden}</p><div style='visibility:hidden'>{hidden}</div><table>"
        f"<tr><th>Region<th>Item<th>Value</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}"
        "</table>".encode(),
        "a.html",
    )


REGION_FORMATS = [
    read_docx_region, read_pptx_region, read_xlsx_region, read_odt_region, read_ods_region,
    read_html_region,
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("read", REGION_FORMATS)
@QUICK
@given(region=REGIONS)
def test_a_merged_cell_belongs_to_each_of_its_rows_and_hidden_text_is_counted(
    read: ReadRegion, region: Region
) -> None:
    page = read(region)

    assert write_rows([(region.name, *row) for row in region.rows]) in page.content
    assert "gone" not in page.content
    assert any(part.what.startswith(("hidden", "word")) for part in page.left_out)


@QUICK
@given(
    exact=st.decimals("-99999", "99999", places=2),
    thousands=st.integers(-(10**6), 10**6),
    hours=st.integers(0, 999),
)
def test_a_number_of_a_workbook_is_shown_in_its_format(
    exact: Decimal, thousands: int, hours: int
) -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.append(["Exact", "Grouped", "Thousands", "Hours"])
    sheet.append([exact, exact, thousands * 1000, hours / 24])
    codes = ("0.00", "#,##0.00", '#,##0,"k"', "[h]:mm")
    for cell, code in zip(sheet[2], codes, strict=True):
        cell.number_format = code
    file = io.BytesIO()
    workbook.save(file)

    content = xlsx.read(file.getvalue(), "a.xlsx").content

    exact += 0
    shown = (f"{exact:.2f}", f"{exact:,.2f}", f"{thousands:,}k", f"{hours}:00")
    assert write_rows([shown]) in content


@QUICK
@given(rows=ROWS)
def test_rows_of_a_csv_file_keep_their_order_and_their_places(rows: list[tuple[str, ...]]) -> None:
    file = io.StringIO()
    header = tuple(f"Head {at}" for at in range(len(rows[0])))
    csv.writer(file).writerows([header, *rows])

    page = delimited.read(file.getvalue().encode(), "a.csv")

    assert write_rows(rows) in page.content
    assert page.blocks[-1].anchor == ("row=2" if len(rows) == 1 else f"row=2-{len(rows) + 1}")


@QUICK
@given(numbers=st.lists(NUMBERS, min_size=2, max_size=6, unique=True))
def test_paragraphs_of_a_mail_that_differ_in_one_sign_are_all_read(numbers: list[str]) -> None:
    signed = dict.fromkeys(sign + number for number in numbers for sign in ("", "-"))
    paragraphs = [f"The balance of this account is {number} euros." for number in signed]
    paragraphs += ["Yes, 5.", "Yes, 5."]
    message = EmailMessage()
    message.set_content("\n\n".join(paragraphs))

    page = mail.read(message.as_bytes(), "a.eml")

    assert [block.text for block in page.blocks][-len(paragraphs) :] == paragraphs


@QUICK
@given(start=st.integers(2, 500), items=st.lists(WORDS, min_size=2, max_size=4))
def test_items_of_a_list_keep_their_numbers(start: int, items: list[str]) -> None:
    numbered = [f"{start + at}. {item}" for at, item in enumerate(items)]
    markup = "".join(f"<li>{item}</li>" for item in items)
    deck = pptx.Presentation()
    box = deck.slides.add_slide(deck.slide_layouts[5]).shapes.add_textbox(0, 0, 99, 99)
    box.text_frame.text = "\n".join(items)
    for paragraph in box.text_frame.paragraphs:
        numbering = paragraph._element.get_or_add_pPr().makeelement(  # noqa: SLF001 - as above
            qn("a:buAutoNum"), {"type": "arabicPeriod", "startAt": str(start)}
        )
        paragraph._element.get_or_add_pPr().append(numbering)  # noqa: SLF001 - as above
    file = io.BytesIO()
    deck.save(file)

    pages = [
        html.read(f"<ol start='{start}'>{markup}</ol>".encode(), "a.html"),
        markdown.read("\n".join(numbered).encode(), "a.md"),
        pptx_reader.read(file.getvalue(), "a.pptx"),
    ]

    for page in pages:
        assert [block.text for block in page.blocks][-len(items) :] == numbered


def is_utf_8(data: bytes) -> bool:
    try:
        return bool(data.decode())
    except UnicodeDecodeError:
        return False


ENCODINGS = {
    "cp1252": "äöéß–€°’",
    "cp1251": "жщд№–",
    "cp932": "中文テ℃",
    "gbk": "中文测试",
    "utf-16": LETTERS,
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(data=st.data())
def test_a_page_in_its_stated_encoding_is_read_as_it_was_written(
    encoding: str, data: st.DataObject
) -> None:
    letters = st.text(f"ab 0123456789{ENCODINGS[encoding]}", min_size=1, max_size=40)
    text = " ".join(f"Z{data.draw(letters)}".split())
    # What is UTF-8 by chance is read as UTF-8: many texts that are state another encoding.
    assume(text.isascii() or not is_utf_8(text.encode(encoding)))
    page = f'<html><head><meta charset="{encoding}"></head><body><p>{text}</p></body></html>'

    assert html.read(page.encode(encoding), "a.html").content == text


@QUICK
@given(
    shown=st.lists(WORDS, min_size=1, max_size=3),
    hidden=st.lists(WORDS, min_size=1, max_size=3),
    note=WORDS,
)
def test_hidden_sheets_rows_and_values_are_counted_and_notes_of_cells_are_read(
    shown: list[str], hidden: list[str], note: str
) -> None:
    workbook = openpyxl.Workbook()
    sheet = workbook.active
    sheet.append(["Head A", "Head B"])
    rows = [(f"seen-{word}", f"kept-{word}") for word in shown]
    sheet.append(rows[0])
    for word in hidden:
        sheet.append([f"gone-{word}", "x"])
        sheet.row_dimensions[sheet.max_row].hidden = True
    for row in rows[1:]:
        sheet.append(row)
    sheet["A1"].comment = Comment(f"note-{note}", "Ada")
    workbook.create_sheet("Back").sheet_state = "hidden"
    file = io.BytesIO()
    workbook.save(file)

    page = xlsx.read(file.getvalue(), "a.xlsx")

    assert "gone-" not in page.content
    assert f"Head A [Note: note-{note}]" in page.content
    assert write_rows(rows) in page.content
    assert {part.what: part.count for part in page.left_out} == {
        "hidden row": len(hidden),
        "hidden sheet": 1,
    }


@QUICK
@given(texts=st.lists(st.tuples(WORDS, NUMBERS), min_size=1, max_size=3))
def test_every_attachment_and_forwarded_message_is_read_or_counted(
    texts: list[tuple[str, str]],
) -> None:
    message = EmailMessage()
    message["Subject"] = "Outer"
    message.set_content("See below.")
    for at, (word, number) in enumerate(texts):
        message.add_attachment(f"{word} {number}", filename=f"{at}.txt")
        message.add_attachment(b"\x00", "application", "octet-stream", filename=f"{at}.bin")
        message.add_attachment(b"", "application", "octet-stream", filename=f"{at}.pdf")
        inner = EmailMessage()
        inner["Subject"] = f"Forwarded {word}"
        inner.set_content(f"Inner {number}")
        message.add_attachment(inner)

    page = mail.read(message.as_bytes(), "a.eml")

    lines = {" ".join(block.text.split()) for block in page.blocks}
    for word, number in texts:
        assert " ".join(f"{word} {number}".split()) in lines
        assert f"Inner {number}" in lines
    assert sum(part.count for part in page.left_out) == 2 * len(texts)


@pytest.mark.parametrize("read", [docx_reader.read, xlsx.read, pptx_reader.read])
def test_a_file_with_a_password_is_skipped_with_what_to_do(
    read: Callable[[bytes, str], Page],
) -> None:
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le")

    with pytest.raises(ReadingError, match="save it without a password") as found:
        read(data, "a")

    assert re.match("Skipped", type(found.value).__name__)
