"""The layout of an index in Qdrant: one point per chunk, one per document, one for the index.

The point of a document names its present version. A change writes the chunks of the new version,
then replaces the point of the document, then deletes the old chunks. The replacement of that point
makes the change atomic.
"""

import hashlib
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from knowledge.document import Chunk, Document
from knowledge.index.bm25 import CHUNK_LENGTH, SUMMARY_LENGTH, Bm25, merge
from knowledge.index.calibration import Calibration, Calibrations
from knowledge.index.listing import ListedDocument
from knowledge.index.port import (
    Floats,
    Passage,
    SparseText,
    StoredChunk,
    StoredDocument,
    WrittenDocument,
)
from knowledge.index.terms import surface_words, terms
from knowledge.rule_descriptions import Description, definitions

FORMAT = 1
SEMANTIC = "semantic"
KEYWORDS = "keywords"
SUMMARY = "summary"
LABELS = "labels"
GROUPS = "groups"
"""The field with the groups that may read a document; empty or absent: everybody."""
NAME = "location_name"
"""The field with the name of the file, from which ids of documents are made."""
KEEPS_NAME = "keeps_name"
VERSION = "stated_version"
"""The field with the version that a document states."""
SPARSE = (KEYWORDS, SUMMARY, LABELS)
LISTED = (
    "document", "title", "source", "root", "language", "chunks", "hash", "kind_of_page", "url",
    GROUPS, VERSION, NAME, KEEPS_NAME,
)  # fmt: skip
"""The fields of a document's point that a list needs."""

_NAMESPACE = uuid.UUID("3f0c2d52-6a0e-5d0b-9d57-0d6f1b0f6c11")
_SLUG = re.compile(r"[^a-z0-9]+")
_EMPTY = SparseText(np.zeros(0, np.uint32), np.zeros(0, np.float32))
# Crumbs far from the page are the same on most pages.
_NEAREST_CRUMBS = 3


@dataclass(frozen=True, slots=True)
class Point:
    """A point in the form that both engines use."""

    id: str
    payload: dict[str, Any]
    dense: Sequence[float] | None = None
    sparse: Mapping[str, SparseText] = field(default_factory=dict)


class Layout:
    """Turns documents into points and back."""

    def __init__(self) -> None:
        self._chunk = Bm25(CHUNK_LENGTH)
        self._summary = Bm25(SUMMARY_LENGTH)

    def chunk_points(
        self, document: Document, vectors: Sequence[Sequence[float]], version: str
    ) -> list[Point]:
        return [
            Point(
                _identity("chunk", document.id, version, str(chunk.ordinal)),
                _chunk_payload(document, chunk, version),
                vector,
                {KEYWORDS: self._encode_keywords(document, chunk)},
            )
            for chunk, vector in zip(document.chunks, vectors, strict=True)
        ]

    def _encode_keywords(self, document: Document, chunk: Chunk) -> SparseText:
        """Return the terms of a chunk; the first one of a page has its stated metadata too.

        The metadata is encoded separately, so that it does not make the text longer and thereby
        weaker.
        """
        text = self._chunk.encode(_text_to_search(document, chunk), document.language)
        stated = _join_stated(document)
        if chunk.ordinal > 0 or not stated:
            return text
        return merge(text, self._summary.encode(stated, document.language))

    def document_point(self, document: Document, version: str, root: str) -> Point:
        summary = " ".join((document.title, document.summary, *document.keypoints))
        sparse = {SUMMARY: self._summary.encode(summary, document.language)}
        if added := _select_added(document):
            sparse[LABELS] = self._summary.encode(added, document.language)
        return Point(
            document_identity(document.id),
            _document_payload(document, version, root),
            sparse=sparse,
        )


def namespace(tenant: str, assistant: str) -> str:
    """Return a name for files and collections that is unique for each pair.

    Only ASCII letters, digits and hyphens; at most 60 characters.
    """
    slug = _SLUG.sub("-", f"{tenant}-{assistant}".lower()).strip("-")[:40]
    digest = hashlib.sha256(f"{len(tenant)}:{tenant}{assistant}".encode()).hexdigest()
    return f"{slug}-{digest[:12]}".strip("-")


def document_identity(document_id: str) -> str:
    """Return the name of a document's own point."""
    return _identity("document", document_id)


def manifest_identity() -> str:
    """Return the id of the point that describes the index."""
    return _identity("manifest")


def calibration_identity() -> str:
    """Return the id of the point that has the calibrations."""
    return _identity("calibrations")


def calibration_point(calibrations: Calibrations) -> Point:
    """Return the point that has the calibrations."""
    languages = {language: asdict(found) for language, found in calibrations.items()}
    return Point(calibration_identity(), {"kind": "calibrations", "languages": languages})


def read_calibrations(point: Point) -> Calibrations:
    """Return the calibrations of their point."""
    return {
        language: Calibration(**fields) for language, fields in point.payload["languages"].items()
    }


def read_document(point: Point, chunks: Sequence[Point]) -> StoredDocument | None:
    """Return the document of a point and its chunks; None when not all of them are there."""
    payload = point.payload
    present = [chunk for chunk in chunks if chunk.payload["version"] == payload["version"]]
    if len(present) != payload["chunks"]:
        return None
    present.sort(key=lambda chunk: int(chunk.payload["ordinal"]))
    return StoredDocument(
        document_id=payload["document"],
        version=payload["version"],
        page=payload["page"],
        language=payload["language"],
        title=payload["title"],
        crumbs=tuple(payload["crumbs"]),
        keywords=tuple(payload["keywords"]),
        words=tuple(payload["words"].split()),
        summary=point.sparse.get(SUMMARY, _EMPTY),
        labels=point.sparse.get(LABELS, _EMPTY),
        chunks=tuple(_read_chunk(chunk) for chunk in present),
        kind=payload.get("kind_of_page", ""),
        stated_version=payload.get(VERSION, ""),
    )


