"""The tool `classify_document`."""

import re
from collections.abc import Mapping

from pydantic import BaseModel, Field

from knowledge.library.library import WholeDocument
from tools.calls import ToolCaller
from tools.tool import LibraryTool

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


class ClassifyDocument(LibraryTool[Inputs, Output]):
    """Names the kind of a document by the words that are frequent in it; English only."""

    name = "classify_document"
    description = "Classify a document: law, contract, policy, procedure, reference or report."
    inputs = Inputs
    output = Output

    async def run(self, inputs: Inputs, caller: ToolCaller) -> Output:
        return _classify(await self._read_document(inputs.document_id, caller))


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
