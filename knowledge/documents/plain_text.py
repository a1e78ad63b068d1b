"""Reads plain text: paragraphs and their lines, without any markup."""

import re
from itertools import pairwise

from knowledge.documents.decoding import decode
from knowledge.documents.page import Block, BlockKind, Page

_BETWEEN_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")
# The dots between a heading and its page number in a table of contents.
_LEADERS = re.compile(r"(?:[ \t]?\.){5,}")


_LEAST_WIDTH = 50


def read(data: bytes, source: str) -> Page:
    """Return the page; it has neither headings nor a title."""
    text, warnings = decode(data)
    return Page(source=source, title="", blocks=paragraphs(text), warnings=warnings)


def paragraphs(text: str, anchor: str | None = None) -> tuple[Block, ...]:
    """Return a block for each paragraph, which keeps its lines unless they were wrapped."""
    text = _LEADERS.sub(" \u2026 ", text)
    width = max((len(line.rstrip()) for line in text.split("\n")), default=0)
    parts = (_join_wrapped(part, width) for part in _BETWEEN_PARAGRAPHS.split(text))
    return tuple(Block(BlockKind.TEXT, part, anchor=anchor) for part in parts if part)


def _join_wrapped(paragraph: str, width: int) -> str:
    """Return a paragraph on one line if its lines end only where the next word has no room."""
    lines = [line for part in paragraph.split("\n") if (line := " ".join(part.split()))]
    is_wrapped = width >= _LEAST_WIDTH and all(
        len(line) + 1 + len(following.split(" ", 1)[0]) > width
        for line, following in pairwise(lines)
    )
    return (" " if is_wrapped else "\n").join(lines)
