"""The tool `read_document`."""

from pydantic import BaseModel, Field

from tools.calls import ToolCaller
from tools.passages import PassageList, ShowsPassages, read_page
from tools.tool import LibraryTool


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """A document, and which page of it."""

    document_id: str = Field(min_length=1, max_length=500, description="the id of a document")
    page: int = Field(default=1, ge=1, description="pages have about 8,000 characters")


class ReadDocument(ShowsPassages, LibraryTool[Inputs, PassageList]):
    """Reads a document page by page, as it stands."""

    name = "read_document"
    description = "Read a document as it stands, page by page."
    inputs = Inputs

    async def run(self, inputs: Inputs, caller: ToolCaller) -> PassageList:
        document = await self._read_document(inputs.document_id, caller)
        return read_page(document, range(len(document.chunks)), inputs.page)
