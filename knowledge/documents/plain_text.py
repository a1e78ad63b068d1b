"""Reads plain text: paragraphs and their lines, without markup.

Lines with words aligned in columns keep their spaces, as in code.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from knowledge.documents.decoding import decode
from knowledge.documents.page import Block, BlockKind, Page, make_code

_BETWEEN_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")
# The dots between a heading and its page number in a table of contents.
_LEADERS = re.compile(r"(?:[ \t]?\.){5,}")
_GAP = re.compile(r"(?<=\S) {2,200}(?=\S)")

_LEAST_WIDTH = 50


def read(data: bytes, source: str) -> Page:
    """Return the page; it has neither headings nor a title."""
    text, warnings = decode(data)
    return Page(source=source, title="", blocks=paragraphs(text), warnings=warnings)


def paragraphs(text: str) -> tuple[Block, ...]:
    """Return a block for each paragraph; line breaks are kept unless the lines were wrapped."""
    text = _LEADERS.sub(" \u2026 ", text)
    width = max((len(line.rstrip()) for line in text.split("\n")), default=0)
    blocks = (_read_paragraph(part, width) for part in _BETWEEN_PARAGRAPHS.split(text))
    return tuple(block for block in blocks if block.text)


def _read_paragraph(paragraph: str, width: int) -> Block:
    lines = [line.expandtabs().rstrip() for line in paragraph.strip("\n").split("\n")]
    if not _has_columns(lines):
        return Block(BlockKind.TEXT, _join_wrapped(paragraph, width))
    return make_code("\n".join(lines))


def _has_columns(lines: Sequence[str]) -> bool:
    """Return whether words of most lines are aligned after more than one space."""
    places = Counter(gap.end() for line in lines for gap in _GAP.finditer(line))
    most = max(places.values(), default=0)
    return most > 1 and 2 * most > len(lines)


def _join_wrapped(paragraph: str, width: int) -> str:
    """Join the lines of a paragraph if each of them ends only where the next word would not fit."""
    lines = [line for part in paragraph.split("\n") if (line := " ".join(part.split()))]
    is_wrapped = width >= _LEAST_WIDTH and all(
        len(line) + 1 + len(following.split(" ", 1)[0]) > width
        for line, following in pairwise(lines)
    )
    return (" " if is_wrapped else "\n").join(lines)
