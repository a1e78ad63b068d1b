"""Parses a text as CommonMark, and reports whether a link in it leads to another place."""

import re
from collections.abc import Collection, Iterator
from functools import cache
from typing import TYPE_CHECKING

from citations.addresses import page_of
from citations.reading import ACTIVE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_TAG = re.compile(r"<\s*+(?:/\s*+)?([A-Za-z][A-Za-z0-9-]*)([^<>]*)")
_SIGNS = ("](", "][", "]:", "<")
_CITATION = r"\[\d{1,4}\](?![:(\[])"
_OPEN = re.compile(rf"(?P<cite>{_CITATION})|[\[\]<]")


def is_free_of_foreign_links(text: str, pages: Collection[str]) -> bool:
    """Return whether every link leads to one of `pages`, and nothing else links or loads."""
    if not any(sign in text for sign in _SIGNS):
        return True
    return not any(_is_foreign(token, pages) for token in _every(_markdown().parse(text)))


def disarm(text: str) -> str:
    """Return a text without links: all brackets but those of citations are escaped."""
    plain = text.replace("\\", "").replace("](", "] (").replace("]:", "] :").replace("][", "] [")
    return _OPEN.sub(lambda sign: sign[0] if sign["cite"] else f"\\{sign[0]}", plain)


@cache
def _markdown() -> "MarkdownIt":
    """Return the parser, loaded on the first use."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": True})


def _every(tokens: "list[Token]") -> "Iterator[Token]":
    for token in tokens:
        yield token
        yield from token.children or ()


def _is_foreign(token: "Token", pages: Collection[str]) -> bool:
    match token.type:
        case "link_open":
            return page_of(str(token.attrs.get("href", ""))) not in pages
        case "image":
            return True
        case "html_inline" | "html_block":
            return any(_leads(tag) for tag in _TAG.finditer(token.content))
        case _:
            return False


def _leads(tag: re.Match[str]) -> bool:
    return tag[1].lower() in ACTIVE or bool(tag[2].strip(" /\t\n"))
