"""For every format: text in code, tables and links comes out as it went in."""

import csv
import html as markup
import io
import zipfile
from collections.abc import Callable

import docx
import openpyxl
import pptx
import pytest
from docx.oxml.ns import qn
from docx.oxml.parser import OxmlElement
from hypothesis import given, settings
from hypothesis import strategies as st
from pptx.util import Inches

from knowledge.documents.interchange import delimited, openapi
from knowledge.documents.markup import asciidoc, html, markdown, restructuredtext
from knowledge.documents.office import docx as docx_reader
from knowledge.documents.office import epub, xlsx
from knowledge.documents.office import pptx as pptx_reader
from knowledge.documents.readers import Reader

SIGNS = "abcXYZ019{}[]()/|:.,-+*=_#<>$%&@!?\\"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="a.opf"/></rootfiles></container>'
)
PACKAGE = (
    '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml" '
    'media-type="application/xhtml+xml"/>'
    '</manifest><spine><itemref idref="a"/></spine></package>'
)


def texts(signs: str) -> st.SearchStrategy[str]:
    return st.text(signs, min_size=1, max_size=24).map(lambda text: f"q{text}q")


ANY, PLAIN = texts(SIGNS), texts("abcXYZ019./:-{}")
SHOWN = texts("abcXYZ019{}()/.,=")
"""Signs that are no markup in a cell or a link of these formats."""


def cells_of(table: str) -> list[str]:
    """Return the cells of the last row of a table, as somebody who reads Markdown does."""
    row = table.split("\n")[-1].strip("| ").replace("\\|", "\x00")
    return [cell.strip().replace("\x00", "|") for cell in row.split(" | ")]


def write_csv(first: str, second: str) -> bytes:
    file = io.StringIO()
    csv.writer(file).writerows([("A", "B"), (first, second)])
    return file.getvalue().encode()


def write_html(first: str, second: str) -> bytes:
    cells = "".join(f"<td>{markup.escape(text)}</td>" for text in (first, second))
    return f"<table><tr><th>A</th><th>B</th></tr><tr>{cells}</tr></table>".encode()


def write_xlsx(first: str, second: str) -> bytes:
    workbook, file = openpyxl.Workbook(), io.BytesIO()
    workbook.active.append(("A", "B"))
    workbook.active.append((first, second))
    workbook.save(file)
    return file.getvalue()


