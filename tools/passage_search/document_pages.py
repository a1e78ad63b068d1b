"""Divides the passages of a document into pages of text as it stands."""

from collections.abc import Sequence

from knowledge.library.library import WholeDocument
from tools.errors import InvalidInput
from tools.passage_search.passages import FoundPassage, PassageList, cite_chunk

PAGE_CHARACTERS = 8_000


def read_page(document: WholeDocument, numbers: Sequence[int], page: int) -> PassageList:
    """Return the passages of one page; raises `InvalidInput` for a page that there is not."""
    pages = _divide(document, numbers)
    if page > len(pages):
        raise InvalidInput(f"expected a page from 1 to {len(pages)}, found {page}")
    passages = (
        FoundPassage(citation=cite_chunk(document, number), text=document.chunks[number].chunk.text)
        for number in pages[page - 1]
    )
    note = f"page {page} of {len(pages)}" if len(pages) > 1 else ""
    return PassageList(passages=tuple(passages), note=note)


def _divide(document: WholeDocument, numbers: Sequence[int]) -> list[list[int]]:
    """Return the passages of each page; one that is longer than a page has a page of its own."""
    pages: list[list[int]] = [[]]
    room = PAGE_CHARACTERS
    for number in numbers:
        size = len(document.chunks[number].chunk.text)
        if size > room and pages[-1]:
            pages.append([])
            room = PAGE_CHARACTERS
        pages[-1].append(number)
        room -= size
    return pages
