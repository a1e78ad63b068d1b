"""The tool `classify_document`."""

import re
from collections.abc import Mapping
from typing import Self

from pydantic import BaseModel, Field

from knowledge.library.library import Library, WholeDocument
from tools.calls import ToolCaller
from tools.errors import InvalidInput
from tools.tool import Tool, ToolParts

_CUES: Mapping[str, tuple[str, ...]] = {
    "law or regulation": ("article", "regulation", "directive", "shall", "pursuant", "penalty"),
    "contract": ("agreement", "party", "parties", "hereby", "confidential", "termination"),
    "policy": ("policy", "must", "responsible", "compliance", "employees"),
    "procedure": ("step", "steps", "procedure", "click", "open", "select", "choose"),
    "reference": ("parameter", "returns", "default", "api", "type", "value"),
    "report": ("results", "findings", "conclusion", "figure", "table", "analysis"),
}
_WORD = re.compile(r"[^\W\d_]+")
_CHARACTERS = 20_000


class Inputs(BaseModel, frozen=True, extra="forbid"):
    """A document."""

    document_id: str = Field(min_length=1, max_length=500, description="the id of a document")


class Output(BaseModel, frozen=True):
    """The kind of a document by rules; `share` compares it with the other kinds, 0 to 1."""

    document_id: str
    title: str
    kind: str
    share: float
    cues: tuple[str, ...]
    language: str
    version: str = ""


class ClassifyDocument(Tool[Inputs, Output]):
    """Names the kind of a document by the words that are frequent in it; English only."""

    name = "classify_document"
    description = "Classify a document: law, contract, policy, procedure, reference or report."
    inputs = Inputs
    output = Output

    def __init__(self, library: Library) -> None:
        self._library = library

    @classmethod
    def make(cls, parts: ToolParts) -> Self:
        return cls(parts.library)

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Output:
        documents = await self._library.read([inputs.document_id], caller.groups)
        if not documents:
            raise InvalidInput(f"expected the id of a document, found {inputs.document_id!r}")
        return _classify(documents[0])


def _classify(document: WholeDocument) -> Output:
    words = _WORD.findall(f"{document.listed.title} {document.text}"[:_CHARACTERS].casefold())
    counts = {kind: sum(word in cues for word in words) for kind, cues in _CUES.items()}
    total = sum(counts.values())
    best = max(counts, key=lambda kind: counts[kind]) if total else "other"
    cues = tuple(cue for cue in _CUES.get(best, ()) if cue in words)
    return Output(
        document_id=document.listed.id,
        title=document.listed.title,
        kind=best,
        share=round(counts.get(best, 0) / total, 3) if total else 0.0,
        cues=cues,
        language=document.listed.language,
        version=document.listed.stated_version,
    )
