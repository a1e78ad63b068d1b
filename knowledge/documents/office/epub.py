"""Reads e-books (EPUB): their chapters, which are HTML, in reading order."""

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import WrongFormatError
from knowledge.documents.markup import html
from knowledge.documents.office.zipped_xml import ZippedXml, choose_title, find_children
from knowledge.documents.page import Block, LeftOutCounts, Page

_EXPECTED = "an e-book (EPUB)"
_CHAPTERS = frozenset({"application/xhtml+xml", "text/html"})
_ENCRYPTION = "META-INF/encryption.xml"
_MOST_CHAPTERS = 5_000


def read(data: bytes, source: str) -> Page:
    """Return the page: all chapters in order; anchors consist of file and location."""
    archive = ZippedXml(data, _EXPECTED)
    container = archive.parse("META-INF/container.xml")
    package = next((rootfile.get("full-path", "") for rootfile in container.iter("rootfile")), "")
    root = archive.parse(package)
    metadata = root.find("metadata")
    blocks: list[Block] = []
    links: list[tuple[str, str]] = []
    warnings: list[str] = []
    left_out = LeftOutCounts()
    for name in _chapters(root, package, left_out):
        if name not in archive:
            left_out.add("chapter", "missing in the file", name=name)
            continue

        def find_file(address: str, chapter: str = name) -> bytes | None:
            part = _resolve(address, chapter)
            return archive.read(part) if part in archive else None

        chapter = html.read(archive.read(name), source, find_file, is_book=True)
        blocks += (_place(block, name, archive) for block in chapter.blocks)
        links += chapter.links
        warnings += chapter.warnings
        left_out.take(chapter.left_out)
    if not blocks and _ENCRYPTION in archive:
        raise WrongFormatError(f"expected {_EXPECTED} without copy protection, found a locked one")
    return Page(
        source,
        choose_title(_metadata(metadata, "title")),
        tuple(blocks),
        description=_metadata(metadata, "description"),
        language=_metadata(metadata, "language") or None,
        links=tuple(links),
        warnings=tuple(warnings),
        left_out=left_out.list(),
    )


def _chapters(root: Element, package: str, left_out: LeftOutCounts) -> Iterator[str]:
    """Yield the parts in reading order, without the table of contents; count unreadable ones."""
    manifest = {item.get("id", ""): item for item in find_children(root.find("manifest"), "item")}
    entries = list(find_children(root.find("spine"), "itemref"))
    too_many = f"a book can have at most {_MOST_CHAPTERS} chapters"
    left_out.add("chapter", too_many, max(0, len(entries) - _MOST_CHAPTERS))
    for entry in entries[:_MOST_CHAPTERS]:
        item = manifest.get(entry.get("idref", ""))
        if item is None or item.get("media-type") not in _CHAPTERS:
            kind = item.get("media-type", "") if item is not None else "missing"
            left_out.add("chapter", "not HTML", name=kind)
            continue
        if "nav" not in (item.get("properties", "")).split():
            yield _resolve(item.get("href", ""), package)


def _place(block: Block, chapter: str, archive: ZippedXml) -> Block:
    """Return a block of a chapter with its pictures, and with its place in the book."""
    pictures = (
        archive.read_picture(_resolve(picture.address, chapter), picture.caption)
        if picture.address
        else picture
        for picture in block.pictures
    )
    place = None if block.anchor is None else f"{posixpath.basename(chapter)}#{block.anchor}"
    return replace(block, pictures=tuple(pictures), anchor=place)


def _resolve(address: str, part: str) -> str:
    """Return the name of the part to which another one refers."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(part), unquote(address)))


def _metadata(metadata: Element | None, name: str) -> str:
    stated = (clean_text(element.text or "") for element in find_children(metadata, name))
    return next(filter(None, (" ".join(text.split()) for text in stated)), "")
