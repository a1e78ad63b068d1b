"""Decodes points into documents, chunks and passages."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from knowledge.document import Chunk
from knowledge.index.calibration import Calibration, Calibrations
from knowledge.index.listing import ListedDocument
from knowledge.index.points.layout import (
    ADDRESSES,
    CHOSEN,
    GROUPS,
    KEYWORDS,
    LABELS,
    PATH,
    PICTURES,
    SUMMARY,
    VERSION,
    Point,
)
from knowledge.index.port import (
    IndexedPassage,
    StoredChunk,
    StoredDocument,
    WrittenDocument,
)
from knowledge.index.queries import Floats, SparseText, StoredPoint
from knowledge.rule_descriptions import Description

_EMPTY = SparseText(np.zeros(0, np.uint32), np.zeros(0, np.float32))


def read_calibrations(point: Point) -> Calibrations:
    """Return the calibrations in their point; earlier releases stored plain numbers."""
    return {
        language: Calibration(**{name: _read_number(value) for name, value in fields.items()})
        for language, fields in point.payload["languages"].items()
    }


def read_document(point: Point, chunks: Sequence[Point]) -> StoredDocument | None:
    """Return the document from a point and its chunks, or None if not all of them exist."""
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
        summary=point.sparse.get(SUMMARY, _EMPTY),
        labels=point.sparse.get(LABELS, _EMPTY),
        chunks=tuple(read_chunk(chunk) for chunk in present),
        kind=payload.get("kind_of_page", ""),
        stated_version=payload.get(VERSION, ""),
        summary_text=payload["summary"],
    )


def read_written(point: Point, chunks: Sequence[Point]) -> WrittenDocument | None:
    """Return the written parts of a document, or None if not all of its chunks exist."""
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
        chunks=tuple((read_passage(chunk).chunk, chunk.dense or ()) for chunk in present),
    )


def read_stored(point: Point) -> StoredPoint:
    """Return a point with its sparse vectors."""
    return StoredPoint(point.payload, point.sparse)


def list_document(point: Point) -> ListedDocument:
    """Return the document from a point, for a list; the point has the fields `LISTED`."""
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
        path=payload.get(PATH, ""),
        groups_chosen=payload.get(CHOSEN, False),
    )


def read_passage(point: Point) -> IndexedPassage:
    """Return the passage from a chunk's point."""
    payload = point.payload
    return IndexedPassage(
        point=point.id,
        chunk=Chunk(
            chunk_id=payload["chunk_id"],
            ordinal=payload["ordinal"],
            text=payload["text"],
            heading_path=tuple(payload["heading_path"]),
            anchor=payload.get("anchor"),
            links=tuple((label, address) for label, address in payload.get(ADDRESSES, ())),
            pictures=tuple((name, caption) for name, caption in payload.get(PICTURES, ())),
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


def read_chunk(point: Point) -> StoredChunk:
    """Return the chunk from a point."""
    vector: Floats = np.asarray(point.dense, dtype=np.float32)
    return StoredChunk(
        point=point.id,
        ordinal=point.payload["ordinal"],
        heading_path=tuple(point.payload["heading_path"]),
        defined=tuple(point.payload["defined"]),
        vector=vector,
        keywords=point.sparse.get(KEYWORDS, _EMPTY),
    )


def _read_number(stored: Any) -> Any:
    if isinstance(stored, list):
        return tuple(stored)
    return float.fromhex(stored) if isinstance(stored, str) else stored
