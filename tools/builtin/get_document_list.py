"""The tool `get_document_list`."""

from pydantic import BaseModel, Field

from knowledge.index.listing import ListedDocument
from tools.calls import ToolCaller
from tools.tool import LibraryTool


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """What to list."""

    title_contains: str = Field(default="", max_length=200, description="a part of the title")
    version: str = Field(default="", max_length=50, description="only documents of this version")
    after: str = Field(default="", max_length=500, description="continue after this document id")
    limit: int = Field(default=30, ge=1, le=100, description="documents to return")


class Entry(BaseModel, frozen=True):
    """One document of a list."""

    document_id: str
    title: str
    language: str
    version: str = ""
    kind: str = ""
    chunks: int


class Output(BaseModel, frozen=True):
    """Documents by title; `total` counts all that match."""

    documents: tuple[Entry, ...]
    total: int


class GetDocumentList(LibraryTool[Inputs, Output]):
    """Lists the documents that the person may read."""

    name = "get_document_list"
    aliases = ("list_documents",)
    description = "List the documents with their ids, titles, languages and versions."
    inputs = Inputs
    output = Output
    is_source = True

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Output:
        wanted = inputs.title_contains.casefold()
        found = [
            one
            for one in await self._library.list_documents(caller.groups)
            if wanted in one.title.casefold() and inputs.version in {"", one.stated_version}
        ]
        ids = [one.id for one in found]
        start = ids.index(inputs.after) + 1 if inputs.after in ids else 0
        return Output(
            documents=tuple(map(make_entry, found[start : start + inputs.limit])),
            total=len(found),
        )

    def render(self, output: Output) -> str:
        lines = [
            f"{one.document_id}: {one.title}" + (f" (version {one.version})" if one.version else "")
            for one in output.documents
        ]
        return "\n".join((f"{output.total} documents", *lines))


def make_entry(document: ListedDocument) -> Entry:
    """Return the entry of a document."""
    return Entry(
        document_id=document.id,
        title=document.title,
        language=document.language,
        version=document.stated_version,
        kind=document.kind,
        chunks=document.chunks,
    )
