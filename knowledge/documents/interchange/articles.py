"""Extracts the articles from an export of a help center or an intranet: the JSON of its API, or a
table.

An object is an article if it has the fields in `_ARTICLES`. The objects around it that have a
`name`, and those to which it refers by id, provide its breadcrumbs. Drafts are left out, which the
first page reports.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import NoDocumentError, ReadingError
from knowledge.documents.location import language_tag
from knowledge.documents.markup import html
from knowledge.documents.page import Block, BlockKind, LeftOutCounts, Page

# The fields of the text and of the title, and one that other objects do not have. Zendesk and
# Intercom, Freshdesk, SharePoint (REST), SharePoint (Microsoft Graph).
_ARTICLES = (
    ("body", "title", "title"),
    ("description", "title", "folder_id"),
    ("CanvasContent1", "Title", "Title"),
    ("canvasLayout", "title", "title"),
)
MARKS = (b'"body"', b'"folder_id"', b'"CanvasContent1"', b'"canvasLayout"')
"""A file without any of these contains no articles."""
_IDS = ("id", "Id")
_ADDRESSES = ("html_url", "url", "AbsoluteUrl", "webUrl")
_LANGUAGES = ("locale", "default_locale")
_KEYWORDS = ("label_names", "tags")
# The columns of a table, in lower case; a JSON object needs a field that only articles have.
_TITLES = frozenset({"title", "name", "article title", "titel", "titre", "question", "subject"})
_BODIES = frozenset({"body", "content", "html", "article body", "answer", "text", "inhalt"})
_PLACES = ("category", "collection", "section", "folder")
_DRAFTS = ("draft", "is draft", "state", "status", "level")
_UNPUBLISHED = frozenset({"true", "1", "yes", "draft", "unpublished", "archived"})
_DEEPEST_LEVEL = 6
# The fields with the id of a folder, and the list that contains the folder.
_FOLDERS = (
    ("section_id", "sections"),
    ("parent_section_id", "sections"),
    ("folder_id", "folders"),
    ("category_id", "categories"),
)
_DEEPEST_FOLDER = 10
_MARKUP = ("</", "<p>", "<br", "<ul>", "<li>")
_COMPONENT_ID = re.compile(r"<div data-sp-componentid=[^<>]{0,9}>[^<>]{0,60}</div>")


class ArticleColumns:
    """The names of the columns in a table of articles."""

    def __init__(self, header: Sequence[str]) -> None:
        names = [clean_text(cell).strip().casefold().replace("_", " ") for cell in header]
        self._names = names
        self._title = next((at for at, name in enumerate(names) if name in _TITLES), None)
        self._body = next((at for at, name in enumerate(names) if name in _BODIES), None)
        self._places = [names.index(name) for name in _PLACES if name in names]

    def are_in(self, rows: Sequence[Sequence[str]]) -> bool:
        """Return whether the rows have titles, and bodies at least one of which is HTML."""
        if self._title is None or self._body is None:
            return False
        bodies = (_take(row, self._body) for row in rows)
        return any(map(_has_markup, bodies))

    def write(self, rows: Sequence[Sequence[str]], left_out: LeftOutCounts) -> Iterator[Block]:
        """Yield the articles below the headings of their categories and sections."""
        self._count_unread(rows, left_out)
        last: list[str] = []
        for number, row in enumerate(rows, start=2):
            body = _take(row, self._body)
            is_draft = _is_draft(dict(zip(self._names, row, strict=False)))
            if is_draft or not body:
                reason = "not published" if is_draft else "without text"
                left_out.add("article", reason, name=_take(row, self._title))
                continue
            places = [name for at in self._places if (name := _take(row, at))]
            for level, name in enumerate(places, start=1):
                if places[:level] != last[:level]:
                    yield Block(BlockKind.HEADING, name, level)
            last = places
            level = len(places) + 1
            title = _take(row, self._title) or f"Row {number}"
            yield Block(BlockKind.HEADING, title, level, f"row={number}")
            for page in _read_html(body, title, left_out):
                left_out.take(page.left_out)
                for block in page.blocks:
                    below = min(block.level + level, _DEEPEST_LEVEL) if block.level else 0
                    yield replace(block, level=below)

    def _count_unread(self, rows: Sequence[Sequence[str]], left_out: LeftOutCounts) -> None:
        read = {self._title, self._body, *self._places}
        for at, name in enumerate(self._names):
            if at not in read and name not in _DRAFTS and any(_take(row, at) for row in rows):
                left_out.add("column", "neither the title, the text nor the section", name=name)


@dataclass(frozen=True, slots=True)
class _Entry:
    """An object of an export, and what it inherits from the objects around it: the names of the
    folders, and the id. `key` is the field or the list that contains it.
    """

    fields: Mapping[str, Any]
    key: str
    id: str
    folders: tuple[str, ...]

    def read(self, *names: str) -> str:
        """Return the first of several fields that contains text or a number."""
        values = (self.fields.get(name) for name in names)
        # JSON can name half a surrogate, which no text may have.
        return next((clean_text(str(value)) for value in values if value), "")

    @property
    def is_draft(self) -> bool:
        """Whether the article is not published."""
        state = self.fields.get("publishingState")
        stated = {**self.fields, **(state if isinstance(state, dict) else {})}
        return _is_draft(stated)


def split_articles(export: object, source: str) -> Iterator[Page]:
    """Yield the published articles of a parsed file; raise `NoDocumentError` if it has none."""
    entries = list(_walk(export))
    folders = {(entry.key, entry.id): entry for entry in entries if entry.read("name")}
    left_out = LeftOutCounts()
    pages: dict[tuple[str, str], Page] = {}
    is_markup = False
    for entry in entries:
        keys = next((keys for keys in _ARTICLES if all(key in entry.fields for key in keys)), None)
        if keys is None:
            continue
        title, body = entry.read(keys[1]), _read_body(entry.fields[keys[0]], left_out)
        is_markup = is_markup or _has_markup(body)
        if entry.is_draft or not body.strip():
            reason = "not published" if entry.is_draft else "without text"
            left_out.add("article", reason, name=title)
        # A translation may repeat the article.
        elif (title, body) not in pages:
            for page in _read_html(body, title, left_out):
                stated = _add_claims(page, entry, title, folders)
                pages[title, body] = replace(stated, source=source)
    if not is_markup or not pages:
        reasons = map(str, left_out.list() if is_markup else ())
        raise NoDocumentError("; ".join(("it contains data, but no published articles", *reasons)))
    first, *others = pages.values()
    yield replace(first, left_out=(*first.left_out, *left_out.list()))
    yield from others


def _walk(export: object) -> Iterator[_Entry]:
    """Yield the objects of a parsed file in their order, including those inside of others."""
    waiting: list[tuple[object, str, str, tuple[str, ...]]] = [(export, "", "", ())]
    while waiting:
        value, key, identity, folders = waiting.pop()
        if isinstance(value, dict):
            entry = _Entry(value, key, identity, folders)
            entry = replace(entry, id=entry.read(*_IDS) or identity)
            yield entry
            folders += (entry.read("name"),)
            inner = ((part, name, entry.id, folders) for name, part in value.items())
            waiting += reversed(list(inner))
        elif isinstance(value, list):
            waiting += ((part, key, identity, folders) for part in reversed(value))


def _read_html(body: str, title: str, left_out: LeftOutCounts) -> Iterator[Page]:
    """Yield the page of an article, unless it cannot be read, which is counted."""
    try:
        yield html.read(body.encode("utf-8", "replace"), "")
    except ReadingError as error:
        left_out.add("article", str(error), name=title)


def _has_markup(body: str) -> bool:
    return any(mark in body for mark in _MARKUP)


def _read_body(value: object, left_out: LeftOutCounts) -> str:
    """Return HTML, which SharePoint divides into parts, as JSON or as a string of JSON."""
    if isinstance(value, str) and value.startswith("[{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return str(value)
    if not isinstance(value, dict | list):
        return _COMPONENT_ID.sub("", str(value or ""))
    parts = list(_walk(value))
    others = sum(1 for part in parts if part.read("webPartId", "webPartType"))
    left_out.add("web part", "only web parts with text are read", others)
    return "\n".join(part.read("innerHtml", "innerHTML") for part in parts)


def _add_claims(
    page: Page, entry: _Entry, title: str, folders: Mapping[tuple[str, str], _Entry]
) -> Page:
    title = title or page.title
    labels = next((entry.fields[key] for key in _KEYWORDS if entry.fields.get(key)), ())
    return replace(
        page,
        title=title,
        name=entry.id or title,
        crumbs=(*filter(None, (*entry.folders, *_name_folders(entry, folders))), title),
        keywords=tuple(map(str, labels)) if isinstance(labels, list) else (),
        language=language_tag(entry.key) or entry.read(*_LANGUAGES) or None,
        url=entry.read(*_ADDRESSES) or None,
    )


def _name_folders(entry: _Entry, folders: Mapping[tuple[str, str], _Entry]) -> Iterator[str]:
    """Return the names of the folders to which an article refers, the outermost first."""
    names: list[str] = []
    while len(names) < _DEEPEST_FOLDER:
        places = [(kind, entry.read(key)) for key, kind in _FOLDERS]
        found = [folders[place] for place in places if place in folders]
        if not found:
            break
        entry = found[0]
        names.append(entry.read("name"))
    return reversed(names)


def _is_draft(fields: Mapping[str, Any]) -> bool:
    return any(str(fields.get(key)).strip().casefold() in _UNPUBLISHED for key in _DRAFTS)


def _take(row: Sequence[str], at: int | None) -> str:
    return row[at].strip() if at is not None and at < len(row) else ""
