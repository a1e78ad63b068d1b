"""The tool `read_section`."""

from pydantic import BaseModel, Field

from knowledge.sections import document_of
from tools.calls import ToolCaller
from tools.errors import InvalidInput
from tools.passages import PassageList, ShowsPassages, read_page
from tools.tool import LibraryTool


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """A passage of the section, and which page of it."""

    chunk_id: str = Field(
        min_length=1, max_length=500, description="the id of a passage, as a result gave it"
    )
    page: int = Field(default=1, ge=1, description="pages have about 8,000 characters")


class ReadSection(ShowsPassages, LibraryTool[Inputs, PassageList]):
    """Reads the whole section in which a passage stands, with the sections below it."""

    name = "read_section"
    description = "Read the whole section in which a passage stands, as it stands there."
    inputs = Inputs

    async def run(self, inputs: Inputs, caller: ToolCaller) -> PassageList:
        document = await self._read_document(document_of(inputs.chunk_id), caller)
        chunks = [one.chunk for one in document.chunks]
        own = next((one for one in chunks if one.chunk_id == inputs.chunk_id), None)
        if own is None:
            raise InvalidInput(f"expected the id of a passage, found {inputs.chunk_id[:100]!r}")
        path = own.heading_path
        within = [n for n, one in enumerate(chunks) if one.heading_path[: len(path)] == path]
        return read_page(document, within, inputs.page)
