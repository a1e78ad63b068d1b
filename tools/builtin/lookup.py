"""The tool `lookup`."""

from pydantic import BaseModel, Field

from knowledge.index.graph.called_names import split_words
from tools.calls import ToolCaller
from tools.passages import FoundPassage, PassageList, ShowsPassages, cite_chunk
from tools.tool import LibraryTool


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """A name."""

    name: str = Field(
        min_length=1, max_length=300, description="a title, code or defined term, such as 'AC-2(3)'"
    )
    limit: int = Field(default=3, ge=1, le=10, description="passages to return")


class Lookup(ShowsPassages, LibraryTool[Inputs, PassageList]):
    """Reads the beginning of the documents that have a name."""

    name = "lookup"
    aliases = ("look_up", "find_document")
    description = (
        "Read the beginning of the document that has exactly this title, code or defined name."
    )
    inputs = Inputs

    async def run(self, inputs: Inputs, caller: ToolCaller) -> PassageList:
        graph = await self._library.open_graph(caller.groups)
        names = await graph.find_called([" ".join(split_words(inputs.name))])
        found = names.find(inputs.name)[: inputs.limit]
        documents = await self._library.read(found, caller.groups, caller.run)
        passages = tuple(
            FoundPassage(citation=cite_chunk(one, 0, 1.0), text=one.chunks[0].chunk.text)
            for one in documents
        )
        note = "" if passages else f"no document is named {inputs.name!r}"
        return PassageList(passages=passages, note=note)