def write_docx(first: str, second: str) -> bytes:
    document, file = docx.Document(), io.BytesIO()
    table = document.add_table(2, 2)
    for at, text in enumerate(("A", "B", first, second)):
        table.cell(at // 2, at % 2).text = text
    document.save(file)
    return file.getvalue()


def write_pptx(first: str, second: str) -> bytes:
    deck, file = pptx.Presentation(), io.BytesIO()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    table = slide.shapes.add_table(2, 2, 0, 0, Inches(1), Inches(1)).table
    for at, text in enumerate(("A", "B", first, second)):
        table.cell(at // 2, at % 2).text = text
    deck.save(file)
    return file.getvalue()


def write_asciidoc(first: str, second: str) -> bytes:
    return f"|===\n|A |B\n\n|{first} |{second}\n|===".encode()


def write_sphinx(first: str, second: str) -> bytes:
    return f".. list-table::\n\n   * - A\n     - B\n   * - {first}\n     - {second}\n".encode()


def write_epub(body: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("a.opf", PACKAGE)
        archive.writestr("a.xhtml", f"<html><body>{body}</body></html>")
    return file.getvalue()


def write_linked_docx(text: str, target: str) -> bytes:
    """Return a document with one paragraph: a link with a text."""
    document, file = docx.Document(), io.BytesIO()
    document.add_paragraph("Open ")
    part = document.part
    link = OxmlElement("w:hyperlink")
    link.set(qn("r:id"), part.relate_to(target, f"{RELATIONS}/hyperlink", is_external=True))
    run, shown = OxmlElement("w:r"), OxmlElement("w:t")
    shown.text = text
    run.append(shown)
    link.append(run)
    document.element.body[0].append(link)
    document.save(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("read", "write", "written"),
    [
        (delimited.read, write_csv, ANY),
        (html.read, write_html, ANY),
        (xlsx.read, write_xlsx, ANY),
        (docx_reader.read, write_docx, ANY),
        (pptx_reader.read, write_pptx, ANY),
        (asciidoc.read, write_asciidoc, SHOWN),
        (restructuredtext.read, write_sphinx, SHOWN),
        (epub.read, lambda *cells: write_epub(write_html(*cells).decode()), SHOWN),
    ],
)
@settings(max_examples=15)
@given(data=st.data())
def test_a_cell_comes_out_as_it_went_in(
    read: Reader,
    write: Callable[[str, str], bytes],
    written: st.SearchStrategy[str],
    data: st.DataObject,
) -> None:
    cells = [data.draw(written), data.draw(written)]

    assert cells_of(read(write(*cells), "a").blocks[-1].text) == cells


@pytest.mark.parametrize(
    ("read", "write", "written"),
    [
        (markdown.read, lambda code: f"Call `{code}` now.".encode(), ANY),
        (
            html.read,
            lambda code: f"<p>Call <code>{markup.escape(code)}</code> now.</p>".encode(),
            ANY,
        ),
        (restructuredtext.read, lambda code: f"Call ``{code}`` now.".encode(), PLAIN),
        (asciidoc.read, lambda code: f"Call `+{code}+` now.".encode(), PLAIN),
        (
            epub.read,
            lambda code: write_epub(f"<p>Call <code>{markup.escape(code)}</code> now.</p>"),
            PLAIN,
        ),
    ],
)
@settings(max_examples=30)
@given(data=st.data())
def test_a_span_of_code_comes_out_as_it_went_in(
    read: Reader,
    write: Callable[[str], bytes],
    written: st.SearchStrategy[str],
    data: st.DataObject,
) -> None:
    code = data.draw(written)

    assert read(write(code), "a").blocks[-1].text == f"Call `{code}` now."


@settings(max_examples=40)
@given(lines=st.lists(ANY, min_size=1, max_size=4))
def test_a_block_of_code_comes_out_as_it_went_in(lines: list[str]) -> None:
    body = "\n".join(lines)
    indented = "\n".join(f"    {line}" for line in lines)

    for read, written in (
        (markdown.read, f"```\n{body}\n```".encode()),
        (asciidoc.read, f"----\n{body}\n----".encode()),
        (html.read, f"<pre>{markup.escape(body)}</pre>".encode()),
        (epub.read, write_epub(f"<pre>{markup.escape(body)}</pre>")),
    ):
        assert read(written, "a").blocks[-1].text == f"```\n{body}\n```"
    (shown,) = restructuredtext.read(f".. code-block:: c\n\n{indented}\n".encode(), "a").blocks
    assert shown.text == f"```c\n{body}\n```"


@settings(max_examples=12)
@given(text=SHOWN.filter(lambda text: "=" not in text))
def test_the_text_of_a_link_comes_out_as_it_went_in(text: str) -> None:
    address = "https://docs.example/a"

    for page in (
        html.read(f'<p>Open <a href="{address}">{text}</a></p>'.encode(), "a"),
        epub.read(write_epub(f'<p>Open <a href="{address}">{text}</a></p>'), "a"),
        asciidoc.read(f"Open {address}[{text}]".encode(), "a"),
        restructuredtext.read(f"Open `{text} <{address}>`__".encode(), "a"),
        docx_reader.read(write_linked_docx(text, address), "a"),
    ):
        assert f"Open {text}" in page.blocks[-1].text


@settings(max_examples=30)
@given(path=st.text("abc{}/_-.:~", min_size=1, max_size=30))
def test_the_path_of_an_operation_comes_out_as_it_went_in(path: str) -> None:
    document = {"openapi": "3.1.0", "paths": {f"/{path}": {"delete": {}}}}

    pages = list(openapi.split_operations(document, "a"))

    assert pages[1].title == f"DELETE /{path}"
    assert f"`DELETE /{path}`" in pages[1].content
