"""The index port, which writes complete documents and reads chunks with their vectors.

An index contains the documents of one tenant and one assistant, written with one embedding model.
Every method raises `IndexUnavailable` if the index cannot be reached. A change is atomic per
document: a reader gets either the old version or the new one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from knowledge.document import Chunk, Document
from knowledge.documents.page import PictureFile
from knowledge.embedding_forms import VectorIdentity
from knowledge.index.calibration import Calibrations
from knowledge.index.listing import ListedDocument
from knowledge.index.queries import (
    Floats,
    PointId,
    QueryResult,
    SparseText,
    StoredPoint,
    VectorQuery,
)
from knowledge.rule_descriptions import Description


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """The identity and size of an index; `embedding` is the model that computed its vectors.

    `forms` is the name of the text forms that were embedded.
    """

    location: str
    tenant: str
    assistant: str
    embedding: str
    dimensions: int
    documents: int
    chunks: int
    forms: str = ""

    @property
    def vectors(self) -> VectorIdentity:
        """The identity of the vectors."""
        return VectorIdentity(self.embedding, self.dimensions, self.forms)


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk with the data needed by a search, without its text; `vector` is L2-normalized.

    `defined` contains the terms that its text defines and, on the first chunk, the keywords that
    the source states for the page.
    """

    point: PointId
    ordinal: int
    heading_path: tuple[str, ...]
    defined: tuple[str, ...]
    vector: Floats
    keywords: SparseText


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """One version of a document, with the data needed by a search.

    `summary` contains the terms of its summary and key points, `labels` contains additions from its
    stated metadata, and `kind` is a `PageKind`. `version` identifies this state of the document,
    and `stated_version` is the version that the document states. `summary_text` is its summary.
    """

    document_id: str
    version: str
    page: str
    language: str
    title: str
    crumbs: tuple[str, ...]
    keywords: tuple[str, ...]
    summary: SparseText
    labels: SparseText
    chunks: tuple[StoredChunk, ...]
    kind: str = ""
    stated_version: str = ""
    summary_text: str = ""


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """The parts of a document that ingestion can reuse: its description, and its chunks with
    vectors.
    """

    title: str
    crumbs: tuple[str, ...]
    description: Description
    chunks: tuple[tuple[Chunk, Sequence[float]], ...]


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """The size of an index; `languages` contains the languages of its documents (ISO 639-1).

    `labelled` counts the documents whose stated metadata adds to their text.
    """

    chunks: int
    documents: int
    labelled: int
    languages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexedPassage:
    """A chunk with its text and its document."""

    point: PointId
    chunk: Chunk
    document_id: str
    page: str
    title: str
    crumbs: tuple[str, ...]
    url: str | None
    source: str
    language: str
    stated_version: str = ""


