"""For every format: text in code, tables and links comes out as it went in."""

import csv
import html as markup
import io
import json
from collections.abc import Callable

import docx
import openpyxl
import pptx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pptx.util import Inches

from knowledge.documents.formats import Reader
from knowledge.documents.interchange import delimited, openapi
from knowledge.documents.markup import asciidoc, html, markdown
from knowledge.documents.office import docx as docx_reader
from knowledge.documents.office import pptx as pptx_reader
from knowledge.documents.office import xlsx

SIGNS = "abcXYZ019{}[]()/|:.,-+*=_#<>$%&@!?\\"
CELLS = st.text(SIGNS, min_size=1, max_size=24).map(lambda text: f"q{text}q")
CODE = st.text(SIGNS, min_size=1, max_size=24).map(lambda text: f"q{text}q")


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


@pytest.mark.parametrize(
    ("read", "write"),
    [
        (delimited.read, write_csv),
        (html.read, write_html),
        (xlsx.read, write_xlsx),
        (docx_reader.read, write_docx),
        (pptx_reader.read, write_pptx),
    ],
)
@settings(max_examples=15)
@given(first=CELLS, second=CELLS)
def test_a_cell_comes_out_as_it_went_in(
    read: Reader, write: Callable[[str, str], bytes], first: str, second: str
) -> None:
    table = read(write(first, second), "a").blocks[-1].text

    assert cells_of(table) == [first, second]


@settings(max_examples=60)
@given(code=CODE)
def test_a_span_of_code_comes_out_as_it_went_in(code: str) -> None:
    assert (
        markdown.read(f"Call `{code}` now.".encode(), "a").blocks[0].text == f"Call `{code}` now."
    )
    shown = html.read(f"<p>Call <code>{markup.escape(code)}</code> now.</p>".encode(), "a")
    assert shown.blocks[0].text == f"Call `{code}` now."


@settings(max_examples=60)
@given(lines=st.lists(CODE, min_size=1, max_size=4))
def test_a_block_of_code_comes_out_as_it_went_in(lines: list[str]) -> None:
    body = "\n".join(lines)

    for read, text in (
        (markdown.read, f"```\n{body}\n```"),
        (asciidoc.read, f"----\n{body}\n----"),
        (html.read, f"<pre>{markup.escape(body)}</pre>"),
    ):
        assert read(text.encode(), "a").blocks[0].text == f"```\n{body}\n```"


@settings(max_examples=30)
@given(path=st.text("abc{}/_-.:~", min_size=1, max_size=30))
def test_the_path_of_an_operation_comes_out_as_it_went_in(path: str) -> None:
    document = {"openapi": "3.1.0", "paths": {f"/{path}": {"delete": {}}}}

    pages = list(openapi.split_operations(json.dumps(document).encode(), "a", is_json=True))

    assert pages[1].title == f"DELETE /{path}"
    assert f"`DELETE /{path}`" in pages[1].content
