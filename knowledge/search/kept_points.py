"""What a search keeps of chunks and documents that it compared before, bounded in bytes.

A chunk of one version never changes, so it is kept until the space is needed. Of a document the
present version counts, so it is compared with the index after every change.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from knowledge.index.points import layout
from knowledge.index.points.layout import chunk_identity, document_identity
from knowledge.index.port import ReadableIndex
from knowledge.index.queries import Floats, SparseText, StoredPoint, Terms

MOST_BYTES = 32_000_000
# Of a chunk or document besides its arrays: objects, names and the heads of arrays.
_OVERHEAD = 1000
_EMPTY = SparseText(np.zeros(0, np.uint32), np.zeros(0, np.float32))
_CHUNK_FIELDS = (
    "document", "version", "ordinal", "lead", "first", "last", "heading_path", layout.NAMES,
)  # fmt: skip
_DOCUMENT_FIELDS = (
    "document", "version", "page", "language", "crumbs", "kind_of_page", "chunks", layout.VERSION,
)  # fmt: skip

Rows = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document that has candidates; `centre` is the direction of the mean of its chunks."""

    document_id: str
    version: str
    page: str
    language: str
    crumbs: tuple[str, ...]
    kind: str
    chunks: int
    stated_version: str
    centre: Floats
    summary: SparseText


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk by its document, its ordinal and the section that it belongs to.

    `lead` is the first chunk with its heading, `lead_point` its point; `first` and `last` are the
    ends of its section. `name_terms` are the terms of its names one after the other, of which
    `name_lengths` says how many each name has.
    """

    point: str
    document_id: str
    version: str
    ordinal: int
    lead: int
    lead_point: str
    first: int
    last: int
    heading_path: tuple[str, ...]
    name_terms: Terms
    name_lengths: Rows
    vector: Floats
    keywords: SparseText


class KeptPoints:
    """The chunks and documents that were compared last, at most `most_bytes` of them."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._chunks: OrderedDict[str, FoundChunk] = OrderedDict()
        self._documents: OrderedDict[str, FoundDocument] = OrderedDict()
        self._checked: set[str] = set()
        self._revision: str | None = None

    @property
    def bytes(self) -> int:
        """The bytes of all that is kept."""
        return self._bytes

    async def read_chunks(
        self, index: ReadableIndex, points: Sequence[str]
    ) -> dict[str, FoundChunk]:
        """Return chunks by their points; those that are gone are left out."""
        found = {point: kept for point in points if (kept := self._chunks.get(point)) is not None}
        for point in found:
            self._chunks.move_to_end(point)
        missing = [point for point in points if point not in found]
        if missing:
            vectors = (layout.SEMANTIC, layout.KEYWORDS)
            read = await index.read_points(missing, _CHUNK_FIELDS, vectors)
            for point, stored in read.items():
                found[point] = chunk = _make_chunk(point, stored)
                if point not in self._chunks:
                    self._chunks[point] = chunk
                    self._bytes += _measure_chunk(chunk)
            self._drop()
        return found

    async def read_documents(
        self, index: ReadableIndex, revision: str, document_ids: Iterable[str]
    ) -> dict[str, FoundDocument]:
        """Return documents of this revision by their ids; those that are gone are left out."""
        if revision != self._revision:
            self._checked.clear()
            self._revision = revision
        wanted = list(dict.fromkeys(document_ids))
        await self._check(index, revision, [name for name in wanted if name in self._documents])
        missing = {document_identity(name): name for name in wanted if name not in self._documents}
        found = {name: self._documents[name] for name in wanted if name in self._documents}
        for name in found:
            self._documents.move_to_end(name)
        if missing:
            vectors = (layout.CENTRE, layout.SUMMARY)
            read = await index.read_points(list(missing), _DOCUMENT_FIELDS, vectors)
            for stored in read.values():
                document = _make_document(stored)
                found[document.document_id] = document
                self._keep_document(document, revision)
            self._drop()
        return found

    def forget(self, document_ids: Iterable[str]) -> None:
        """Read these documents again when they are needed."""
        for name in document_ids:
            document = self._documents.pop(name, None)
            if document is not None:
                self._bytes -= _measure_document(document)

    async def _check(self, index: ReadableIndex, revision: str, names: Sequence[str]) -> None:
        """Forget those of some documents whose present version is another one."""
        unchecked = {document_identity(name): name for name in names if name not in self._checked}
        if not unchecked:
            return
        present = await index.fields_of(list(unchecked), ("version",))
        for point, name in unchecked.items():
            kept = self._documents.get(name)
            version = present[point]["version"] if point in present else None
            if kept is not None and kept.version != version:
                self.forget([name])
            elif self._revision == revision:
                self._checked.add(name)

    def _keep_document(self, document: FoundDocument, revision: str) -> None:
        name = document.document_id
        self.forget([name])
        self._documents[name] = document
        self._bytes += _measure_document(document)
        if self._revision == revision:
            self._checked.add(name)

    def _drop(self) -> None:
        while self._bytes > self._most_bytes and self._chunks:
            self._bytes -= _measure_chunk(self._chunks.popitem(last=False)[1])
        while self._bytes > self._most_bytes and self._documents:
            self._bytes -= _measure_document(self._documents.popitem(last=False)[1])


def _make_chunk(point: str, stored: StoredPoint) -> FoundChunk:
    payload = stored.payload
    names = payload[layout.NAMES]
    place = payload["document"], payload["version"]
    return FoundChunk(
        point=point,
        document_id=payload["document"],
        version=payload["version"],
        ordinal=payload["ordinal"],
        lead=payload["lead"],
        lead_point=point
        if payload["lead"] == payload["ordinal"]
        else chunk_identity(*place, payload["lead"]),
        first=payload["first"],
        last=payload["last"],
        heading_path=tuple(payload["heading_path"]),
        name_terms=np.array([term for name in names for term in name], dtype=np.uint32),
        name_lengths=np.array([len(name) for name in names], dtype=np.int32),
        vector=stored.vectors[layout.SEMANTIC],
        keywords=stored.texts.get(layout.KEYWORDS, _EMPTY),
    )


def _make_document(stored: StoredPoint) -> FoundDocument:
    payload: Mapping[str, Any] = stored.payload
    return FoundDocument(
        document_id=payload["document"],
        version=payload["version"],
        page=payload["page"],
        language=payload["language"],
        crumbs=tuple(payload["crumbs"]),
        kind=payload.get("kind_of_page", ""),
        chunks=payload["chunks"],
        stated_version=payload.get(layout.VERSION, ""),
        centre=stored.vectors.get(layout.CENTRE, np.zeros(0, np.float32)),
        summary=stored.texts.get(layout.SUMMARY, _EMPTY),
    )


def _measure_chunk(chunk: FoundChunk) -> int:
    arrays = chunk.vector, chunk.keywords.terms, chunk.keywords.weights, chunk.name_terms
    return _OVERHEAD + sum(array.nbytes for array in arrays)


def _measure_document(document: FoundDocument) -> int:
    arrays = document.centre, document.summary.terms, document.summary.weights
    return _OVERHEAD + sum(array.nbytes for array in arrays)