class ReadableIndex(Protocol):
    """Reads the documents in an index, or only those that a person may read."""

    async def revision(self) -> str:
        """Return a value that changes with every change; reading it is cheap enough to do before
        each search.
        """
        ...

    async def groups(self) -> frozenset[str]:
        """Return the groups to which any of these documents is restricted."""
        ...

    async def versions(self) -> Mapping[str, str]:
        """Return a value that identifies the version of each document, by document id."""
        ...

    async def list_documents(
        self, document_ids: Sequence[str] | None = None
    ) -> Sequence[ListedDocument]:
        """Return all of these documents, or only the ones with the given ids, without their
        texts.
        """
        ...

    async def languages(self) -> Mapping[str, int]:
        """Return the number of documents in each language (ISO 639-1)."""
        ...

    async def counts(self) -> IndexCounts:
        """Return the number of these documents, and of their chunks."""
        ...

    async def query(self, queries: Sequence[VectorQuery]) -> Sequence[QueryResult]:
        """Run several queries together, and return the results in order."""
        ...

    async def fields_of(
        self, points: Sequence[PointId], fields: Sequence[str]
    ) -> Mapping[PointId, Mapping[str, Any]]:
        """Return fields of points by point id; deleted points are omitted."""
        ...

    async def read_points(
        self, points: Sequence[PointId], fields: Sequence[str], vectors: Sequence[str]
    ) -> Mapping[PointId, StoredPoint]:
        """Return fields and vectors of points by point id; points that no longer exist are
        omitted.
        """
        ...

    async def has_graph(self) -> bool:
        """Return whether edges were written, which is not the case in an index from an earlier
        version.
        """
        ...

    async def find_each(
        self, field: str, values: Sequence[str], fields: Sequence[str], limit: int
    ) -> Sequence[Sequence[Mapping[str, Any]]]:
        """Return, for each value, fields of at most `limit` points that have it in a field.

        The field must be one of `layout.NAMED`.
        """
        ...

    async def find_documents(
        self,
        match: Mapping[str, str | Sequence[str]],
        fields: Sequence[str],
        limit: int | None = None,
    ) -> Mapping[PointId, Mapping[str, Any]]:
        """Return fields of the documents that have these values, by point id."""
        ...

    async def load(self, document_ids: Sequence[str]) -> Sequence[StoredDocument]:
        """Return the current versions; deleted documents are omitted."""
        ...

    async def passages(self, points: Sequence[PointId]) -> Mapping[PointId, IndexedPassage]:
        """Return the texts of chunks by point; deleted chunks are omitted."""
        ...

    async def picture(self, document_id: str, picture: str) -> PictureFile | None:
        """Return a picture in a document, or None if it was deleted or its document is not
        accessible.
        """
        ...

    async def calibrations(self) -> Calibrations:
        """Return the most recently stored calibrations of the embedding model."""
        ...


class Index(ReadableIndex, Protocol):
    """Stores the documents of one tenant and one assistant, and reads all of them."""

    def visible_to(self, groups: Collection[str], *, restricts: bool = True) -> ReadableIndex:
        """Return an index of the documents that a person in these groups may read.

        `restricts` is false if no document is restricted to a group, so that queries do not need a
        filter. Texts are checked nevertheless.
        """
        ...

    async def info(self) -> IndexInfo: ...

    async def hashes(self, root: str) -> dict[str, str]:
        """Return the content hashes, by document id, of all documents that were stored under
        `root`.
        """
        ...

    async def read_written(self, document_id: str) -> WrittenDocument | None:
        """Return the written parts of a document, or None if it was deleted or is being changed."""
        ...

    async def put(self, document: Document, vectors: Sequence[Sequence[float]], root: str) -> None:
        """Add a document or replace its current version; `vectors` contains one vector per chunk,
        in order.

        Groups that were set with `choose_groups` are kept.
        """
        ...

    async def remove(self, document_ids: Sequence[str]) -> None:
        """Remove documents; unknown ids are ignored."""
        ...

    async def choose_groups(
        self, document_ids: Sequence[str], groups: Sequence[str] | None
    ) -> None:
        """Set the readers of documents, regardless of their source; an empty value allows
        everybody.

        None lets the next ingestion set the readers that the source states. If the call is
        interrupted, repeat it, because some passages may still have the earlier groups.
        """
        ...

    async def connect(self) -> int:
        """Write missing edges; return the number of documents that lacked some.

        Call this at the end of each ingestion, because links depend on the titles of all documents.
        """
        ...

    async def put_calibrations(self, calibrations: Calibrations) -> None:
        """Replace all calibrations at once."""
        ...

    def optimize_regularly(self) -> None:
        """Build the search index during writes as well, which limits the memory usage of ingestion.

        This is intended for a process that runs no searches, because an embedded index blocks it
        while this runs.
        """
        ...

    async def copy_to(self, folder: Path) -> bool:
        """Copy the files of the index below `folder`; return False if they are on a server."""
        ...

    async def optimize(self) -> None:
        """Build the search index for new points.

        Until this is called, searches compare the query vector with every chunk written since the
        last call. An embedded index blocks the whole process while this runs (20 to 90 s for
        100,000 chunks).
        """
        ...

    async def close(self) -> None:
        """Write pending changes and release the index; a second call does nothing."""
        ...
