"""Recognizes changelogs and index pages, which mention many subjects but explain none.

They match most questions to a small degree, so they get a lower weight in a search.
"""

import re
from enum import StrEnum
from pathlib import PurePosixPath

from knowledge.documents.page import Block, BlockKind, Page

_NAMES = re.compile(
    r"change ?-?log|changes|release ?-?notes?|releases?|what\W?s new|news|history|versions?",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"\W{0,3}(?:(?:version|release|v)\W{0,2})?(?:\d{1,4}\.\d{1,4}|\d{4}-\d{2}|unreleased)",
    re.IGNORECASE,
)
_VERSION_ALONE = re.compile(
    r"\W{0,3}(?:(?:version|release|v)\W{0,2}\d{1,4}\.\d{1,4}|\d{4}-\d{2}"
    r"|(?:\d{1,4}(?:\.\d{1,4}){1,3}[\w.+-]{0,20}|unreleased)"
    r"(?:\W{0,3}$|\W{1,3}.{0,30}\b(?:19|20)\d\d\b))",
    re.IGNORECASE,
)
"""A heading that is a version, possibly with a date; "3.1 The name" is a numbered section
instead.
"""
_MARKDOWN_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\(")
_HTML_LINK = re.compile(r"<a\b[^<>]{0,500}>([^<>]{1,200})</a>", re.IGNORECASE)
_LEAST_HEADINGS = 3
_LEAST_ITEMS = 5
_MOST_SOURCE = 400_000
_MOST_OTHER_SHARE = 0.3
"""The share of words in an index page that may be outside of its list of links."""


class PageKind(StrEnum):
    """The type of a page; `CONTENT` explains its subject."""

    CONTENT = ""
    CHANGELOG = "changelog"
    INDEX = "index"


def recognise_kind(page: Page, source: bytes) -> PageKind:
    """Return the type of a page; `source` is the file from which it was read."""
    if _is_changelog(page):
        return PageKind.CHANGELOG
    return PageKind.INDEX if _is_index(page, source) else PageKind.CONTENT


def _is_changelog(page: Page) -> bool:
    """Return whether most headings are versions, or some of them if the name of the page or file
    says so.
    """
    headings = [
        block.text
        for block in page.blocks
        if block.kind is BlockKind.HEADING and block.text != page.title
    ]
    file = re.sub("[_-]", " ", PurePosixPath(page.source).stem)
    if _NAMES.fullmatch(page.title.strip()) or _NAMES.fullmatch(file):
        return any(map(_VERSION.match, headings))
    versions = sum(_VERSION_ALONE.match(heading) is not None for heading in headings)
    return versions >= _LEAST_HEADINGS and versions * 2 > len(headings)


def _is_index(page: Page, source: bytes) -> bool:
    """Return whether most words of a page are in list items that begin with a link."""
    items = [block for block in page.blocks if block.kind is BlockKind.ITEM]
    if len(items) < _LEAST_ITEMS:
        return False
    text = source[:_MOST_SOURCE].decode("utf-8", "replace")
    links = {
        _normalise(match[1])
        for pattern in (_MARKDOWN_LINK, _HTML_LINK)
        for match in pattern.finditer(text)
    }
    linked = [block for block in items if _begins_with_link(block, links)]
    words = sum(_count_words(block) for block in page.blocks if block.kind is not BlockKind.HEADING)
    others = words - sum(map(_count_words, linked))
    return len(linked) >= _LEAST_ITEMS and others <= _MOST_OTHER_SHARE * words


def _begins_with_link(item: Block, links: set[str]) -> bool:
    words = _normalise(item.text).split()
    return any(" ".join(words[:end]) in links for end in range(1, min(len(words), 12) + 1))


def _normalise(text: str) -> str:
    return " ".join(word.strip("*_`:.,-") for word in text.split() if word.strip("*_`:.,-"))


def _count_words(block: Block) -> int:
    return len(block.text.split())
