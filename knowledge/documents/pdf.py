"""Reads the text of a PDF: a place for each page, headings from its outline."""

import io
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from knowledge.documents.decoding import MAX_BYTES, clean_text
from knowledge.documents.errors import NoTextError, TooLargeError, WrongFormatError
from knowledge.documents.page import Block, BlockKind, Page
from knowledge.documents.plain_text import paragraphs

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

MOST_PAGES = 10_000
_MOST_CHARACTERS = 32_000_000
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-\n(?=[^\W\d_A-Z])")
_PAGE_NUMBER = re.compile(r"\s*(?:\d{1,4}|[ivxl]{1,6})\s*\Z")
_SIGNATURES = {
    b"PK\x03\x04": "a zip archive",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8": "a JPEG image",
}
# What a damaged file makes the reader stumble over, beside its own errors.
_DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
    zlib.error,
)

Outline = Mapping[int, Mapping[str, tuple[int, str]]]


def read(data: bytes, source: str) -> Page:
    """Return the page; raise `WrongFormatError` when it is none, is damaged or is locked."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    if len(data) > MAX_BYTES:
        raise TooLargeError(f"a document may have {MAX_BYTES} bytes, this one has {len(data)}")
    _refuse_other_kinds(data)
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise WrongFormatError(
                "expected a PDF that opens without a password, found a locked one"
            )
        return _page(reader, source)
    except (PyPdfError, *_DAMAGE) as error:
        raise WrongFormatError(f"expected a PDF, found a damaged one: {error!s:.120}") from error


def _refuse_other_kinds(data: bytes) -> None:
    if b"%PDF-" in data[:1024]:
        return
    kinds = (kind for signature, kind in _SIGNATURES.items() if data.startswith(signature))
    raise WrongFormatError(f"expected a PDF, found {next(kinds, 'something else')}")


def _page(reader: "PdfReader", source: str) -> Page:
    if len(reader.pages) > MOST_PAGES:
        raise TooLargeError(
            f"a document may have {MOST_PAGES} pages, this one has {len(reader.pages)}"
        )
    outline = _outline(reader)
    blocks: list[Block] = []
    warnings: list[str] = []
    room = _MOST_CHARACTERS
    seen: set[object] = set()
    repeated = 0
    for number, sheet in enumerate(reader.pages, start=1):
        drawing = _drawing(sheet)
        if drawing in seen:
            repeated += 1
            continue
        seen.add(drawing)
        try:
            text = clean_text(sheet.extract_text())
        except _DAMAGE as error:
            warnings.append(f"page {number} could not be read: {error!s:.120}")
            continue
        room -= len(text)
        if room < 0:
            raise TooLargeError(f"a document may have {_MOST_CHARACTERS} characters of text")
        blocks.extend(_blocks(text, f"page={number}", outline.get(number, {})))
    if repeated:
        warnings.append(f"{repeated} pages repeat an earlier one and were left out")
    if not blocks:
        raise NoTextError("expected text, found none: its pages may be pictures")
    return Page(source, _title(reader), tuple(blocks), warnings=tuple(warnings))


def _drawing(sheet: "PageObject") -> object:
    """Return what names the drawing of a page: a small file may show one on many thousand pages."""
    contents = sheet.raw_get("/Contents") if "/Contents" in sheet else None
    named = contents if isinstance(contents, list) else [contents]
    numbers = tuple(getattr(part, "idnum", None) for part in named)
    return numbers if numbers and None not in numbers else object()


def _title(reader: "PdfReader") -> str:
    stated = reader.metadata.title if reader.metadata is not None else None
    return " ".join(clean_text(stated).split()) if isinstance(stated, str) else ""


def _outline(reader: "PdfReader") -> Outline:
    """Return for each page the headings the outline places there, by their bare letters."""
    found: dict[int, dict[str, tuple[int, str]]] = {}
    try:
        for level, entry in _entries(reader.outline, 1):
            number = reader.get_destination_page_number(entry)  # type: ignore[arg-type]
            title = " ".join(clean_text(str(getattr(entry, "title", ""))).split())
            if number is not None and title:
                found.setdefault(number + 1, {})[_bare(title)] = (level, title)
    except _DAMAGE:
        return {}
    return found


def _entries(outline: object, level: int) -> Iterator[tuple[int, object]]:
    for entry in outline if isinstance(outline, list) else ():
        if isinstance(entry, list):
            yield from _entries(entry, level + 1)
        else:
            yield min(level, 6), entry


def _blocks(text: str, anchor: str, titles: Mapping[str, tuple[int, str]]) -> Iterator[Block]:
    lines: list[str] = []
    for line in _without_page_number(text.split("\n")):
        heading = titles.get(_bare(line))
        if heading is None:
            lines.append(line)
            continue
        yield from _prose(lines, anchor)
        lines = []
        yield Block(BlockKind.HEADING, heading[1], heading[0], anchor)
    yield from _prose(lines, anchor)


def _without_page_number(lines: list[str]) -> list[str]:
    kept = [line for line in lines if line.strip()]
    for edge in (-1, 0):
        if kept and _PAGE_NUMBER.match(kept[edge]):
            lines = [line for line in lines if line is not kept[edge]]
            break
    return lines


def _prose(lines: list[str], anchor: str) -> Iterator[Block]:
    yield from paragraphs(_HYPHENATED.sub("", "\n".join(lines)), anchor)


def _bare(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalpha())
