"""The layout of an index in Qdrant: one point per chunk, one per document, one for the index.

The point of a document names its present version. A change writes the chunks of the new version,
then replaces the point of the document, then deletes the old chunks. The replacement of that point
makes the change atomic.
"""

import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from knowledge.document import Chunk, Document
from knowledge.index.bm25 import CHUNK_LENGTH, SUMMARY_LENGTH, Bm25, TermNumbers, merge
from knowledge.index.calibration import Calibration, Calibrations
from knowledge.index.chunk_names import encode_names, list_defined, list_names
from knowledge.index.listing import ListedDocument
from knowledge.index.port import Passage, SampledDocument, StoredChunk, StoredDocument
from knowledge.index.queries import Floats, SparseText, StoredPoint, Terms
from knowledge.index.terms import surface_words, terms

FORMAT = 2
SEMANTIC = "semantic"
CENTRE = "centre"
DENSE = (SEMANTIC, CENTRE)
"""The vectors: of a chunk its text; of a document the direction of the mean of its chunks."""
KEYWORDS = "keywords"
NAMES = "names"
SUMMARY = "summary"
LABELS = "labels"
GROUPS = "groups"
"""The field with the groups that may read a document; empty or absent: everybody."""
VERSION = "stated_version"
"""The field with the version that a document states."""
VOCABULARY = "vocabulary"
SPARSE = (KEYWORDS, NAMES, SUMMARY, LABELS, VOCABULARY)
"""The sparse vectors: of a chunk its terms and those of its names; of a document the terms of its
summary, those of its stated metadata, and all terms and words of its chunks."""
INDEXED = (
    "kind",
    "document",
    "root",
    "page",
    "language",
    "title_key",
    "labelled",
    "versioned",
    GROUPS,
)
LOT = "lot"
POPULATIONS = {
    KEYWORDS: ("kind", "chunk"),
    NAMES: ("kind", "chunk"),
    SUMMARY: ("kind", "document"),
    VOCABULARY: ("kind", "document"),
    LABELS: ("labelled", "yes"),
}
"""The points that have a sparse vector, by a value of their payload."""
MOST_LOTS = 1 << 30
"""Lots are spread evenly below this number, so that a range of them is a random sample."""
LISTED = (
    "document", "title", "source", "root", "language", "chunks", "hash", "kind_of_page", "url",
    GROUPS, VERSION,
)  # fmt: skip
"""The fields of a document's point that a list needs."""

_NAMESPACE = uuid.UUID("3f0c2d52-6a0e-5d0b-9d57-0d6f1b0f6c11")
_SLUG = re.compile(r"[^a-z0-9]+")
_EMPTY = SparseText(np.zeros(0, np.uint32), np.zeros(0, np.float32))
# Crumbs far from the page are the same on most pages.
_NEAREST_CRUMBS = 3


@dataclass(frozen=True, slots=True)
class Point:
    """A point in the form that both engines use; `using` names its dense vector."""

    id: str
    payload: dict[str, Any]
    dense: Sequence[float] | None = None
    using: str = SEMANTIC
    sparse: Mapping[str, SparseText] = field(default_factory=dict)


class Layout:
    """Turns documents into points and back."""

    def __init__(self) -> None:
        self._chunk = Bm25(CHUNK_LENGTH)
        self._summary = Bm25(SUMMARY_LENGTH)
        self._numbers = TermNumbers()

    def points_of(
        self, document: Document, vectors: Sequence[Sequence[float]], version: str, root: str
    ) -> tuple[list[Point], Point]:
        """Return the points of a document's chunks, and its own."""
        chunks = [
            self._chunk_point(document, chunk, vector, version, place)
            for chunk, vector, place in zip(
                document.chunks, vectors, _find_sections(document.chunks), strict=True
            )
        ]
        found = [chunk.sparse[KEYWORDS].terms for chunk in chunks]
        known = np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.uint32)
        return chunks, self._document_point(document, vectors, version, root, known)

    def _chunk_point(
        self,
        document: Document,
        chunk: Chunk,
        vector: Sequence[float],
        version: str,
        place: dict[str, int],
    ) -> Point:
        names = list_names(document, chunk, self._numbers)
        payload = {**_chunk_payload(document, chunk, version), **place, NAMES: names}
        sparse = {KEYWORDS: self._encode_keywords(document, chunk), NAMES: encode_names(names)}
        return Point(
            chunk_identity(document.id, version, chunk.ordinal), payload, vector, sparse=sparse
        )

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

    def _document_point(
        self,
        document: Document,
        vectors: Sequence[Sequence[float]],
        version: str,
        root: str,
        known: Terms,
    ) -> Point:
        summary = " ".join((document.title, document.summary, *document.keypoints))
        words = _list_words(document)
        spelled = self._numbers.of_all(make_word_term(word) for word in words)
        every = np.union1d(known, spelled)
        sparse = {
            SUMMARY: self._summary.encode(summary, document.language),
            VOCABULARY: SparseText(every, np.ones(len(every), dtype=np.float32)),
        }
        added = np.unique(self._numbers.of_all(_list_added(document)))
        if len(added):
            sparse[LABELS] = SparseText(added, np.ones(len(added), dtype=np.float32))
        payload = _document_payload(document, version, root, words)
        if len(added):
            payload["labelled"] = "yes"
        centre = np.asarray(vectors, dtype=np.float32).mean(axis=0).tolist() if vectors else None
        return Point(document_identity(document.id), payload, centre, CENTRE, sparse)


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


