"""Cleans a page as its reader made it: nothing hidden, and no label as long as a book.

What a format writes as an entity or an escape is a character only now, so every text is looked at
once more, whichever reader it comes from.
"""

from collections.abc import Iterable
from dataclasses import replace

from knowledge.documents.decoding import clean_text
from knowledge.documents.page import Block, BlockKind, Page, Prepared

LONGEST_LABEL = 300
"""Characters of a title, a crumb, a keyword or an anchor."""
LONGEST_HEADING = 500
"""Characters of a heading; a longer one is text: each passage below repeats its headings."""

_LONGEST_DESCRIPTION = 4000
_LONGEST_ADDRESS = 4000
_MOST_CRUMBS = 32
_MOST_KEYWORDS = 1000
_MOST_WARNINGS = 10


def clean_page(page: Page) -> Page:
    """Return the page without hidden characters, its labels cut to what labels may have."""
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
        warnings=_warnings(page.warnings),
        version=clean_label(page.version),
    )


def clean_label(text: str, longest: int = LONGEST_LABEL) -> str:
    """Return a text as a label: clean, on one line, and not longer than a label may be."""
    line = " ".join(clean_text(text[: 4 * longest]).split())
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}\u2026"


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
    return (*kept, f"{left} more notes like these") if left else kept
