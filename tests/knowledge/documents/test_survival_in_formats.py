"""For formats of books, offices and manuals: code, cells and links come out as they went in."""

import html as markup
import io
import zipfile

import docx
from docx.oxml.ns import qn
from docx.oxml.parser import OxmlElement
from hypothesis import given, settings
from hypothesis import strategies as st

from knowledge.documents.markup import asciidoc, html, restructuredtext
from knowledge.documents.office import docx as docx_reader
from knowledge.documents.office import epub

SIGNS = "abcXYZ019{}[]()/|:.,-+*=_#<>$%&@!?"
CODE = st.text(SIGNS, min_size=1, max_size=24).map(lambda text: f"q{text}q")
WORDS = st.text("abcXYZ019./:-{}", min_size=1, max_size=24).map(lambda text: f"q{text}q")
SHOWN = st.text("abcXYZ019{}()/.,=", min_size=1, max_size=24).map(lambda text: f"q{text}q")
CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="a.opf"/></rootfiles></container>'
)
PACKAGE = (
    '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml" '
    'media-type="application/xhtml+xml"/>'
    '</manifest><spine><itemref idref="a"/></spine></package>'
)


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


RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


@settings(max_examples=12)
@given(lines=st.lists(CODE, min_size=1, max_size=4))
def test_a_block_of_code_comes_out_as_it_went_in(lines: list[str]) -> None:
    body = "\n".join(lines)
    indented = "\n".join(f"    {line}" for line in lines)

    shown = restructuredtext.read(f".. code-block:: text\n\n{indented}\n".encode(), "a")
    assert shown.blocks[0].text.split("\n", 1)[1] == f"{body}\n```"
    assert (
        epub.read(write_epub(f"<pre>{markup.escape(body)}</pre>"), "a").blocks[-1].text
        == f"```\n{body}\n```"
    )


@settings(max_examples=12)
@given(code=WORDS)
def test_a_span_of_code_comes_out_as_it_went_in(code: str) -> None:
    assert (
        restructuredtext.read(f"Call ``{code}`` now.".encode(), "a").blocks[0].text
        == f"Call `{code}` now."
    )
    assert (
        asciidoc.read(f"Call `+{code}+` now.".encode(), "a").blocks[0].text == f"Call `{code}` now."
    )
    shown = epub.read(write_epub(f"<p>Call <code>{markup.escape(code)}</code> now.</p>"), "a")
    assert shown.blocks[-1].text == f"Call `{code}` now."


@settings(max_examples=12)
@given(first=SHOWN, second=SHOWN)
def test_a_cell_comes_out_as_it_went_in(first: str, second: str) -> None:
    row = f"| {first} | {second} |"

    assert (
        asciidoc.read(f"|===\n|A |B\n\n|{first} |{second}\n|===".encode(), "a")
        .blocks[-1]
        .text.endswith(row)
    )
    table = f".. list-table::\n\n   * - A\n     - B\n   * - {first}\n     - {second}\n"
    assert restructuredtext.read(table.encode(), "a").blocks[-1].text.endswith(row)
    cells = f"<tr><td>{first}</td><td>{second}</td></tr>"
    page = epub.read(write_epub(f"<table><tr><th>A</th><th>B</th></tr>{cells}</table>"), "a")
    assert page.blocks[-1].text.endswith(row)


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
