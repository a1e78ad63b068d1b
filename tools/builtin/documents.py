"""Tools that list, describe, classify and summarize documents."""

import math
import re
from collections.abc import Iterable, Mapping

from pydantic import BaseModel, Field

from citations.claims import UnitKind, split_units
from knowledge.index.listing import ListedDocument
from knowledge.index.terms import terms
from knowledge.library.library import WholeDocument
from llm.injection import attack_in
from tools.calls import CitedPassage, PassageText, ToolCaller
from tools.passages import (
    FoundPassage,
    cite_chunk,
    cite_passages,
    quote_passages,
    render_passages,
)
from tools.tool import LibraryTool

_MOST_SECTIONS = 100
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
_MOST_CHUNKS = 200
_LONGEST_SENTENCE = 400


class GetDocumentListInputs(BaseModel, frozen=True, extra="forbid"):
    """Filters and pagination for the document list."""

    title_contains: str = Field(default="", max_length=200, description="part of the title")
    version: str = Field(default="", max_length=50, description="only documents of this version")
    after: str = Field(default="", max_length=500, description="continue after this document id")
    limit: int = Field(default=30, ge=1, le=100, description="documents to return")


class Entry(BaseModel, frozen=True):
    """A document in a list."""

    document_id: str
    title: str
    language: str
    version: str = ""
    kind: str = ""
    chunks: int


class GetDocumentListOutput(BaseModel, frozen=True):
    """A page of matching documents; `total` counts all matches."""

    documents: tuple[Entry, ...]
    total: int


class GetDocumentList(LibraryTool[GetDocumentListInputs, GetDocumentListOutput]):
    """Lists the documents that the user may read."""

    name = "get_document_list"
    aliases = ("list_documents",)
    description = "List the documents with their ids, titles, languages and versions."
    inputs = GetDocumentListInputs
    output = GetDocumentListOutput
    is_source = True

    async def run(self, inputs: GetDocumentListInputs, caller: ToolCaller) -> GetDocumentListOutput:
        wanted = inputs.title_contains.casefold()
        matching = [
            document
            for document in await self._library.list_documents(caller.groups)
            if wanted in document.title.casefold()
            and inputs.version in {"", document.stated_version}
        ]
        ids = [document.id for document in matching]
        start = ids.index(inputs.after) + 1 if inputs.after in ids else 0
        return GetDocumentListOutput(
            documents=tuple(map(make_entry, matching[start : start + inputs.limit])),
            total=len(matching),
        )

    def render(self, output: GetDocumentListOutput) -> str:
        lines = [
            f"{document.document_id}: {document.title}"
            + (f" (version {document.version})" if document.version else "")
            for document in output.documents
        ]
        return "\n".join((f"{output.total} documents", *lines))


class GetDocumentInfoInputs(BaseModel, frozen=True, extra="forbid"):
    """A document."""

    document_id: str = Field(min_length=1, max_length=500, description="the id of a document")


class SectionInfo(BaseModel, frozen=True):
    """A section of a document; `characters` is the length of its text."""

    heading_path: tuple[str, ...]
    characters: int


class GetDocumentInfoOutput(BaseModel, frozen=True):
    """The metadata of a document, its summary, and its sections."""

    document_id: str
    title: str
    crumbs: tuple[str, ...]
    language: str
    version: str = ""
    kind: str = ""
    url: str | None = None
    source: str
    chunks: int
    summary: str = ""
    sections: tuple[SectionInfo, ...]
    first: CitedPassage


class GetDocumentInfo(LibraryTool[GetDocumentInfoInputs, GetDocumentInfoOutput]):
    """Returns the metadata, the summary and the sections of a document."""

    name = "get_document_info"
    aliases = ("get_document_metadata", "document_info")
    description = (
        "Describe one document: title, place, language, version, summary, and its sections."
    )
    inputs = GetDocumentInfoInputs
    output = GetDocumentInfoOutput

    async def run(self, inputs: GetDocumentInfoInputs, caller: ToolCaller) -> GetDocumentInfoOutput:
        document = await self._read_document(inputs.document_id, caller)
        listed = document.listed
        sections = document.sections[:_MOST_SECTIONS]
        return GetDocumentInfoOutput(
            document_id=listed.id,
            title=listed.title,
            crumbs=document.crumbs,
            language=listed.language,
            version=listed.stated_version,
            kind=listed.kind,
            url=listed.url,
            source=listed.source,
            chunks=listed.chunks,
            summary=document.summary,
            sections=tuple(
                SectionInfo(heading_path=section.heading_path, characters=len(section.text))
                for section in sections
            ),
            first=cite_chunk(document, 0),
        )

    def cite(self, output: GetDocumentInfoOutput) -> Iterable[CitedPassage]:
        return (output.first,)


class ClassifyDocumentInputs(BaseModel, frozen=True, extra="forbid"):
    """A document."""

    document_id: str = Field(min_length=1, max_length=500, description="the id of a document")


class ClassifyDocumentOutput(BaseModel, frozen=True):
    """The type of a document; `share` is its share of all cue words found, from 0 to 1."""

    document_id: str
    title: str
    kind: str
    share: float
    cues: tuple[str, ...]
    language: str
    version: str = ""