def chunk_identity(document_id: str, version: str, ordinal: int) -> str:
    """Return the name of the point of a chunk in one version of its document."""
    return _identity("chunk", document_id, version, str(ordinal))


def make_word_term(word: str) -> str:
    """Return the term of a word as it is spelled, which is no term of a text."""
    return f"={word}"


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
        summary=point.sparse.get(SUMMARY, _EMPTY),
        labels=point.sparse.get(LABELS, _EMPTY),
        chunks=tuple(read_chunk(chunk) for chunk in present),
        kind=payload.get("kind_of_page", ""),
        stated_version=payload.get(VERSION, ""),
    )


def read_sampled(point: Point) -> SampledDocument | None:
    """Return the document of a point of a sample; None for a document without chunks."""
    if point.dense is None:
        return None
    payload = point.payload
    return SampledDocument(
        chunks=payload["chunks"],
        crumbs=tuple(payload["crumbs"]),
        language=payload["language"],
        letters=payload["letters"],
        centre=np.asarray(point.dense, dtype=np.float32),
        summary=point.sparse.get(SUMMARY, _EMPTY),
    )


def read_stored(point: Point) -> StoredPoint:
    """Return a point with its vectors as arrays."""
    dense = {} if point.dense is None else {point.using: np.asarray(point.dense, np.float32)}
    return StoredPoint(point.payload, dense, point.sparse)


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


def read_chunk(point: Point) -> StoredChunk:
    """Return the chunk of a point."""
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


def _list_added(document: Document) -> list[str]:
    """Return the terms of the stated metadata's words that the page's own text does not have."""
    text = " ".join((document.title, *(chunk.text for chunk in document.chunks)))
    known = set(terms(text, document.language))
    words = (terms(word, document.language) for word in _join_stated(document).split())
    return [term for word in words if not known.issuperset(word) for term in word]


def _find_sections(chunks: Sequence[Chunk]) -> Iterator[dict[str, int]]:
    """Return for each chunk the first chunk with its heading, and the ends of its section.

    A section is a run of chunks with the same heading.
    """
    leads: dict[tuple[str, ...], int] = {}
    runs = [list(run) for _, run in groupby(chunks, key=lambda chunk: chunk.heading_path)]
    for run in runs:
        lead = leads.setdefault(run[0].heading_path, run[0].ordinal)
        for _ in run:
            yield {"lead": lead, "first": run[0].ordinal, "last": run[-1].ordinal}


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
        "defined": list_defined(document, chunk),
        "anchor": chunk.anchor,
        LOT: _draw_lot(chunk.chunk_id),
        **_place(document),
    }


def _list_words(document: Document) -> list[str]:
    """Return the words of a document as they are spelled, in lower case."""
    words = {word for chunk in document.chunks for word in surface_words(chunk.text)}
    words.update(
        surface_words(" ".join((document.title, *document.keywords, document.stated_text)))
    )
    return sorted(words)


def _draw_lot(name: str) -> int:
    """Return a number below `MOST_LOTS` that depends on a name alone."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) % MOST_LOTS


def _document_payload(
    document: Document, version: str, root: str, words: Sequence[str]
) -> dict[str, Any]:
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
        "letters": "".join(sorted({letter for word in words for letter in word if letter > "~"})),
        "title_key": document.title.casefold(),
        LOT: _draw_lot(document.id),
        **({"versioned": "yes"} if document.stated_version else {}),
        "kind_of_page": document.kind,
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
