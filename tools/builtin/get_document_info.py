"""The tool `get_document_info`."""

from collections.abc import Iterable

from pydantic import BaseModel, Field

from tools.calls import CitedPassage, ToolCaller
from tools.passages import cite_chunk
from tools.tool import LibraryTool

_MOST_SECTIONS = 100


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """A document."""

    document_id: str = Field(min_length=1, max_length=500, description="the id of a document")


class SectionInfo(BaseModel, frozen=True):
    """One section of a document; `characters` is the length of its text."""

    heading_path: tuple[str, ...]
    characters: int


class Output(BaseModel, frozen=True):
    """A document without its text: place, language, version, sections."""

    document_id: str
    title: str
    crumbs: tuple[str, ...]
    language: str
    version: str = ""
    kind: str = ""
    url: str | None = None
    source: str
    chunks: int
    sections: tuple[SectionInfo, ...]
    first: CitedPassage


class GetDocumentInfo(LibraryTool[Inputs, Output]):
    """Describes one document by its sections."""

    name = "get_document_info"
    aliases = ("get_document_metadata", "document_info")
    description = "Describe one document: title, place, language, version, and its sections."
    inputs = Inputs
    output = Output

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Output:
        document = await self._read_document(inputs.document_id, caller)
        listed = document.listed
        sections = document.sections[:_MOST_SECTIONS]
        return Output(
            document_id=listed.id,
            title=listed.title,
            crumbs=document.crumbs,
            language=listed.language,
            version=listed.stated_version,
            kind=listed.kind,
            url=listed.url,
            source=listed.source,
            chunks=listed.chunks,
            sections=tuple(
                SectionInfo(heading_path=one.heading_path, characters=len(one.text))
                for one in sections
            ),
            first=cite_chunk(document, 0),
        )

    def cite(self, output: Output) -> Iterable[CitedPassage]:
        return (output.first,)
