"""Chooses the reader of a file by its name, and takes files of many documents apart."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import PurePosixPath

import orjson
from pydantic import TypeAdapter

from knowledge.documents.clean_page import clean_page
from knowledge.documents.errors import NoDocumentError, NoTextError, WrongFormatError
from knowledge.documents.interchange import json_lines, zendesk
from knowledge.documents.location import Location
from knowledge.documents.page import Page
from knowledge.documents.skipping import explain_skip

Reader = Callable[[bytes, str], Page]

_READERS: Mapping[str, str] = {
    ".md": "markup.markdown",
    ".markdown": "markup.markdown",
    ".mdx": "markup.mdx",
    ".rst": "markup.restructuredtext",
    ".adoc": "markup.asciidoc",
    ".asciidoc": "markup.asciidoc",
    ".html": "markup.html",
    ".htm": "markup.html",
    ".xhtml": "markup.html",
    ".txt": "plain_text",
    ".text": "plain_text",
    ".pdf": "pdf.pdf_reader",
    ".docx": "office.docx",
    ".docm": "office.docx",
    ".xlsx": "office.xlsx",
    ".xlsm": "office.xlsx",
    ".pptx": "office.pptx",
    ".pptm": "office.pptx",
    ".epub": "office.epub",
    ".csv": "interchange.delimited",
    ".tsv": "interchange.delimited",
    ".eml": "interchange.mail",
    ".mbox": "interchange.mail",
}
"""The module that reads a format; it is imported with the first file, in the process that reads."""
_JSON_LINES = frozenset({".jsonl", ".ndjson"})
_STRUCTURED = frozenset({".json", ".yaml", ".yml"})
SUFFIXES = frozenset(_READERS) | _JSON_LINES | _STRUCTURED

_MARKS_OF_INTERFACES = (b"openapi", b"swagger")
_PAGE: TypeAdapter[Page] = TypeAdapter(Page)


@dataclass(frozen=True, slots=True)
class Item:
    """The bytes of one document: a whole file, a line of one, or a page taken out of one."""

    source: str
    data: bytes
    place: str


def holds_many(path: PurePosixPath) -> bool:
    """Return whether a file of this name holds many documents."""
    return path.suffix.lower() in _JSON_LINES | _STRUCTURED


def needs_splitting(path: PurePosixPath) -> bool:
    """Return whether a file must be parsed to know its documents: see `split`."""
    return path.suffix.lower() in _STRUCTURED


def items_of(path: PurePosixPath, data: bytes) -> Iterator[Item]:
    """Return the documents of a file as bytes, without reading them."""
    if path.suffix.lower() in _JSON_LINES:
        for number, line in json_lines.lines_of(data):
            yield Item(str(path), line, f"{path}:{number}")
    else:
        yield Item(str(path), data, str(path))


def refuse_other_data(data: bytes) -> None:
    """Raise `NoDocumentError` for JSON or YAML without a mark of the documents that it may hold."""
    if not any(mark in data for mark in (*_MARKS_OF_INTERFACES, zendesk.MARK)):
        raise NoDocumentError("it holds data and is no description of an interface (OpenAPI)")


def split(path: PurePosixPath, data: bytes) -> Iterator[Item]:
    """Yield the documents of a file that must be parsed; raise a `ReadingError`."""
    is_json = path.suffix.lower() == ".json"
    if is_json and not any(mark in data for mark in _MARKS_OF_INTERFACES):
        pages = zendesk.split_articles(data, str(path))
    else:
        from knowledge.documents.interchange.openapi import split_operations

        pages = split_operations(data, str(path), is_json=is_json)
    for page in pages:
        yield Item(str(path), orjson.dumps(page), f"{path}: {page.title}")


def read(item: Item, path: PurePosixPath, location: Location) -> Page:
    """Return the page of an item, placed where its path puts it; raise a `ReadingError`."""
    try:
        page = clean_page(_read(item, path.suffix.lower(), location))
    except RecursionError as error:
        raise WrongFormatError("expected less nesting than found") from error
    if not page.blocks:
        raise NoTextError("expected text, found none")
    return replace(
        _set_place(page, path, location),
        groups=page.groups or location.groups,
        version=page.version or location.version,
    )


def _read(item: Item, suffix: str, location: Location) -> Page:
    if location.is_reply:
        from knowledge.documents.interchange import mail

        return mail.read(item.data, item.source, keeps_quotations=False)
    if suffix in _JSON_LINES:
        return json_lines.read(item.data, item.source)
    if suffix in _STRUCTURED:
        return _PAGE.validate_json(item.data)
    if suffix not in _READERS:
        known = " ".join(sorted(SUFFIXES))
        reason = explain_skip(PurePosixPath(f"file{suffix}"))
        raise WrongFormatError(
            f"expected one of {known}, found {suffix or 'no suffix'!r}: {reason}"
        )
    return _find_reader(_READERS[suffix])(item.data, item.source)


@cache
def _find_reader(module: str) -> Reader:
    reader: Reader = import_module(f"knowledge.documents.{module}").read
    return reader


def _set_place(page: Page, path: PurePosixPath, location: Location) -> Page:
    if needs_splitting(path):
        return replace(
            page,
            name=f"{location.name}/{page.name}",
            crumbs=(*location.folders, *page.crumbs),
        )
    if holds_many(path):
        return replace(page, crumbs=page.crumbs or ((page.title,) if page.title else ()))
    title = page.title or location.file_title
    return replace(
        page,
        title=title,
        name=location.name,
        crumbs=(*page.crumbs, title) if page.crumbs else location.crumbs(title),
        language=page.language if page.language is not None else location.language,
        url=page.url if location.url is None else location.url,
        id=None if location.is_foreign else page.id,
    )
