"""The layout of an index in Qdrant: one point per chunk, one per document, and one for the index.

The point of a document contains its current version. A change first writes the chunks of the new
version, then replaces the point of the document, then deletes the chunks of the version that it
replaced. Replacing that point makes the change atomic. On a server, this succeeds only if the
document has not changed since it was read. Of several concurrent writers, each replaces the version
of the previous one, and deletes only that version. A version is never reused.
"""

import hashlib
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from knowledge.index.queries import PointId, SparseText

FORMAT = 2
"""The version of this layout, which is part of every point's id; a program reads only its own
format.
"""
SEMANTIC = "semantic"
"""The vector of a chunk's text."""
KEYWORDS = "keywords"
NAMES = "names"
SUMMARY = "summary"
LABELS = "labels"
GROUPS = "groups"
"""The field with the groups that may read a document; if it is empty or absent, everybody may."""
PATH = "path"
"""The field with the file of a document if its source is a label instead of a file."""
CHOSEN = "groups_chosen"
"""The field of a document whose groups were set by the owner; the groups that its source states are
ignored.
"""
CHOICE = "choice"
"""The field of a document that changes each time its groups are set."""
STATE = ("version", CHOICE)
"""The fields by which a writer detects that another one has changed a document in the meantime."""
MENTIONED = "mentioned"
"""The field of a chunk with the names that it mentions."""
REFERENCES = "references"
"""The field of a chunk with the ordinals of those chunks in its document to which it refers."""
PARENT = "parent"
"""The field of a chunk with the ordinal of the first chunk in the section above it."""
LINKS = "links"
"""The field of a link point with the names of documents that chunks mention, by ordinal.

In an index from an earlier version, a chunk has this field itself, with its own names.
"""
ADDRESSES = "addresses"
"""The field of a chunk with the labels and URLs of its web links."""
CALLED = "called"
"""The field of a document with the names that texts use for it."""
CONNECTED = "connected"
"""The field of the first link point of a document, with the format of the edges and the document
version.
"""
GRAPH_FORMAT = 2
"""The version of the edges; edges in other versions are replaced at the next ingestion."""
VERSION = "stated_version"
"""The field with the version that a document states."""
VOCABULARY = "vocabulary"
PICTURES = "pictures"
"""The field of a chunk with the IDs and captions of its pictures."""
KINDS_OF_CHUNKS = ("chunk", "links", "picture")
"""The points of a document version that are deleted with it."""
CHUNKS_OF_LINKS = 64
"""The number of chunks whose links are stored in one point; the points of chunks never change
because of a link.
"""
SPARSE = (KEYWORDS, NAMES, SUMMARY, LABELS, VOCABULARY)
"""The sparse vectors: for a chunk, the terms of its text and of its names; for a document, the
terms of its summary and of its stated metadata, and the words of its chunks as they are spelled.
"""
TAGS = "tags"
"""The field with tags such as `kind=chunk`. It is a single indexed field for all values used in
filters, because each indexed field costs an empty index 0.02 s of processor time and two files.
"""
TAGGED = frozenset(("kind", "document", "root", "page", "title_key", "labelled", "versioned"))
"""The names of values that are stored as tags; other values are fields."""
INDEXED = (TAGS, "language", GROUPS)
NAMED = (MENTIONED, CALLED)
"""The indexed fields with a very large number of values, whose indexes are on disk."""
POPULATIONS = {
    KEYWORDS: ("kind", "chunk"),
    NAMES: ("kind", "chunk"),
    SUMMARY: ("kind", "document"),
    VOCABULARY: ("kind", "document"),
    LABELS: ("labelled", "yes"),
}
"""The points that have a sparse vector, identified by a value in their payload."""
LISTED = (
    "document", "title", "source", "root", "language", "chunks", "hash", "kind_of_page", "url",
    GROUPS, VERSION, PATH, CHOSEN,
)  # fmt: skip
"""The fields of a document's point that are needed for a list."""

_NAMESPACE = uuid.UUID("3f0c2d52-6a0e-5d0b-9d57-0d6f1b0f6c11")
_SLUG = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Point:
    """A point in the format that both engines use; `dense` is the vector `SEMANTIC`."""

    id: PointId
    payload: dict[str, Any]
    dense: Sequence[float] | None = None
    sparse: Mapping[str, SparseText] = field(default_factory=dict)


def namespace(tenant: str, assistant: str) -> str:
    """Return a name for files and collections that is unique for each pair.

    It consists of at most 60 ASCII letters, digits, and hyphens.
    """
    slug = _SLUG.sub("-", f"{tenant}-{assistant}".lower()).strip("-")[:40]
    digest = hashlib.sha256(f"{len(tenant)}:{tenant}{assistant}".encode()).hexdigest()
    return f"{slug}-{digest[:12]}".strip("-")


def make_version() -> str:
    """Return a new version of a document, which consists of the time of writing and a random
    number.
    """
    return f"{int(time.time()):x}-{uuid.uuid4().hex}"


def is_older(version: str, seconds: float) -> bool:
    """Return whether a version was created before a given time; versions from earlier releases
    contain no time.
    """
    made, mark, _ = version.partition("-")
    return not mark or int(made, 16) < seconds


def document_identity(document_id: str) -> PointId:
    """Return the id of a document's own point."""
    return _identity("document", document_id)


def chunk_identity(document_id: str, version: str, ordinal: int) -> PointId:
    """Return the id of the point of a chunk in one version of its document."""
    return _identity("chunk", document_id, version, str(ordinal))


def links_identity(document_id: str, ordinal: int = 0) -> PointId:
    """Return the id of the point with the links of a chunk and the chunks around it."""
    return _identity("links", document_id, str(ordinal // CHUNKS_OF_LINKS))


def picture_identity(document_id: str, picture: str) -> PointId:
    """Return the id of the point with the bytes of a picture, independently of the document's
    version.
    """
    return _identity("picture", document_id, picture)


def make_tag(name: str, value: str | int) -> str:
    """Return the tag of a value."""
    return f"{name}={value}"


def locate(name: str, values: str | Sequence[str]) -> tuple[str, str | Sequence[str]]:
    """Return the field in which points store these values, and how they are stored."""
    if name not in TAGGED:
        return name, values
    if isinstance(values, str):
        return TAGS, make_tag(name, values)
    return TAGS, [make_tag(name, value) for value in values]


def make_word_term(word: str) -> str:
    """Return the term for a word as spelled, which differs from all terms of a text."""
    return f"={word}"


def manifest_identity(layout_format: int = FORMAT) -> PointId:
    """Return the id of the point that describes an index in this format."""
    return _identity("manifest", layout_format=layout_format)


def calibration_identity() -> PointId:
    """Return the id of the point that contains the calibrations."""
    return _identity("calibrations")


def graph_identity() -> PointId:
    """Return the id of the point that records that edges are written in this index."""
    return _identity("graph")


def _identity(*parts: str, layout_format: int = FORMAT) -> PointId:
    return uuid.uuid5(_NAMESPACE, "\n".join((str(layout_format), *parts)))
