"""Tools that read original text: pages, sections, the context of passages, and documents by
title.
"""

from pydantic import BaseModel, Field

from knowledge.index.graph.called_names import split_words
from knowledge.sections import document_of
from tools.calls import ToolCaller
from tools.errors import InvalidInput
from tools.passages import (
    FoundPassage,
    PassageList,
    ShowsPassages,
    ShowsText,
    cite_chunk,
    read_page,
)
from tools.tool import LibraryTool


class ReadDocumentInputs(BaseModel, frozen=True, extra="forbid"):
    """A document and a page number."""

    document_id: str = Field(min_length=1, max_length=500, description="the id of a document")
    page: int = Field(default=1, ge=1, description="pages have about 8,000 characters")


class ReadDocument(ShowsText, LibraryTool[ReadDocumentInputs, PassageList]):
    """Returns a page of the original text of a document."""

    name = "read_document"
    description = "Read the unmodified text of a document, page by page."
    inputs = ReadDocumentInputs

    async def run(self, inputs: ReadDocumentInputs, caller: ToolCaller) -> PassageList:
        document = await self._read_document(inputs.document_id, caller)
        return read_page(document, range(len(document.chunks)), inputs.page)


class ReadSectionInputs(BaseModel, frozen=True, extra="forbid"):
    """A passage of the section, and a page number."""

    chunk_id: str = Field(
        min_length=1, max_length=500, description="the id of a passage from an earlier result"
    )
    page: int = Field(default=1, ge=1, description="pages have about 8,000 characters")


class ReadSection(ShowsText, LibraryTool[ReadSectionInputs, PassageList]):
    """Returns the whole section of a passage, with its subsections."""

    name = "read_section"
    description = "Read the unmodified text of the whole section that contains a passage."
    inputs = ReadSectionInputs

    async def run(self, inputs: ReadSectionInputs, caller: ToolCaller) -> PassageList:
        document = await self._read_document(document_of(inputs.chunk_id), caller)
        chunks = [chunk.chunk for chunk in document.chunks]
        own = next((chunk for chunk in chunks if chunk.chunk_id == inputs.chunk_id), None)
        if own is None:
            raise InvalidInput(f"expected the id of a passage, found {inputs.chunk_id[:100]!r}")
        path = own.heading_path
        within = [n for n, chunk in enumerate(chunks) if chunk.heading_path[: len(path)] == path]
        return read_page(document, within, inputs.page)


class ExpandContextInputs(BaseModel, frozen=True, extra="forbid"):
    """Passages, and how many neighbors to include."""

    chunk_ids: tuple[str, ...] = Field(
        min_length=1, max_length=10, description="ids of passages from an earlier result"
    )
    around: int = Field(default=1, ge=1, le=5, description="passages before and after each")


class ExpandContext(ShowsPassages, LibraryTool[ExpandContextInputs, PassageList]):
    """Returns passages together with their neighbors."""

    name = "expand_context"
    aliases = ("expand_ctx",)
    description = "Read passages that were found, with those directly before and after them."
    inputs = ExpandContextInputs

    async def run(self, inputs: ExpandContextInputs, caller: ToolCaller) -> PassageList:
        owners = [document_of(chunk_id) for chunk_id in inputs.chunk_ids]
        documents = await self._library.read(owners, caller.groups, caller.run)
        known = {whole_document.listed.id: whole_document for whole_document in documents}
        passages: dict[str, FoundPassage] = {}
        for chunk_id, owner in zip(inputs.chunk_ids, owners, strict=True):
            document = known.get(owner)
            ids = [] if document is None else [chunk.chunk.chunk_id for chunk in document.chunks]
            if document is None or chunk_id not in ids:
                raise InvalidInput(f"expected the id of a passage, found {chunk_id[:100]!r}")
            position = ids.index(chunk_id)
            for number in range(position - inputs.around, position + inputs.around + 1):
                if 0 <= number < len(ids):
                    is_asked = ids[number] in inputs.chunk_ids
                    passages[ids[number]] = FoundPassage(
                        citation=cite_chunk(document, number),
                        text=document.chunks[number].chunk.text,
                        relation="" if is_asked else f"next to {chunk_id}",
                    )
        is_alone = len(passages) == len(dict.fromkeys(inputs.chunk_ids))
        note = "there is nothing before or after" if is_alone else ""
        return PassageList(passages=tuple(passages.values()), note=note)


class LookupInputs(BaseModel, frozen=True, extra="forbid"):
    """A title, code or defined term."""

    name: str = Field(
        min_length=1, max_length=300, description="a title, code or defined term, such as 'AC-2(3)'"
    )
    limit: int = Field(default=3, ge=1, le=10, description="passages to return")


class Lookup(ShowsPassages, LibraryTool[LookupInputs, PassageList]):
    """Returns the beginning of the documents that have a given name."""

    name = "lookup"
    aliases = ("look_up", "find_document")
    description = (
        "Read the beginning of the document that has exactly this title, code or defined name."
    )
    inputs = LookupInputs

    async def run(self, inputs: LookupInputs, caller: ToolCaller) -> PassageList:
        graph = await self._library.open_graph(caller.groups)
        names = await graph.find_called([" ".join(split_words(inputs.name))])
        document_ids = names.find(inputs.name)[: inputs.limit]
        documents = await self._library.read(document_ids, caller.groups, caller.run)
        passages = tuple(
            FoundPassage(citation=cite_chunk(document, 0, 1.0), text=document.chunks[0].chunk.text)
            for document in documents
        )
        note = "" if passages else f"no document is named {inputs.name!r}"
        return PassageList(passages=passages, note=note)
