"""Finds boilerplate that is repeated on the pages of a website, and titles without meaning.

Text on most pages of a source ("Was this article helpful?") belongs to the website and not to a
page. A heading on most pages is kept unless only links to other pages remain below it ("Related
articles"). Text is recognised by its repetition, never by its words. Pages in markup are written by
their authors, so only their ends are compared.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from knowledge.documents.page import Block, BlockKind, Page

WEBSITES = frozenset({".html", ".htm", ".xhtml"})
"""The formats whose pages a website surrounds with repeated content."""
MARKUP = frozenset({".md", ".markdown", ".mdx", ".rst", ".adoc", ".asciidoc"})
"""The formats whose pages end with repeated content of their website."""
MOST_SAMPLED = 24
"""Maximum number of pages of a source that are compared."""
_LEAST_PAGES = 4
_LONGEST = 300
_MOST_TEXTS = 200
_LONGEST_ENTRY = 12


def find_repeated(pages: Sequence[Page]) -> tuple[str, ...]:
    """Return the texts that occur on more than half of the pages, in order; none if there are too
    few pages.
    """
    if len(pages) < _LEAST_PAGES:
        return ()
    counts = Counter(
        text for page in pages for text in dict.fromkeys(_mark(block) for block in page.blocks)
    )
    repeated = (text for text, count in counts.items() if count * 2 > len(pages))
    return tuple(text for text in repeated if len(text) <= _LONGEST)[:_MOST_TEXTS]


def remove_repeated(page: Page, repeated: Collection[str], *, at_end: bool = False) -> Page:
    """Return the page without text that its website repeats, or unchanged if nothing else would
    remain.

    With `at_end`, text is removed only from the end of the page.
    """
    if not repeated:
        return page
    known = frozenset(repeated)
    kept = _cut_end(page.blocks, known) if at_end else _keep_own(page.blocks, known)
    blocks = tuple(kept)
    return replace(page, blocks=blocks) if blocks else page


def name_folder(page: Page, name: str) -> str:
    """Return the title that an index page gives its folder; empty if it only lists other pages.

    The title of such a list ("Contents") is kept only if it shares a word with the folder's name.
    """
    listed = all(
        block.kind is BlockKind.HEADING
        or (block.kind is BlockKind.ITEM and len(block.text.split()) <= _LONGEST_ENTRY)
        for block in page.blocks
    )
    folder = PurePosixPath(name).parent.name.lower()
    words = page.title.lower().split()
    return page.title if not listed or any(word in folder for word in words) else ""


def _cut_end(blocks: Sequence[Block], repeated: frozenset[str]) -> Sequence[Block]:
    end = len(blocks)
    while end:
        if _mark(blocks[end - 1]) in repeated:
            end -= 1
            continue
        start = end
        while start and blocks[start - 1].is_link:
            start -= 1
        above = blocks[start - 1] if 0 < start < end else None
        if above is None or above.kind is not BlockKind.HEADING or _mark(above) not in repeated:
            break
        end = start - 1
    return blocks[:end]


def _keep_own(blocks: Sequence[Block], repeated: frozenset[str]) -> Iterator[Block]:
    for section in _divide(blocks):
        heading = section[0] if section[0].kind is BlockKind.HEADING else None
        body = section if heading is None else section[1:]
        own = [block for block in body if _mark(block) not in repeated]
        is_repeated = heading is not None and _mark(heading) in repeated
        if is_repeated and body and all(block.is_link for block in own):
            continue
        yield from own if heading is None else (heading, *own)


def _divide(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    section: list[Block] = []
    for block in blocks:
        if block.kind is BlockKind.HEADING and section:
            yield section
            section = []
        section.append(block)
    if section:
        yield section


def _mark(block: Block) -> str:
    return f"{block.level} {block.text.strip()}"
