"""Extracts the articles from an export of a Zendesk help centre, in the JSON of the Zendesk API.

`articles` have `id`, `title`, `body` (HTML) and `html_url`; `sections` and `categories` in the same
file provide their breadcrumbs. Drafts are left out, which the first page reports.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from knowledge.documents.decoding import clean_text
from knowledge.documents.errors import NoDocumentError, WrongFormatError
from knowledge.documents.markup import html
from knowledge.documents.page import LeftOutCounts, Page

MARK = b'"articles"'
_MOST_ARTICLES = 100_000

Entry = Mapping[str, Any]


def split_articles(data: bytes, source: str) -> Iterator[Page]:
    """Yield the published articles; raise `WrongFormatError` or `NoDocumentError`."""
    try:
        # Not with orjson: it crashes where a limit of memory ends, instead of an error.
        export = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise WrongFormatError(f"expected JSON, found {error}") from error
    articles = _read_entries(export, "articles")
    if not any("body" in article and "title" in article for article in articles):
        raise NoDocumentError("it contains data, but no articles with title and body")
    sections = {entry.get("id"): entry for entry in _read_entries(export, "sections")}
    categories = {entry.get("id"): entry for entry in _read_entries(export, "categories")}
    published = [article for article in articles if not article.get("draft")]
    left_out = LeftOutCounts()
    left_out.add("article", "not published", len(articles) - len(published))
    for article in published[:_MOST_ARTICLES]:
        if not article.get("body"):
            continue
        page = html.read(str(article["body"]).encode("utf-8", "replace"), source)
        title = _write(article.get("title") or page.title)
        section = sections.get(article.get("section_id"), {})
        category = categories.get(section.get("category_id"), {})
        names = (_write(part["name"]) for part in (category, section) if part.get("name"))
        labels = article.get("label_names")
        yield replace(
            page,
            title=title,
            name=_write(article.get("id") or title),
            crumbs=(*names, title),
            keywords=tuple(_write(label) for label in labels) if isinstance(labels, list) else (),
            language=_write(article["locale"]) if article.get("locale") else None,
            url=_write(article["html_url"]) if article.get("html_url") else None,
            left_out=(*page.left_out, *left_out.list()),
        )
        left_out = LeftOutCounts()


def _write(value: object) -> str:
    # JSON can name half a surrogate, which no text may have.
    return clean_text(str(value))


def _read_entries(export: object, name: str) -> list[Entry]:
    entries = export.get(name) if isinstance(export, dict) else None
    return (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )
