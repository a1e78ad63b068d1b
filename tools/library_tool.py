"""The base of the tools that read documents as a whole."""

from typing import Self

from knowledge.library.library import Library, WholeDocument
from tools.calls import ToolCaller
from tools.errors import InvalidInput
from tools.tool import I, O, Tool, ToolParts


class LibraryTool(Tool[I, O]):
    """Reads documents of the library as far as its caller may."""

    def __init__(self, library: Library) -> None:
        self._library = library

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(parts.library)

    async def _read_document(self, document_id: str, caller: ToolCaller) -> WholeDocument:
        """Return a document; raises `InvalidInput` if the caller cannot read one of this id."""
        documents = await self._library.read([document_id], caller.groups)
        if not documents:
            raise InvalidInput(f"expected the id of a document, found {document_id!r}")
        return documents[0]
