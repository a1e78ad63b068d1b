"""Encodes documents and calibrations as points."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

import numpy as np

from knowledge.document import Chunk, Document
from knowledge.documents.page import PictureFile
from knowledge.index.bm25 import (
    CHUNK_LENGTH,
    PARTS_LENGTH,
    SUMMARY_LENGTH,
    Bm25,
    TermNumbers,
    merge,
)
from knowledge.index.calibration import Calibrations
from knowledge.index.graph.called_names import list_called_names
from knowledge.index.graph.own_edges import OwnEdges, find_own_edges
from knowledge.index.points.chunk_names import encode_names, list_defined, list_names
from knowledge.index.points.layout import (
    ADDRESSES,
    CALLED,
    CHOSEN,
    GROUPS,
    KEYWORDS,
    LABELS,
    MENTIONED,
    NAMES,
    PARENT,
    PATH,
    PICTURES,
    REFERENCES,
    SUMMARY,
    TAGS,
    VERSION,
    VOCABULARY,
    Point,
    calibration_identity,
    chunk_identity,
    document_identity,
    make_tag,
    make_word_term,
    picture_identity,
)
from knowledge.index.queries import SparseText
from knowledge.index.terms import surface_words, terms
from knowledge.index.word_parts import list_parts

# Crumbs far from the page are the same on most pages.
_NEAREST_CRUMBS = 3


class PointEncoder:
    """Encodes documents as points.

    For chunks in languages other than the `known` ones, parts of words are added.
    """

    def __init__(self, known: Callable[[str], bool] = lambda _language: True) -> None:
        self._is_known = known
        self._chunk = Bm25(CHUNK_LENGTH)
        self._parts = Bm25(PARTS_LENGTH)
        self._summary = Bm25(SUMMARY_LENGTH)
        self._numbers = TermNumbers()

    def points_of(
        self, document: Document, vectors: Sequence[Sequence[float]], version: str, root: str
    ) -> tuple[list[Point], Point]:
        """Return the points of a document's chunks, and the document's own point."""
        chunks = [
            self._chunk_point(document, chunk, vector, version, {**place, **encode_edges(edges)})
            for chunk, vector, place, edges in zip(
                document.chunks,
                vectors,
                _find_sections(document.chunks),
                find_own_edges(document.title, document.chunks),
                strict=True,
            )
        ]
        return chunks, self._document_point(document, version, root)

    def _chunk_point(
        self,
        document: Document,
        chunk: Chunk,
        vector: Sequence[float],
        version: str,
        place: Mapping[str, Any],
    ) -> Point:
        names = list_names(document, chunk, self._numbers)
        payload = {**_chunk_payload(document, chunk, version), **place, NAMES: names}
        sparse = {KEYWORDS: self._encode_keywords(document, chunk), NAMES: encode_names(names)}
        return Point(
            chunk_identity(document.id, version, chunk.ordinal), payload, vector, sparse=sparse
        )

    def _encode_keywords(self, document: Document, chunk: Chunk) -> SparseText:
        """Return the terms of a chunk; for the first chunk of a page, they include its stated
        metadata.

        The metadata is encoded separately, so that it does not make the text longer and thereby
        reduce its weights. The same applies to parts of words.
        """
        language, searched = document.language, _text_to_search(document, chunk)
        text = self._chunk.encode(searched, language)
        if not self._is_known(language):
            text = merge(text, self._parts.encode_terms(list_parts(searched, language)))
        stated = _join_stated(document)
        if chunk.ordinal > 0 or not stated:
            return text
        return merge(text, self._summary.encode(stated, language))

    def _document_point(self, document: Document, version: str, root: str) -> Point:
        summary = " ".join((document.title, document.summary, *document.keypoints))
        words = _list_words(document)
        spelled = np.unique(self._numbers.of_all(make_word_term(word) for word in words))
        sparse = {
            SUMMARY: self._summary.encode(summary, document.language),
            VOCABULARY: SparseText(spelled, np.ones(len(spelled), dtype=np.float32)),
        }
        added = np.unique(self._numbers.of_all(_list_added(document)))
        if len(added):
            sparse[LABELS] = SparseText(added, np.ones(len(added), dtype=np.float32))
        payload = _document_payload(document, version, root, words)
        if len(added):
            payload[TAGS].append(make_tag("labelled", "yes"))
        return Point(document_identity(document.id), payload, sparse=sparse)


def encode_picture(document: Document, picture: PictureFile, version: str) -> Point:
    """Return the point of a picture, which has the same readers as its document."""
    payload = {
        TAGS: _make_tags(kind="picture", document=document.id),
        "version": version,
        "document": document.id,
        "media_type": picture.media_type,
        "data": picture.data,
        **({GROUPS: list(document.groups)} if document.groups else {}),
    }
    return Point(picture_identity(document.id, picture.id), payload)


def encode_edges(edges: OwnEdges) -> dict[str, Any]:
    """Return the fields of a chunk with the edges within its document."""
    return {
        MENTIONED: list(edges.mentioned),
        **({REFERENCES: list(edges.references)} if edges.references else {}),
        **({PARENT: edges.parent} if edges.parent is not None else {}),
    }


def calibration_point(calibrations: Calibrations) -> Point:
    """Return the point that contains the calibrations.

    Their numbers are stored as hexadecimal strings, because the engine may change the last bit of a
    number.
    """
    languages = {
        language: {
            name: value.hex() if isinstance(value, float) else value
            for name, value in asdict(calibration).items()
            if value is not None
        }
        for language, calibration in calibrations.items()
    }
    return Point(calibration_identity(), {"kind": "calibrations", "languages": languages})


def _join_stated(document: Document) -> str:
    """Return the metadata stated by the source, which comes from an author instead of a rule."""
    return " ".join((*document.stated_keywords, document.stated_text)).strip()


def _list_added(document: Document) -> list[str]:
    """Return the terms in the stated metadata that do not occur in the page's own text."""
    stated = _join_stated(document)
    if not stated:
        return []
    text = " ".join((document.title, *(chunk.text for chunk in document.chunks)))
    known = set(terms(text, document.language))
    # All of them together, because a stop word alone would be a term.
    return [term for term in terms(stated, document.language) if term not in known]


