"""The language that a page states, and the text from which its language is found."""

from knowledge.documents.page import BlockKind, Page

_SAMPLE_CHARACTERS = 2000


def find_stated_language(page: Page) -> str | None:
    """Return the language code that a page states (`pt` for `pt-BR`), or None."""
    stated = (page.language or "").replace("_", "-").partition("-")[0].strip().lower()
    return stated if len(stated) in (2, 3) and stated.isascii() and stated.isalpha() else None


def make_sample(page: Page) -> str:
    """Return the title and the first characters of a page, without code."""
    parts: list[str] = [page.title]
    room = _SAMPLE_CHARACTERS
    for block in page.blocks:
        if block.kind is not BlockKind.CODE and room > 0:
            parts.append(block.text[:room])
            room -= len(block.text)
    return "\n".join(parts)