class ClassifyDocument(LibraryTool[ClassifyDocumentInputs, ClassifyDocumentOutput]):
    """Classifies a document by its most frequent cue words. Supports only English."""

    name = "classify_document"
    description = "Classify a document: law, contract, policy, procedure, reference or report."
    inputs = ClassifyDocumentInputs
    output = ClassifyDocumentOutput

    async def run(
        self, inputs: ClassifyDocumentInputs, caller: ToolCaller
    ) -> ClassifyDocumentOutput:
        return _classify(await self._read_document(inputs.document_id, caller))


class SummarizeInputs(BaseModel, frozen=True, extra="forbid"):
    """A document, and a subject to prefer."""

    document_id: str = Field(min_length=1, max_length=500, description="the id of a document")
    about: str = Field(default="", max_length=500, description="a subject to prefer, if any")
    sentences: int = Field(default=5, ge=1, le=15, description="sentences to return")


class SummarizeOutput(BaseModel, frozen=True):
    """Sentences of a document in document order, each with its citation."""

    document_id: str
    title: str
    sentences: tuple[FoundPassage, ...]


class Summarize(LibraryTool[SummarizeInputs, SummarizeOutput]):
    """Extractive summary: quotes the sentences with the most frequent terms of a document."""

    name = "summarize"
    aliases = ("document_summary", "summarise")
    description = "Summarize one document in its most important sentences, quoted with citations."
    inputs = SummarizeInputs
    output = SummarizeOutput

    async def run(self, inputs: SummarizeInputs, caller: ToolCaller) -> SummarizeOutput:
        document = await self._read_document(inputs.document_id, caller)
        return SummarizeOutput(
            document_id=document.listed.id,
            title=document.listed.title,
            sentences=tuple(choose_sentences(document, inputs.about, inputs.sentences)),
        )

    def render(self, output: SummarizeOutput) -> str:
        return render_passages(output.sentences)

    def cite(self, output: SummarizeOutput) -> Iterable[CitedPassage]:
        return cite_passages(output.sentences)

    def quote(self, output: SummarizeOutput) -> Iterable[PassageText]:
        return quote_passages(output.sentences)


def make_entry(document: ListedDocument) -> Entry:
    """Return the list entry of a document."""
    return Entry(
        document_id=document.id,
        title=document.title,
        language=document.language,
        version=document.stated_version,
        kind=document.kind,
        chunks=document.chunks,
    )


def choose_sentences(document: WholeDocument, about: str, wanted: int) -> list[FoundPassage]:
    """Return up to `wanted` sentences with the most frequent terms, in document order.

    Terms in the title and in `about` count twice. Terms in sentences that were already chosen are
    not counted again.
    """
    language = document.listed.language
    sentences = list(_list_sentences(document))
    own = [(number, text, frozenset(terms(text, language))) for number, text in sentences]
    frequency: dict[str, float] = {}
    for _, _, words in own:
        for word in words:
            frequency[word] = frequency.get(word, 0.0) + 1.0
    preferred = {*terms(document.listed.title, language), *terms(about, language)}
    value = {
        word: (count**0.5 if count > 1 else 0.5) * (2.0 if word in preferred else 1.0)
        for word, count in frequency.items()
        if len(word) > 2
    }
    chosen: list[int] = []
    covered: set[str] = set()
    while len(chosen) < min(wanted, len(own)):
        rest = [place for place in range(len(own)) if place not in chosen]
        best = max(rest, key=lambda place: (_gain(own[place][2] - covered, value), -place))
        chosen.append(best)
        covered |= own[best][2]
    return [
        FoundPassage(citation=cite_chunk(document, own[place][0]), text=own[place][1])
        for place in sorted(chosen)
    ]


def _classify(document: WholeDocument) -> ClassifyDocumentOutput:
    words = _WORD.findall(f"{document.listed.title} {document.text}"[:_CHARACTERS].casefold())
    counts = {kind: sum(word in cues for word in words) for kind, cues in _CUES.items()}
    total = sum(counts.values())
    best = max(counts, key=lambda kind: counts[kind]) if total else "other"
    cues = tuple(cue for cue in _CUES.get(best, ()) if cue in words)
    return ClassifyDocumentOutput(
        document_id=document.listed.id,
        title=document.listed.title,
        kind=best,
        share=round(counts.get(best, 0) / total, 3) if total else 0.0,
        cues=cues,
        language=document.listed.language,
        version=document.listed.stated_version,
    )


def _gain(words: frozenset[str], value: dict[str, float]) -> float:
    total: float = sum([value.get(word, 0.0) for word in sorted(words)])
    return total / math.sqrt(5 + len(words))


def _list_sentences(document: WholeDocument) -> Iterable[tuple[int, str]]:
    seen: set[str] = set()
    for number, chunk in enumerate(document.chunks[:_MOST_CHUNKS]):
        for unit in split_units(chunk.chunk.text):
            text = " ".join(unit.text.split())
            is_text = unit.kind in {UnitKind.SENTENCE, UnitKind.ITEM}
            if is_text and 20 < len(text) <= _LONGEST_SENTENCE and text not in seen:
                seen.add(text)
                if attack_in(text) is None:
                    yield number, text
