"""Properties of all readers: no value changes, a row stays a row, what is invalid is marked.

Documents with random texts, numbers and notations are written by the usual libraries and read.
"""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from html import escape

import docx
import odf.opendocument
import odf.style
import odf.table
import odf.text
import openpyxl
import pptx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.comments import Comment

from knowledge.documents.errors import ReadingError
from knowledge.documents.interchange import mail
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


SAMPLES = st.builds(Sample, WORDS, POWERS, NUMBERS.map(lambda one: f"{one} euros"), NUMBERS, ROWS)
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
    for row in (sample.header, *sample.rows):
        assert f"| {' | '.join(row)} |" in content


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
    for word in shown:
        sheet.append([f"seen-{word}", f"kept-{word}"])
    for word in hidden:
        sheet.append([f"gone-{word}", "x"])
        sheet.row_dimensions[sheet.max_row].hidden = True
    sheet["A1"].comment = Comment(f"note-{note}", "Ada")
    workbook.create_sheet("Back").sheet_state = "hidden"
    file = io.BytesIO()
    workbook.save(file)

    page = xlsx.read(file.getvalue(), "a.xlsx")

    assert "gone-" not in page.content
    assert f"Head A [note-{note}]" in page.content
    assert all(f"| seen-{word} | kept-{word} |" in page.content for word in shown)
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
        inner = EmailMessage()
        inner["Subject"] = f"Forwarded {word}"
        inner.set_content(f"Inner {number}")
        message.add_attachment(inner)

    page = mail.read(message.as_bytes(), "a.eml")

    lines = {" ".join(block.text.split()) for block in page.blocks}
    for word, number in texts:
        assert " ".join(f"{word} {number}".split()) in lines
        assert f"Inner {number}" in lines
    assert sum(part.count for part in page.left_out) == len(texts)


@pytest.mark.parametrize("read", [docx_reader.read, xlsx.read, pptx_reader.read])
def test_a_file_with_a_password_is_skipped_with_what_to_do(
    read: Callable[[bytes, str], Page],
) -> None:
    data = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le")

    with pytest.raises(ReadingError, match="save it without one") as found:
        read(data, "a")

    assert re.match("Skipped", type(found.value).__name__)
