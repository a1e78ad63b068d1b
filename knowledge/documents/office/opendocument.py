"""Reads files of LibreOffice and other programs in the OpenDocument format: text, sheets, slides.

Tracked deletions, comments, tables of contents, and hidden text, sheets, rows and slides are left
out. Cell values are written as displayed, because the file contains that form.
"""

import io
import zipfile
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from knowledge.documents.errors import SkippedError, WrongFormatError
from knowledge.documents.office.opendocument_sheets import SheetReader
from knowledge.documents.office.opendocument_slides import SlideReader
from knowledge.documents.office.opendocument_text import BodyReader
from knowledge.documents.office.zipped_xml import LOCKED, ZippedXml, make_page, read_properties
from knowledge.documents.page import Block, Page, first_heading

_EXPECTED = "an OpenDocument file"
_READERS: dict[str, type[BodyReader]] = {
    "spreadsheet": SheetReader,
    "presentation": SlideReader,
    "text": BodyReader,
    "drawing": BodyReader,
    "chart": BodyReader,
}


def read(data: bytes, source: str) -> Page:
    """Return the page; sheets and slides are sections."""
    is_flat = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    archive = ZippedXml(_pack(data) if is_flat else data, _EXPECTED)
    manifest = "META-INF/manifest.xml"
    if manifest in archive and b"encryption-data" in archive.read(manifest):
        raise SkippedError(LOCKED)
    root = archive.parse("content.xml")
    kind, reader, blocks = _read_document(archive, root, "")
    meta = archive.parse("meta.xml") if "meta.xml" in archive else root
    stated = read_properties(meta.find("meta"))
    title = "" if kind == "spreadsheet" else first_heading(blocks)
    title = title or stated.title
    return make_page(source, archive, stated, title, blocks, reader.links, reader.left_out)


def _read_document(
    archive: ZippedXml, root: Element, folder: str
) -> tuple[str, BodyReader, tuple[Block, ...]]:
    """Return the kind of a document, such as `text`, its reader, and its blocks."""
    body = next((child for child in root.findall("body/*") if child.tag in _READERS), None)
    if body is None:
        raise WrongFormatError(f"expected {_EXPECTED} with text, sheets or slides, found another")

    def read_object(root: Element, folder: str) -> Iterator[Block]:
        _, inner, blocks = _read_document(archive, root, folder)
        reader.left_out.take(inner.left_out.list())
        yield from blocks

    reader = _READERS[body.tag](archive, root, folder, read_object)
    deleted = sum(1 for _ in body.iter("deletion"))
    reader.left_out.add("deleted passage", "marked as deleted", deleted)
    return body.tag, reader, tuple(reader.read(body))


def _pack(data: bytes) -> bytes:
    """Return a flat file, which is one XML document, as an archive of that part."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("content.xml", data)
    return packed.getvalue()
