"""Reads plain text: paragraphs, without any markup."""

import re

from knowledge.documents.decoding import decode
from knowledge.documents.page import Block, BlockKind, Page

_BETWEEN_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")
# The dots between a heading and its page number in a table of contents.
_LEADERS = re.compile(r"(?:[ \t]?\.){5,}")


def read(data: bytes, source: str) -> Page:
    """Return the page; it has neither headings nor a title."""
    text, warnings = decode(data)
    return Page(source=source, title="", blocks=paragraphs(text), warnings=warnings)


def paragraphs(text: str, anchor: str | None = None) -> tuple[Block, ...]:
    """Return a block for each paragraph, its lines joined."""
    parts = _BETWEEN_PARAGRAPHS.split(_LEADERS.sub(" \u2026 ", text))
    joined = (" ".join(part.split()) for part in parts)
    return tuple(Block(BlockKind.TEXT, part, anchor=anchor) for part in joined if part)
