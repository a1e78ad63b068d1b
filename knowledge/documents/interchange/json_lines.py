"""Reads records of prepared documents: JSON lines, or JSON files with one record or a list of them.

A *document* has `id`, `source`, `crumbs`, `description`, `content`, `summary`, `keypoints`,
`keywords` and `chunks`; a *page* has `page_id` and `markdown`; a *passage* has `passage_id` and
`text`; a *unit* has `unit_id` and `text`. Further fields are optional. The `source` of a record is
a label to show, or the web address of the page, and never a path to open.
"""

import codecs
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from knowledge.documents.decoding import LONG_LINE_CHARACTERS, clean_text
from knowledge.documents.errors import (
    NoTextError,
    TooLargeError,
    WrongFormatError,
)
from knowledge.documents.front_matter import parse_stated_groups
from knowledge.documents.markup import markdown
from knowledge.documents.page import Block, BlockKind, Page, Prepared
from knowledge.documents.stated_version import parse_stated_version

_MOST_ITEMS = 10_000
_MOST_LINE_BYTES = 16 * 1024 * 1024
_LABEL_CHARACTERS = 300
_OPENING_CHARACTERS = 80

Record = Mapping[str, Any]
# The keys of the id and of the text of each kind of record.
_SHAPES = (
    ("page_id", "markdown"),
    ("passage_id", "text"),
    ("unit_id", "text"),
    ("id", "content"),
)
MARKS = tuple(f'"{body}"'.encode() for _, body in _SHAPES)
"""A file without any of these contains no records."""


def lines_of(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Return each non-empty line with its 1-based number."""
    for number, line in enumerate(data.removeprefix(codecs.BOM_UTF8).split(b"\n"), start=1):
        if stripped := line.strip():
            yield number, stripped


def list_records(value: object) -> list[bytes]:
    """Return the records of a parsed JSON file; none if it contains other data."""
    records = value if isinstance(value, list) else [value]
    if not any(isinstance(record, dict) and _find_shape(record) for record in records):
        return []
    # Numbers with a decimal point are decimals, and are kept as they are written.
    return [json.dumps(record, default=str).encode() for record in records]


def read(line: bytes, source: str) -> Page:
    """Return the page of one line; `source` is the name of the file."""
    record = _record(line)
    shape = _find_shape(record)
    if shape is None:
        found = ", ".join(sorted(_label(key) for key in list(record)[:20])) or "none"
        expected = "; or ".join(", ".join(keys) for keys in _SHAPES)
        raise WrongFormatError(f"expected the keys {expected}; found {found}")
    key, body = shape
    page = _add_claims(_read_body(record, body, source), record, key)
    if key == "page_id":
        page = replace(page, blocks=tuple(_add_anchors(page.blocks, record.get("headings"))))
    elif key == "unit_id":
        page = replace(page, title=f"{_label(_text(record, 'label'))} {page.title}".strip())
    elif key == "id":
        page = _add_prepared(page, record)
    if len(line) <= LONG_LINE_CHARACTERS:
        return page
    warning = f"a line is longer than {LONG_LINE_CHARACTERS} characters"
    return replace(page, warnings=(*page.warnings, warning))


def _record(line: bytes) -> Record:
    if len(line) > _MOST_LINE_BYTES:
        raise TooLargeError(
            f"a line can have at most {_MOST_LINE_BYTES} bytes; this one has {len(line)}"
        )
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise WrongFormatError(f"expected a JSON object, found {error}") from error
    if not isinstance(record, dict):
        raise WrongFormatError(f"expected a JSON object, found {type(record).__name__}")
    return record


def _find_shape(record: Record) -> tuple[str, str] | None:
    return next((keys for keys in _SHAPES if all(key in record for key in keys)), None)


def _read_body(record: Record, key: str, source: str) -> Page:
    text = _text(record, key)
    if not text:
        raise NoTextError(f"expected a string under {key!r}, found {record[key]!r:.60}")
    if key != "text":
        return markdown.read_text(text, source)
    paragraphs = (" ".join(part.split()) for part in text.split("\n"))
    return Page(source, "", tuple(Block(BlockKind.TEXT, part) for part in paragraphs if part))


def _add_prepared(page: Page, record: Record) -> Page:
    stated = _text(record, "source")
    return replace(
        page,
        source=_label(stated) or page.source,
        url=page.url or (stated if "://" in stated else None),
        description=_text(record, "description") or page.description,
        keywords=_texts(record, "keywords") or page.keywords,
        prepared=Prepared(
            summary=_text(record, "summary"),
            keypoints=_texts(record, "keypoints"),
            chunks=_texts(record, "chunks"),
        ),
    )


def _add_claims(page: Page, record: Record, key: str) -> Page:
    name = _label(_text(record, key))
    if not name:
        raise WrongFormatError(f"expected a string under {key!r}, found {record[key]!r:.60}")
    crumbs = tuple(_label(crumb) for crumb in _texts(record, "crumbs"))
    title = _label(_text(record, "title")) or page.title
    version = parse_stated_version(record.get("version")) or page.version
    return replace(
        page,
        # A page in several versions has an id of its own in each.
        id=name if key == "id" else f"{name}@{version}" if version else None,
        version=version,
        name=_label(_text(record, "page")) or name,
        title=title or (crumbs[-1] if crumbs else _opening(page)),
        crumbs=crumbs,
        language=_text(record, "lang") or _text(record, "language") or page.language,
        url=_text(record, "url") or page.url,
        groups=_groups(record) or page.groups,
    )


def _groups(record: Record) -> tuple[str, ...]:
    if "groups" not in record:
        return ()
    try:
        return parse_stated_groups(record["groups"])
    except ValueError as error:
        raise WrongFormatError(
            f"it was skipped, because its groups are invalid: {error}"
        ) from error


def _opening(page: Page) -> str:
    """Return the first words of a page, which serve as its title if it has none."""
    text = page.blocks[0].text if page.blocks else ""
    return " ".join(text[: 4 * _OPENING_CHARACTERS].split()[:12])[:_OPENING_CHARACTERS].strip()


def _add_anchors(blocks: Sequence[Block], headings: object) -> Iterator[Block]:
    stated: dict[str, list[str]] = {}
    for heading in headings if isinstance(headings, list) else ():
        if isinstance(heading, dict) and _text(heading, "anchor"):
            key = _key(_text(heading, "text"))
            stated.setdefault(key, []).append(_text(heading, "anchor"))
    for block in blocks:
        anchors = stated.get(_key(block.text)) if block.kind is BlockKind.HEADING else None
        yield replace(block, anchor=anchors.pop(0)) if anchors else block


def _key(heading: str) -> str:
    return "".join(character for character in heading.lower() if character.isalnum())


def _text(record: Record, key: str) -> str:
    value = record.get(key)
    return clean_text(value).strip() if isinstance(value, str) else ""


def _texts(record: Record, key: str) -> tuple[str, ...]:
    value = record.get(key)
    items = value[:_MOST_ITEMS] if isinstance(value, list) else []
    texts = (item.get("text") if isinstance(item, dict) else item for item in items)
    cleaned = (clean_text(text).strip() for text in texts if isinstance(text, str))
    return tuple(text for text in cleaned if text)


def _label(text: str) -> str:
    return " ".join(clean_text(text).split())[:_LABEL_CHARACTERS]
