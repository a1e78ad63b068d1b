"""Selects the reader of a file by its name, and splits files that contain several documents.

Readers decode entities and escapes, so text is cleaned again after reading.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

import orjson
from pydantic import TypeAdapter

from knowledge.documents import furniture
from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import (
    NoDocumentError,
    NoTextError,
    SkippedError,
    WrongFormatError,
)
from knowledge.documents.interchange import articles, json_lines
from knowledge.documents.location import Location
from knowledge.documents.page import Block, BlockKind, Page, Prepared, write_count
from knowledge.documents.pictures import collect_pictures
from knowledge.documents.readers import READERS, find_reader

_SCANS = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff"})
"""Picture files. They are documents if they are ingested by themselves; in folders, they belong to
pages.
"""
_JSON_LINES = frozenset({".jsonl", ".ndjson"})
_STRUCTURED = frozenset({".json", ".yaml", ".yml"})
SUFFIXES = frozenset(READERS) | _JSON_LINES | _STRUCTURED

_OTHER_DATA = (
    "the file contains data, but no prepared documents, articles or API description (OpenAPI)"
)
_PAGE: TypeAdapter[Page] = TypeAdapter(Page)
LONGEST_LABEL = 300
"""Maximum number of characters of a title, breadcrumb, keyword or anchor."""
LONGEST_HEADING = 500
"""Maximum number of characters of a heading; a longer one becomes text, because each passage
repeats the headings above it.
"""

_LONGEST_DESCRIPTION = 4000
_LONGEST_ADDRESS = 4000
_MOST_CRUMBS = 32
_MOST_KEYWORDS = 1000
_MOST_WARNINGS = 10
_MOST_LINKS = 2_000
"""Maximum number of links of a page, because each passage is searched for all of them."""
_OTHER_CONTENT = {b"%PDF-": ".pdf", b"{\\rtf": ".rtf"}
"""Beginnings of files that would also be readable as text, by the suffix they should have."""

_REASONS: Mapping[str, str] = {
    "a picture; it is shown with the pages that refer to it":
        "png jpg jpeg gif svg webp ico bmp tif tiff heic avif drawio",
    "this text document format is not supported; open it and save it as .docx or .pdf":
        "doc dot rtf pages wpd wps one pub",
    "this workbook format is not supported; open it and save it as .xlsx": "xlsb numbers",
    "this slide format is not supported; open it and save it as .pptx or .pdf":
        "ppt pps pot key",
    "this drawing format is not supported; open it and save it as .pdf": "vsd vsdx",
    "an archive; unpack it first": "tar gz tgz bz2 xz 7z rar zst",
    "archives nested more than once are not opened; unpack the outer one first": "zip",
    "a recording; speech is not supported":
        "mp3 wav ogg flac m4a aac mp4 m4v mov avi mkv webm",
    "part of a website, without text": "css scss less js mjs cjs map woff woff2 ttf otf eot",
    "source code, configuration or data":
        "py pyi ts tsx jsx java kt go rs c h cc cpp hpp cs rb php sh bash bat ps1 sql toml "
        "ini cfg conf env lock xml xsd proto graphql parquet sqlite db tf vue svelte swift",
    "a log file; copy the relevant text into a .txt file": "log",
}  # fmt: skip
_BY_SUFFIX = {
    f".{suffix}": reason for reason, suffixes in _REASONS.items() for suffix in suffixes.split()
}
_MEDIA = ("a picture", "an archive", "a recording", "part of a website")
_UNKNOWN = "this format is not supported"
_NO_SUFFIX = "the file has no suffix, so its format is unknown"


@dataclass(frozen=True, slots=True)
class Item:
    """The bytes of one document: a whole file, one of its lines, or a page extracted from it.

    `is_record`: the bytes are a record of a prepared document, see `interchange.json_lines`.
    `beside` are pictures and style sheets, by the addresses that the document uses for them.
    """

    source: str
    data: bytes
    place: str
    is_record: bool = False
    beside: Mapping[str, bytes] = field(default_factory=dict)


def holds_many(path: PurePosixPath) -> bool:
    """Return whether a file with this name can contain several documents."""
    return path.suffix.lower() in _JSON_LINES | _STRUCTURED


def needs_splitting(path: PurePosixPath) -> bool:
    """Return whether a file must be parsed to find its documents, see `split`."""
    return path.suffix.lower() in _STRUCTURED


def items_of(path: PurePosixPath, data: bytes) -> Iterator[Item]:
    """Return the documents of a file as bytes, without reading them."""
    if path.suffix.lower() in _JSON_LINES:
        for number, line in json_lines.lines_of(data):
            yield Item(str(path), line, f"{path}:{number}", is_record=True)
    else:
        yield Item(str(path), data, str(path))


def refuse_other_data(data: bytes) -> None:
    """Raise `NoDocumentError` if the data are JSON or YAML but not a supported kind of document."""
    if not data:
        raise NoDocumentError("the file is empty")
    marks = (b"openapi", b"swagger", *articles.MARKS, *json_lines.MARKS)
    if not any(mark in data for mark in marks):
        raise NoDocumentError(_OTHER_DATA)


def split(path: PurePosixPath, data: bytes) -> Iterator[Item]:
    """Yield the documents of a file that must be parsed; raise a `ReadingError`."""
    from knowledge.documents.interchange import openapi

    is_json = path.suffix.lower() == ".json"
    value, warnings = openapi.parse_structured(data, is_json=is_json)
    records = json_lines.list_records(value) if is_json else []
    for number, record in enumerate(records, start=1):
        place = f"{path}:{number}" if len(records) > 1 else str(path)
        yield Item(str(path), record, place, is_record=True)
    if records:
        return
    if openapi.is_description(value):
        pages = openapi.split_operations(value, str(path), warnings)
    elif is_json:
        pages = articles.split_articles(value, str(path))
    else:
        raise NoDocumentError(_OTHER_DATA)
    for page in pages:
        yield Item(str(path), orjson.dumps(page), f"{path}: {page.title}")


def read(item: Item, path: PurePosixPath, location: Location) -> Page:
    """Return the page of an item, located according to its path; raise a `ReadingError`."""
    try:
        page = collect_pictures(_read(item, path.suffix.lower(), location), item.beside)
        if page.files:
            from knowledge.documents.recognition import read_pictures

            is_outside = page.url is not None or location.url is not None
            page = read_pictures(page, is_outside=is_outside)
        page = clean_page(page)
        at_end = path.suffix.lower() in furniture.MARKUP
        page = furniture.remove_repeated(page, location.repeated, at_end=at_end)
    except RecursionError as error:
        raise WrongFormatError("the document is nested too deeply") from error
    if not page.blocks:
        reasons = (write_count(len(page.files), "picture"),) if page.files else ()
        raise NoTextError(
            "; ".join(("the document contains no text", *reasons, *map(str, page.left_out)))
        )
    # Content of others must not be opened to more people than its source allows.
    stated = (
        (location.groups, page.groups) if location.is_foreign else (page.groups, location.groups)
    )
    return replace(
        _set_place(page, item, path, location),
        groups=stated[0] or stated[1],
        version=page.version or location.version,
    )


def clean_page(page: Page) -> Page:
    """Return the page without hidden characters and with labels of limited length."""
    warnings = page.warnings
    if len(page.links) > _MOST_LINKS:
        warnings += (f"only the first {_MOST_LINKS} of {len(page.links)} links are kept",)
    return replace(
        page,
        source=clean_label(page.source, _LONGEST_ADDRESS),
        title=clean_label(page.title),
        blocks=tuple(_block(block) for block in page.blocks if block.text),
        name=clean_text(page.name),
        id=None if page.id is None else clean_text(page.id),
        crumbs=tuple(_labels(page.crumbs[:_MOST_CRUMBS])),
        description=clean_text(page.description)[:_LONGEST_DESCRIPTION],
        keywords=tuple(_labels(page.keywords[:_MOST_KEYWORDS])),
        language=None if page.language is None else clean_label(page.language),
        url=None if page.url is None else clean_text(page.url)[:_LONGEST_ADDRESS],
        prepared=None if page.prepared is None else _clean_prepared(page.prepared),
        warnings=_warnings(warnings),
        version=clean_label(page.version),
        links=tuple(
            (label, address)
            for label, address in page.links[:_MOST_LINKS]
            if len(label) <= LONGEST_LABEL and len(address) <= _LONGEST_ADDRESS
        ),
    )


def clean_label(text: str, longest: int = LONGEST_LABEL) -> str:
    """Return text as a label: clean, on one line, and at most `longest` characters long."""
    line = " ".join(clean_text(text[: 4 * longest]).split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}\u2026"


def explain_skip(path: PurePosixPath) -> str:
    """Return why a file whose suffix has no reader is not read."""
    suffix = path.suffix.lower()
    return _BY_SUFFIX.get(suffix, _UNKNOWN if suffix else _NO_SUFFIX)


def is_media(suffix: str) -> bool:
    """Return whether a suffix is that of a picture, a recording, an archive or a part of a
    website.
    """
    return _BY_SUFFIX.get(suffix.lower(), "").startswith(_MEDIA)


def list_skipped(paths: Iterable[PurePosixPath]) -> list[tuple[PurePosixPath, str]]:
    """Return files with the reasons why they are not read."""
    return [(path, explain_skip(path)) for path in sorted(paths)]


def _read(item: Item, suffix: str, location: Location) -> Page:
    if location.is_reply:
        from knowledge.documents.interchange import mail

        return mail.read(item.data, item.source, keeps_quotations=False)
    if item.is_record or suffix in _JSON_LINES:
        return json_lines.read(item.data, item.source)
    if suffix in _STRUCTURED:
        return _PAGE.validate_json(item.data)
    if suffix in _SCANS:
        return find_reader("scans")(item.data, item.source)
    if suffix not in READERS:
        reason = explain_skip(PurePosixPath(f"file{suffix}"))
        if suffix in _BY_SUFFIX:
            raise SkippedError(reason)
        known = " ".join(sorted(SUFFIXES))
        raise WrongFormatError(
            f"expected one of {known}, found {suffix or 'no suffix'!r}: {reason}"
        )
    return _read_file(item, suffix)


def _read_file(item: Item, suffix: str) -> Page:
    for sign, right in _OTHER_CONTENT.items():
        if suffix != right and item.data.startswith(sign):
            raise WrongFormatError(f"the name ends with {suffix}, but the content is {right}")
    try:
        if READERS[suffix] == "markup.html":
            from knowledge.documents.markup import html

            return html.read(item.data, item.source, item.beside.get)
        return find_reader(READERS[suffix])(item.data, item.source)
    except WrongFormatError as error:
        if item.data:
            raise
        raise WrongFormatError("the file is empty") from error


def _set_place(page: Page, item: Item, path: PurePosixPath, location: Location) -> Page:
    if item.is_record or path.suffix.lower() in _JSON_LINES:
        return replace(page, crumbs=page.crumbs or ((page.title,) if page.title else ()))
    page = replace(page, language=location.language if page.language is None else page.language)
    if needs_splitting(path):
        name, crumbs = f"{location.name}/{page.name}", (*location.folders, *page.crumbs)
        return replace(page, name=name, crumbs=crumbs)
    title = page.title or location.file_title
    return replace(
        page,
        title=title,
        name=location.name,
        crumbs=(*page.crumbs, title) if page.crumbs else location.crumbs(title),
        url=page.url if location.url is None else location.url,
        id=None if location.is_foreign else page.id,
    )


def _block(block: Block) -> Block:
    text = clean_text(block.text)
    anchor = None if block.anchor is None else clean_text(block.anchor)[:LONGEST_LABEL]
    if block.kind is not BlockKind.HEADING:
        return replace(block, text=text, anchor=anchor)
    line = " ".join(text.split())
    if len(line) > LONGEST_HEADING:
        return Block(BlockKind.TEXT, line)
    return replace(block, text=line, anchor=anchor)


def _clean_prepared(prepared: Prepared) -> Prepared:
    return Prepared(
        summary=clean_text(prepared.summary),
        keypoints=tuple(clean_text(point) for point in prepared.keypoints),
        chunks=tuple(clean_text(chunk) for chunk in prepared.chunks),
    )


def _labels(texts: Iterable[str]) -> Iterable[str]:
    return (label for text in texts if (label := clean_label(text)))


def _warnings(warnings: tuple[str, ...]) -> tuple[str, ...]:
    kept = tuple(clean_label(warning) for warning in warnings[:_MOST_WARNINGS])
    left = len(warnings) - len(kept)
    return (*kept, write_count(left, "further note")) if left else kept
