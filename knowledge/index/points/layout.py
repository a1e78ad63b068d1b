"""The layout of an index in Qdrant: one point per chunk, one per document, one for the index.

The point of a document names its present version. A change writes the chunks of the new version,
then replaces the point of the document, then deletes the chunks of the version that it replaced.
The replacement of that point makes the change atomic. On a server it succeeds only if the document
is as it was read: of several writers at once, each replaces the version of the one before, and
deletes that version alone. A version is never used again.
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
"""The version of this layout, part of every point's id; a program reads only its format."""
SEMANTIC = "semantic"
"""The vector of a chunk's text."""
KEYWORDS = "keywords"
NAMES = "names"
SUMMARY = "summary"
LABELS = "labels"
GROUPS = "groups"
"""The field with the groups that may read a document; empty or absent: everybody."""
PATH = "path"
"""The field with the file of a document whose source is another label."""
CHOSEN = "groups_chosen"
"""The field of a document whose groups the owner chose; those of its source do not count."""
CHOICE = "choice"
"""The field of a document that every choice of its groups changes."""
STATE = ("version", CHOICE)
"""The fields by which a writer sees whether another one changed a document meanwhile."""
MENTIONED = "mentioned"
"""The field of a chunk with the names that it mentions."""
REFERENCES = "references"
"""The field of a chunk with the ordinals of the chunks of its document that it refers to."""
PARENT = "parent"
"""The field of a chunk with the ordinal of the first chunk of the section above it."""
LINKS = "links"
"""The field of a point of links with the names of documents that chunks mention, by ordinal.

In an index of an earlier version, a chunk has the field itself, with its own names."""
ADDRESSES = "addresses"
"""The field of a chunk with the labels and addresses of its links to the web."""
CALLED = "called"
"""The field of a document with the names that texts use for it."""
CONNECTED = "connected"
"""The field of the first point of links of a document, with the format and its version."""
GRAPH_FORMAT = 2
"""The version of the edges; documents with edges of another one get them at the next ingestion."""
VERSION = "stated_version"
"""The field with the version that a document states."""
VOCABULARY = "vocabulary"
PICTURES = "pictures"
"""The field of a chunk with the ids and captions of its pictures."""
KINDS_OF_CHUNKS = ("chunk", "links", "picture")
"""The points of a version of a document that are deleted with it."""
CHUNKS_OF_LINKS = 64
"""Chunks whose links are in one point; the points of chunks never change for a link."""
SPARSE = (KEYWORDS, NAMES, SUMMARY, LABELS, VOCABULARY)
"""The sparse vectors: of a chunk its terms and those of its names; of a document the terms of its
summary, those of its stated metadata, and the words of its chunks as they are spelled."""
TAGS = "tags"
"""The field with texts such as `kind=chunk`: one indexed field for all values used in filters,
because each indexed field costs an empty index 0.02 s of processor time and two files."""
TAGGED = frozenset(("kind", "document", "root", "page", "title_key", "labelled", "versioned"))
"""The names of values that are tags; other values are fields."""
INDEXED = (TAGS, "language", GROUPS)
NAMED = (MENTIONED, CALLED)
"""The indexed fields with very many values, whose indexes are on disk."""
POPULATIONS = {
    KEYWORDS: ("kind", "chunk"),
    NAMES: ("kind", "chunk"),
    SUMMARY: ("kind", "document"),
    VOCABULARY: ("kind", "document"),
    LABELS: ("labelled", "yes"),
}
"""The points that have a sparse vector, by a value of their payload."""
LISTED = (
    "document", "title", "source", "root", "language", "chunks", "hash", "kind_of_page", "url",
    GROUPS, VERSION, PATH, CHOSEN,
)  # fmt: skip
"""The fields of a document's point that a list needs."""

_NAMESPACE = uuid.UUID("3f0c2d52-6a0e-5d0b-9d57-0d6f1b0f6c11")
_SLUG = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Point:
    """A point in the form that both engines use; `dense` is the vector `SEMANTIC`."""

    id: PointId
    payload: dict[str, Any]
    dense: Sequence[float] | None = None
    sparse: Mapping[str, SparseText] = field(default_factory=dict)


def namespace(tenant: str, assistant: str) -> str:
    """Return a name for files and collections that is unique for each pair.

    Only ASCII letters, digits and hyphens; at most 60 characters.
    """
    slug = _SLUG.sub("-", f"{tenant}-{assistant}".lower()).strip("-")[:40]
    digest = hashlib.sha256(f"{len(tenant)}:{tenant}{assistant}".encode()).hexdigest()
    return f"{slug}-{digest[:12]}".strip("-")


def make_version() -> str:
    """Return a new version of a document: the time of its writing, and a random number."""
    return f"{int(time.time()):x}-{uuid.uuid4().hex}"


def is_older(version: str, seconds: float) -> bool:
    """Return whether a version was made before a time; earlier releases state none."""
    made, mark, _ = version.partition("-")
    return not mark or int(made, 16) < seconds


def document_identity(document_id: str) -> PointId:
    """Return the name of a document's own point."""
    return _identity("document", document_id)


def chunk_identity(document_id: str, version: str, ordinal: int) -> PointId:
    """Return the name of the point of a chunk in one version of its document."""
    return _identity("chunk", document_id, version, str(ordinal))


def links_identity(document_id: str, ordinal: int = 0) -> PointId:
    """Return the name of the point with the links of a chunk and of those around it."""
    return _identity("links", document_id, str(ordinal // CHUNKS_OF_LINKS))


def picture_identity(document_id: str, picture: str) -> PointId:
    """Return the name of the point with the bytes of a picture, whatever the document's version."""
    return _identity("picture", document_id, picture)


def make_tag(name: str, value: str | int) -> str:
    """Return the tag of a value."""
    return f"{name}={value}"


def locate(name: str, values: str | Sequence[str]) -> tuple[str, str | Sequence[str]]:
    """Return the field of points that has these values, and how it has them."""
    if name not in TAGGED:
        return name, values
    if isinstance(values, str):
        return TAGS, make_tag(name, values)
    return TAGS, [make_tag(name, value) for value in values]


def make_word_term(word: str) -> str:
    """Return the term of a word as spelled, which differs from all terms of a text."""
    return f"={word}"


def manifest_identity(layout_format: int = FORMAT) -> PointId:
    """Return the id of the point that describes an index of a format."""
    return _identity("manifest", layout_format=layout_format)


def calibration_identity() -> PointId:
    """Return the id of the point that has the calibrations."""
    return _identity("calibrations")


def graph_identity() -> PointId:
    """Return the id of the point that records that edges are written in this index."""
    return _identity("graph")


def _identity(*parts: str, layout_format: int = FORMAT) -> PointId:
    return uuid.uuid5(_NAMESPACE, "\n".join((str(layout_format), *parts)))
