"""What a search keeps of chunks and documents that it compared before, bounded in bytes.

A chunk of one version never changes, so it is kept until the space is needed. Of a document the
present version counts, so it is compared with the index after every change.
"""

import sys
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from knowledge.index.points import layout
from knowledge.index.points.layout import chunk_identity, document_identity
from knowledge.index.port import ReadableIndex
from knowledge.index.queries import PointId, Terms

MOST_BYTES = 32_000_000
# Of a chunk or document: objects, texts and the heads of arrays.
_OVERHEAD = 700
_CHUNK_FIELDS = ("document", "version", "ordinal", "lead", "first", "last", layout.NAMES)
_DOCUMENT_FIELDS = (
    "document", "version", "page", "language", "crumbs", "kind_of_page", "chunks", layout.VERSION,
)  # fmt: skip

Rows = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """A document that has candidates."""

    point: PointId
    document_id: str
    version: str
    page: str
    language: str
    crumbs: tuple[str, ...]
    kind: str
    chunks: int
    stated_version: str


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk by its document, its ordinal and the section that it belongs to.

    `lead` is the first chunk with its heading, `lead_point` its point; `first` and `last` are the
    ends of its section. `name_terms` are the terms of its names one after the other, of which
    `name_lengths` says how many each name has.
    """

    point: PointId
    document_id: str
    version: str
    ordinal: int
    lead: int
    lead_point: PointId
    first: int
    last: int
    name_terms: Terms
    name_lengths: Rows


class KeptPoints:
    """The chunks and documents that were compared last, at most `most_bytes` of them."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._chunks: OrderedDict[PointId, FoundChunk] = OrderedDict()
        self._documents: OrderedDict[str, FoundDocument] = OrderedDict()
        self._checked: set[str] = set()
        self._revision: str | None = None

    @property
    def bytes(self) -> int:
        """The bytes of all that is kept."""
        return self._bytes

    async def read_chunks(
        self, index: ReadableIndex, points: Sequence[PointId]
    ) -> dict[PointId, FoundChunk]:
        """Return chunks by their points; those that are gone are left out."""
        found = {point: kept for point in points if (kept := self._chunks.get(point)) is not None}
        for point in found:
            self._chunks.move_to_end(point)
        missing = [point for point in points if point not in found]
        if missing:
            read = await index.fields_of(missing, _CHUNK_FIELDS)
            for point, payload in read.items():
                found[point] = chunk = _make_chunk(point, payload)
                if point not in self._chunks:
                    self._chunks[point] = chunk
                    self._bytes += _measure(chunk)
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
            read = await index.fields_of(list(missing), _DOCUMENT_FIELDS)
            for point, payload in read.items():
                document = _make_document(point, payload)
                found[document.document_id] = document
                self._keep_document(document, revision)
            self._drop()
        return found

    def forget(self, document_ids: Iterable[str]) -> None:
        """Read these documents again when they are needed."""
        for name in document_ids:
            if self._documents.pop(name, None) is not None:
                self._bytes -= _OVERHEAD

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
        self._bytes += _OVERHEAD
        if self._revision == revision:
            self._checked.add(name)

    def _drop(self) -> None:
        while self._bytes > self._most_bytes and self._chunks:
            self._bytes -= _measure(self._chunks.popitem(last=False)[1])
        while self._bytes > self._most_bytes and self._documents:
            self._documents.popitem(last=False)
            self._bytes -= _OVERHEAD


def _make_chunk(point: PointId, payload: Mapping[str, Any]) -> FoundChunk:
    names = payload[layout.NAMES]
    ordinal, lead = payload["ordinal"], payload["lead"]
    place = sys.intern(payload["document"]), sys.intern(payload["version"])
    return FoundChunk(
        point=point,
        document_id=place[0],
        version=place[1],
        ordinal=ordinal,
        lead=lead,
        lead_point=point if lead == ordinal else chunk_identity(*place, lead),
        first=payload["first"],
        last=payload["last"],
        name_terms=np.array([term for name in names for term in name], dtype=np.uint32),
        name_lengths=np.array([len(name) for name in names], dtype=np.int32),
    )


def _make_document(point: PointId, payload: Mapping[str, Any]) -> FoundDocument:
    return FoundDocument(
        point=point,
        document_id=sys.intern(payload["document"]),
        version=sys.intern(payload["version"]),
        page=payload["page"],
        language=sys.intern(payload["language"]),
        crumbs=tuple(payload["crumbs"]),
        kind=payload.get("kind_of_page", ""),
        chunks=payload["chunks"],
        stated_version=payload.get(layout.VERSION, ""),
    )


def _measure(chunk: FoundChunk) -> int:
    return _OVERHEAD + chunk.name_terms.nbytes + chunk.name_lengths.nbytes
