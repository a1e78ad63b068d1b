"""Extracts the articles from an export of a help center or an intranet, in the JSON of its API.

An object is an article if it has the fields in `_ARTICLES`. The objects around it that have a
`name`, and those to which it refers by id, provide its breadcrumbs. Drafts are left out, which the
first page reports.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import NoDocumentError, ReadingError
from knowledge.documents.location import language_tag
from knowledge.documents.markup import html
from knowledge.documents.page import LeftOutCounts, Page

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
_DRAFTS = (("draft", "True"), ("state", "draft"), ("status", "1"), ("level", "draft"))
# The fields with the id of a folder, and the list that contains the folder.
_FOLDERS = (
    ("section_id", "sections"),
    ("parent_section_id", "sections"),
    ("folder_id", "folders"),
    ("category_id", "categories"),
)
_DEEPEST_FOLDER = 10
_MARKUP = "</"
_COMPONENT_ID = re.compile(r"<div data-sp-componentid=[^<>]{0,9}>[^<>]{0,60}</div>")


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
        return any(str(stated.get(key)) == value for key, value in _DRAFTS)


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
        is_markup = is_markup or _MARKUP in body
        if entry.is_draft or not body.strip():
            reason = "not published" if entry.is_draft else "without text"
            left_out.add("article", reason, name=title)
        # A translation may repeat the article.
        elif (title, body) not in pages:
            try:
                page = html.read(body.encode("utf-8", "replace"), source)
            except ReadingError as error:
                left_out.add("article", str(error), name=title)
            else:
                pages[title, body] = _add_claims(page, entry, title, folders)
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
