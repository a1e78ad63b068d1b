import io
import zipfile

import pytest

from knowledge.documents.errors import WrongFormatError
from knowledge.documents.office import epub
from knowledge.documents.page import BlockKind

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    '<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
)
PACKAGE = (
    '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
    "<metadata><dc:title>Care of bees</dc:title><dc:language>en</dc:language></metadata>"
    '<manifest><item id="b" href="two%20b.xhtml" media-type="application/xhtml+xml"/>'
    '<item id="a" href="one.xhtml" media-type="application/xhtml+xml"/>'
    '<item id="n" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/></manifest>'
    '<spine><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/></spine></package>'
)


def book(package: str = PACKAGE, /, **parts: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("OEBPS/book.opf", package)
        for name, text in parts.items():
            archive.writestr(f"OEBPS/{name.replace('_', ' ')}.xhtml", text)
    return file.getvalue()


def test_chapters_are_read_in_their_order_without_the_contents() -> None:
    chapters = {
        "two_b": "<html><body><h1>Winter</h1><p>Feed them.</p></body></html>",
        "one": '<html><body><h1 id="s">Summer</h1><p>Open the hive.</p></body></html>',
        "nav": "<html><body><ol><li>Summer</li></ol></body></html>",
    }

    page = epub.read(book(**chapters), "bees.epub")

    assert (page.title, page.language) == ("Care of bees", "en")
    assert [block.text for block in page.blocks] == [
        "Summer", "Open the hive.", "Winter", "Feed them.",
    ]  # fmt: skip
    assert page.blocks[0].kind is BlockKind.HEADING
    assert page.blocks[0].anchor == "one.xhtml#s"


def test_a_missing_chapter_is_named_and_the_others_are_read() -> None:
    page = epub.read(book(one="<html><body><p>Open the hive.</p></body></html>"), "bees.epub")

    assert [(part.what, part.names) for part in page.left_out] == [
        ("chapter", ("OEBPS/two b.xhtml",))
    ]


def test_a_zip_that_is_no_book_is_named() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "a")

    with pytest.raises(WrongFormatError, match=r"container\.xml is missing"):
        epub.read(file.getvalue(), "bees.epub")


def test_a_chapter_is_read_completely_and_shown_as_the_styles_of_the_book_state() -> None:
    page = epub.read(
        book(
            one='<html xmlns:epub="http://www.idpf.org/2007/ops"><head>'
            '<link rel="stylesheet" href="style.xhtml"/></head><body><header><h1>Fees</h1></header>'
            '<main><p><span class="old">400</span> 450<a epub:type="noteref" href="#n">1</a> EUR, '
            '<span class="off">secret</span></p></main><footer><p>Net prices</p></footer>'
            "</body></html>",
            style=".old { text-decoration: line-through } .off { display: none }",
            two_b="<html><body><svg><text>Map</text></svg><p>End</p></body></html>",
        ),
        "a.epub",
    )

    assert page.content == "# Fees\n\n~~400~~ 450[1] EUR,\n\nNet prices\n\nMap\n\nEnd"
    assert [part.what for part in page.left_out] == ["drawing"]


def test_a_chapter_that_is_no_html_is_named() -> None:
    kind = 'href="one.xhtml" media-type="{}"'.format
    package = PACKAGE.replace(kind("application/xhtml+xml"), kind("image/svg+xml"))
    data = book(package, two_b="<html><body><p>Text</p></body></html>")

    (left_out,) = epub.read(data, "a.epub").left_out

    assert (left_out.what, left_out.names) == ("chapter", ("image/svg+xml",))


def test_a_heading_that_a_book_moves_off_screen_is_the_title_of_its_section() -> None:
    moved = ("text-indent: -9999px", "position: absolute; left: -10000px", "clip: rect(0,0,0,0)")
    one = "".join(f'<h2 style="{style}">Rates</h2><p>5 %</p>' for style in moved)
    one += '<h2 style="display: none">Gone</h2><p style="text-indent: -9999px">Gone</p>'

    page = epub.read(book(one=f"<html><body>{one}</body></html>"), "a.epub")

    assert page.content == "\n\n".join(["## Rates\n\n5 %"] * 3)