def read_written(point: Point, chunks: Sequence[Point]) -> WrittenDocument | None:
    """Return the written parts of a document; None when not all of its chunks are there."""
    payload = point.payload
    present = [chunk for chunk in chunks if chunk.payload["version"] == payload["version"]]
    if len(present) != payload["chunks"]:
        return None
    present.sort(key=lambda chunk: int(chunk.payload["ordinal"]))
    return WrittenDocument(
        title=payload["title"],
        crumbs=tuple(payload["crumbs"]),
        description=Description(
            payload["description"],
            payload["summary"],
            tuple(payload["keypoints"]),
            tuple(payload["keywords"]),
        ),
        chunks=tuple((passage(chunk).chunk, chunk.dense or ()) for chunk in present),
    )


def list_document(point: Point) -> ListedDocument:
    """Return the document of a point for a list; the point has the fields `LISTED`."""
    payload = point.payload
    return ListedDocument(
        id=payload["document"],
        title=payload["title"],
        source=payload["source"],
        root=payload["root"],
        language=payload["language"],
        chunks=payload["chunks"],
        content_hash=payload["hash"],
        kind=payload.get("kind_of_page", ""),
        url=payload.get("url"),
        groups=tuple(payload.get(GROUPS, ())),
        stated_version=payload.get(VERSION, ""),
        location_name=payload.get(NAME, ""),
        keeps_name=payload.get(KEEPS_NAME, False),
    )


def passage(point: Point) -> Passage:
    """Return the passage of a chunk's point."""
    payload = point.payload
    return Passage(
        point=point.id,
        chunk=Chunk(
            chunk_id=payload["chunk_id"],
            ordinal=payload["ordinal"],
            text=payload["text"],
            heading_path=tuple(payload["heading_path"]),
            anchor=payload.get("anchor"),
        ),
        document_id=payload["document"],
        page=payload["page"],
        title=payload["title"],
        crumbs=tuple(payload["crumbs"]),
        url=payload.get("url"),
        source=payload["source"],
        language=payload["language"],
        stated_version=payload.get(VERSION, ""),
    )


def _read_chunk(point: Point) -> StoredChunk:
    vector: Floats = np.asarray(point.dense, dtype=np.float32)
    return StoredChunk(
        point=point.id,
        ordinal=point.payload["ordinal"],
        heading_path=tuple(point.payload["heading_path"]),
        defined=tuple(point.payload["defined"]),
        vector=vector,
        keywords=point.sparse.get(KEYWORDS, _EMPTY),
    )


def _join_stated(document: Document) -> str:
    """Return the metadata that the source states: an author's words, not those of a rule."""
    return " ".join((*document.stated_keywords, document.stated_text)).strip()


def _select_added(document: Document) -> str:
    """Return the words of the stated metadata that the page's own text does not contain."""
    text = " ".join((document.title, *(chunk.text for chunk in document.chunks)))
    known = set(terms(text, document.language))
    words = _join_stated(document).split()
    return " ".join(word for word in words if not known.issuperset(terms(word, document.language)))


def _text_to_search(document: Document, chunk: Chunk) -> str:
    place = (*document.crumbs[-_NEAREST_CRUMBS:], *chunk.heading_path)
    return " ".join((*place, chunk.text))


def _chunk_payload(document: Document, chunk: Chunk, version: str) -> dict[str, Any]:
    return {
        "kind": "chunk",
        "version": version,
        "chunk_id": chunk.chunk_id,
        "ordinal": chunk.ordinal,
        "text": chunk.text,
        "heading_path": list(chunk.heading_path),
        "defined": _select_names(document, chunk),
        "anchor": chunk.anchor,
        **_place(document),
    }


def _select_names(document: Document, chunk: Chunk) -> list[str]:
    """Return the names of a chunk besides its heading: for the first one, the stated keywords."""
    stated = document.stated_keywords if chunk.ordinal == 0 else ()
    return list(dict.fromkeys((*definitions(chunk.text), *stated)))


def _document_payload(document: Document, version: str, root: str) -> dict[str, Any]:
    words = {word for chunk in document.chunks for word in surface_words(chunk.text)}
    words.update(
        surface_words(" ".join((document.title, *document.keywords, document.stated_text)))
    )
    return {
        "kind": "document",
        "version": version,
        "root": root,
        "hash": document.content_hash,
        "chunks": len(document.chunks),
        "description": document.description,
        "summary": document.summary,
        "keypoints": list(document.keypoints),
        "keywords": list(document.keywords),
        "words": " ".join(sorted(words)),
        "kind_of_page": document.kind,
        NAME: document.location_name,
        **({KEEPS_NAME: True} if document.keeps_name else {}),
        **_place(document),
    }


def _place(document: Document) -> dict[str, Any]:
    return {
        "document": document.id,
        "page": document.page,
        "title": document.title,
        "crumbs": list(document.crumbs),
        "url": document.url,
        "source": document.source,
        "language": document.language,
        **({GROUPS: list(document.groups)} if document.groups else {}),
        **({VERSION: document.stated_version} if document.stated_version else {}),
    }


def _identity(*parts: str) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\n".join((str(FORMAT), *parts))))
