"""Chooses the reader of a file by its name, and takes files of many documents apart."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from knowledge.documents import json_lines, pdf, plain_text
from knowledge.documents.clean_page import clean_page
from knowledge.documents.errors import NoTextError, WrongFormatError
from knowledge.documents.location import Location
from knowledge.documents.markup import html, markdown, mdx, restructuredtext
from knowledge.documents.page import Page

Reader = Callable[[bytes, str], Page]

_READERS: Mapping[str, Reader] = {
    ".md": markdown.read,
    ".markdown": markdown.read,
    ".mdx": mdx.read,
    ".rst": restructuredtext.read,
    ".html": html.read,
    ".htm": html.read,
    ".txt": plain_text.read,
    ".pdf": pdf.read,
}
_JSON_LINES = frozenset({".jsonl", ".ndjson"})
SUFFIXES = frozenset(_READERS) | _JSON_LINES


@dataclass(frozen=True, slots=True)
class Item:
    """The bytes of one document: a whole file, or a line of one."""

    source: str
    data: bytes
    place: str


def holds_many(path: PurePosixPath) -> bool:
    """Return whether a file of this name holds many documents."""
    return path.suffix.lower() in _JSON_LINES


def items_of(path: PurePosixPath, data: bytes) -> Iterator[Item]:
    """Return the documents of a file as bytes, without reading them."""
    if holds_many(path):
        for number, line in json_lines.lines_of(data):
            yield Item(str(path), line, f"{path}:{number}")
    else:
        yield Item(str(path), data, str(path))


def read(item: Item, path: PurePosixPath, location: Location) -> Page:
    """Return the page of an item, placed where its path puts it; raise a `ReadingError`."""
    page = clean_page(_read(item, path.suffix.lower()))
    if not page.blocks:
        raise NoTextError("expected text, found none")
    return _set_place(page, location, stands_alone=not holds_many(path))


def _read(item: Item, suffix: str) -> Page:
    reader = json_lines.read if suffix in _JSON_LINES else _READERS.get(suffix)
    if reader is None:
        known = " ".join(sorted(SUFFIXES))
        raise WrongFormatError(f"expected one of {known}, found {suffix or 'no suffix'!r}")
    return reader(item.data, item.source)


def _set_place(page: Page, location: Location, *, stands_alone: bool) -> Page:
    if not stands_alone:
        return replace(page, crumbs=page.crumbs or ((page.title,) if page.title else ()))
    title = page.title or location.file_title
    return replace(
        page,
        title=title,
        name=location.name,
        crumbs=location.crumbs(title),
        language=page.language if page.language is not None else location.language,
    )
