"""The index port: documents go in whole, chunks come out with their vectors.

One index holds the documents of one tenant and one assistant, written with one embedding model.
Every method raises `IndexUnavailable` when the index cannot be reached. A change is atomic per
document: a reader sees the old version or the new one, never half of each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from knowledge.document import Chunk, Document

Floats = npt.NDArray[np.float32]
Terms = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What an index is and holds; `embedding` is the name of the model that wrote it."""

    location: str
    tenant: str
    assistant: str
    embedding: str
    dimensions: int
    documents: int
    chunks: int


@dataclass(frozen=True, slots=True)
class SparseText:
    """A text as BM25 sees it: hashed terms and their saturated frequencies, without IDF."""

    terms: Terms
    weights: Floats


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as a search needs it, without its text; `vector` is L2-normalised.

    `defined` are the terms that its text defines.
    """

    point: str
    ordinal: int
    heading_path: tuple[str, ...]
    defined: tuple[str, ...]
    vector: Floats
    keywords: SparseText


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """One version of a document as a search needs it.

    `summary` is the text of its summary and key points, `labels` of its title and keywords; `words`
    are the words it is written with, in lower case.
    """

    document_id: str
    version: str
    page: str
    language: str
    title: str
    crumbs: tuple[str, ...]
    keywords: tuple[str, ...]
    words: tuple[str, ...]
    summary: SparseText
    labels: SparseText
    chunks: tuple[StoredChunk, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk with its text and the document it stands in."""

    point: str
    chunk: Chunk
    document_id: str
    page: str
    title: str
    crumbs: tuple[str, ...]
    url: str | None
    source: str
    language: str


class Index(Protocol):
    """Where the documents of one tenant and one assistant are kept."""

    async def info(self) -> IndexInfo: ...

    async def hashes(self, root: str) -> dict[str, str]:
        """Return the content hash of every document that was put under `root`, by its id."""
        ...

    async def put(self, document: Document, vectors: Sequence[Sequence[float]], root: str) -> None:
        """Add a document, or replace the version that is there; one vector per chunk, in order."""
        ...

    async def remove(self, document_ids: Sequence[str]) -> None:
        """Take documents out; ids that are not there are no error."""
        ...

    async def revision(self) -> str:
        """Return what differs after every change; cheap enough to ask before every search."""
        ...

    async def versions(self) -> Mapping[str, str]:
        """Return what tells the version of every document apart, by document id."""
        ...

    async def load(self, document_ids: Sequence[str]) -> Sequence[StoredDocument]:
        """Return the present versions; documents that are gone meanwhile are left out."""
        ...

    async def passages(self, points: Sequence[str]) -> Mapping[str, Passage]:
        """Return the texts of chunks by point; chunks that are gone meanwhile are left out."""
        ...

    async def close(self) -> None:
        """Write what is pending and let the index go; closing twice is no error."""
        ...
