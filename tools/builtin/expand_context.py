"""The tool `expand_context`."""

from pydantic import BaseModel, Field

from knowledge.sections import document_of
from tools.calls import ToolCaller
from tools.errors import InvalidInput
from tools.passages import FoundPassage, PassageList, ShowsPassages, cite_chunk
from tools.tool import LibraryTool


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """Passages to widen."""

    chunk_ids: tuple[str, ...] = Field(
        min_length=1, max_length=10, description="ids of passages, as an earlier result gave them"
    )
    around: int = Field(default=1, ge=1, le=5, description="passages before and after each")


class ExpandContext(ShowsPassages, LibraryTool[Inputs, PassageList]):
    """Reads passages together with the text before and after them."""

    name = "expand_context"
    aliases = ("expand_ctx",)
    description = "Read passages that were found, with those directly before and after them."
    inputs = Inputs

    async def run(self, inputs: Inputs, caller: ToolCaller) -> PassageList:
        owners = [document_of(chunk_id) for chunk_id in inputs.chunk_ids]
        documents = await self._library.read(owners, caller.groups, caller.run)
        known = {one.listed.id: one for one in documents}
        passages: dict[str, FoundPassage] = {}
        for chunk_id, owner in zip(inputs.chunk_ids, owners, strict=True):
            document = known.get(owner)
            ids = [] if document is None else [one.chunk.chunk_id for one in document.chunks]
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