def _find_sections(chunks: Sequence[Chunk]) -> Iterator[dict[str, int]]:
    """For each chunk, return the first chunk under the same heading, and the first and last chunk
    of its section.

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
        TAGS: _make_tags(kind="chunk", document=document.id),
        "version": version,
        "chunk_id": chunk.chunk_id,
        "ordinal": chunk.ordinal,
        "text": chunk.text,
        "heading_path": list(chunk.heading_path),
        "defined": list_defined(document, chunk),
        "anchor": chunk.anchor,
        ADDRESSES: [list(link) for link in chunk.links],
        **({PICTURES: [list(picture) for picture in chunk.pictures]} if chunk.pictures else {}),
        **_place(document),
    }


def _list_words(document: Document) -> list[str]:
    """Return the words of a document as they are spelled, in lower case."""
    words = {word for chunk in document.chunks for word in surface_words(chunk.text)}
    words.update(
        surface_words(" ".join((document.title, *document.keywords, document.stated_text)))
    )
    return sorted(words)


def _document_payload(
    document: Document, version: str, root: str, words: Sequence[str]
) -> dict[str, Any]:
    title = document.title.casefold()
    tags = _make_tags(
        kind="document",
        document=document.id,
        root=root,
        page=document.page,
        title_key=title,
    )
    if document.stated_version:
        tags.append(make_tag("versioned", "yes"))
    return {
        TAGS: tags,
        "version": version,
        "root": root,
        "hash": document.content_hash,
        "chunks": len(document.chunks),
        "description": document.description,
        "summary": document.summary,
        "keypoints": list(document.keypoints),
        "keywords": list(document.keywords),
        "letters": "".join(sorted({letter for word in words for letter in word if letter > "~"})),
        "title_key": title,
        "kind_of_page": document.kind,
        CALLED: list_called_names(document.title),
        **({PATH: document.path} if document.path else {}),
        **({CHOSEN: True} if document.groups_chosen else {}),
        **_place(document),
    }


def _make_tags(**values: str | int) -> list[str]:
    return [make_tag(name, value) for name, value in values.items()]


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
