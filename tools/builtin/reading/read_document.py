"""The tools `read_document` and `read_section`."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from knowledge.library.library import WholeDocument
from knowledge.sections import document_of
from tools.calls import ToolCaller
from tools.errors import InvalidInput
from tools.library_tool import LibraryTool
from tools.passage_search.passages import FoundPassage, PassageList, cite_chunk
from tools.passage_search.shows_passages import ShowsPassages

PAGE_CHARACTERS = 8_000


class DocumentInputs(BaseModel, frozen=True, extra="forbid"):
    """A document, and which page of it."""

    document_id: str = Field(min_length=1, max_length=500, description="the id of a document")
    page: int = Field(default=1, ge=1, description="pages have about 8,000 characters")


class SectionInputs(BaseModel, frozen=True, extra="forbid"):
    """A passage of the section, and which page of it."""

    chunk_id: str = Field(
        min_length=1, max_length=500, description="the id of a passage, as a result gave it"
    )
    page: int = Field(default=1, ge=1, description="pages have about 8,000 characters")


class ReadDocument(ShowsPassages, LibraryTool[DocumentInputs, PassageList]):
    """Reads a document page by page, as it stands."""

    name = "read_document"
    description = "Read a document as it stands, page by page."
    inputs = DocumentInputs

    async def run(self, inputs: DocumentInputs, caller: ToolCaller) -> PassageList:
        document = await self._read_document(inputs.document_id, caller)
        return _read_page(document, range(len(document.chunks)), inputs.page)


class ReadSection(ShowsPassages, LibraryTool[SectionInputs, PassageList]):
    """Reads the whole section in which a passage stands, with the sections below it."""

    name = "read_section"
    description = "Read the whole section in which a passage stands, as it stands there."
    inputs = SectionInputs

    async def run(self, inputs: SectionInputs, caller: ToolCaller) -> PassageList:
        document = await self._read_document(document_of(inputs.chunk_id), caller)
        chunks = [one.chunk for one in document.chunks]
        own = next((one for one in chunks if one.chunk_id == inputs.chunk_id), None)
        if own is None:
            raise InvalidInput(f"expected the id of a passage, found {inputs.chunk_id[:100]!r}")
        path = own.heading_path
        within = [n for n, one in enumerate(chunks) if one.heading_path[: len(path)] == path]
        return _read_page(document, within, inputs.page)


def _read_page(document: WholeDocument, numbers: Sequence[int], page: int) -> PassageList:
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
