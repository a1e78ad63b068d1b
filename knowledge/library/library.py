"""Reads the documents in an index that a person may read: lists, whole documents, and chunks.

`document_names` finds documents by the names used in texts.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import structlog

from envelope.run import OUTSIDE, Run
from knowledge.document import Chunk
from knowledge.index.listing import ListedDocument
from knowledge.index.port import Index, ReadableIndex
from knowledge.index.queries import Floats
from knowledge.library.attached_documents import (
    AttachedDocument,
    AttachmentSource,
    is_attached_id,
)
from knowledge.library.passage_graph import DocumentNames, PassageGraph
from knowledge.sections import Section, join_chunks

_WORD = re.compile(r"[\w.]{1,100}")
_KEPT = 4
"""The number of cached lists of names, one for each of the most recent combinations of groups."""

log = structlog.get_logger("knowledge")


@dataclass(frozen=True, slots=True)
class ChunkWithVector:
    """A chunk of a document with its L2-normalized vector, or None if it is not in an index."""

    chunk: Chunk
    vector: Floats | None


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """A document with all of its chunks in order; there is at least one.

    `summary` is empty for a document that is attached to a conversation.
    """

    listed: ListedDocument
    crumbs: tuple[str, ...]
    page: str
    chunks: tuple[ChunkWithVector, ...]
    summary: str = ""

    @property
    def sections(self) -> tuple[Section, ...]:
        """The text below each heading."""
        return join_chunks(chunk.chunk for chunk in self.chunks)

    @property
    def text(self) -> str:
        """The headings and texts of all sections, as Markdown."""
        parts: list[str] = []
        above: tuple[str, ...] = ()
        for section in self.sections:
            path = section.heading_path
            parts += [*_write_headings(above, path), section.text]
            above = path
        return "\n\n".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class NamedInText:
    """The versions and documents named in a text."""

    versions: tuple[str, ...] = ()
    document_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Outline:
    """The titles and the stated versions of the documents at one revision of the index."""

    revision: str
    versions: tuple[str, ...]
    titles: DocumentNames


class Library:
    """The documents of one assistant; every method raises `IndexUnavailable`."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._attachments: AttachmentSource | None = None
        self._outlines: OrderedDict[tuple[str, ...], _Outline] = OrderedDict()
        self._has_edges: bool | None = None

    def attach(self, attachments: AttachmentSource) -> None:
        """From now on, also find documents that are attached to conversations."""
        self._attachments = attachments

    def adopt(self, index: Index) -> None:
        """From now on, read from a different index."""
        self._index = index
        self._has_edges = None
        self._outlines.clear()

    async def list_documents(self, groups: Sequence[str] = ()) -> list[ListedDocument]:
        """Return the documents that a person in these groups may read, sorted by title."""
        documents = await self._visible(groups).list_documents()
        return sorted(documents, key=lambda document: (document.title, document.id))

    async def find_readable(
        self, document_ids: Sequence[str], groups: Sequence[str] = ()
    ) -> frozenset[str]:
        """Return the subset of these documents that a person in these groups may currently read."""
        if not document_ids:
            return frozenset()
        documents = await self._visible(groups).list_documents(document_ids)
        return frozenset(document.id for document in documents)

    async def list_attached(self, groups: Sequence[str], run: Run) -> list[ListedDocument]:
        """Return the documents in the conversation of a run that the person may read."""
        if self._attachments is None or run.question is None:
            return []
        stored = await self._attachments.all(run.question)
        documents = [
            AttachedDocument.decode(stored_document) for stored_document in stored.values()
        ]
        listed_documents = [
            attached_document.listed
            for attached_document in documents
            if attached_document.is_visible_to(groups)
        ]
        return sorted(listed_documents, key=lambda document: (document.title, document.id))

    async def list_versions(self, groups: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the versions stated in documents that a person may read, without duplicates."""
        return (await self._read_outline(groups)).versions

    async def find_named(self, text: str, groups: Sequence[str] = ()) -> NamedInText:
        """Return the stated versions, and the documents, that a text refers to by title or code."""
        words = {word.rstrip(".") for word in _WORD.findall(text)}
        outline = await self._read_outline(groups)
        versions = [version for version in outline.versions if version in words]
        named = outline.titles.find_in(text, versions[0] if len(versions) == 1 else "")
        ids = dict.fromkeys(identifier for name in named for identifier in name.document_ids)
        return NamedInText(tuple(versions), tuple(ids))

    async def read_texts(
        self, document_ids: Sequence[str], groups: Sequence[str] = (), run: Run = OUTSIDE
    ) -> list[str]:
        """Return the texts of documents, as `read` returns the documents."""
        return [document.text for document in await self.read(document_ids, groups, run)]

    async def read(
        self, document_ids: Sequence[str], groups: Sequence[str] = (), run: Run = OUTSIDE
    ) -> list[WholeDocument]:
        """Return documents in the order of their ids; unknown ones are omitted.

        Documents attached to the conversation of the run are found by their ids as well.
        """
        wanted = list(dict.fromkeys(document_ids))
        named = [name for name in wanted if is_attached_id(name)]
        given = await self._read_attached(named, groups, run)
        indexed = await self._read_indexed(
            [name for name in wanted if not is_attached_id(name)], groups
        )
        by_id = {document.listed.id: document for document in (*given, *indexed)}
        return [by_id[name] for name in wanted if name in by_id]

    async def _read_attached(
        self, document_ids: Sequence[str], groups: Sequence[str], run: Run
    ) -> list[WholeDocument]:
        if self._attachments is None or run.question is None or not document_ids:
            return []
        stored = await self._attachments.find(run.question, document_ids)
        documents = [
            AttachedDocument.decode(stored_document) for stored_document in stored.values()
        ]
        return [
            WholeDocument(
                document.listed,
                (document.title,),
                document.name,
                tuple(ChunkWithVector(chunk, None) for chunk in document.chunks),
            )
            for document in documents
            if document.is_visible_to(groups)
        ]

    async def _read_indexed(
        self, wanted: Sequence[str], groups: Sequence[str]
    ) -> list[WholeDocument]:
        if not wanted:
            return []
        index = self._visible(groups)
        listed = {document.id: document for document in await index.list_documents(wanted)}
        stored = {document.document_id: document for document in await index.load(list(listed))}
        points = [
            chunk.point for stored_document in stored.values() for chunk in stored_document.chunks
        ]
        passages = await index.passages(points)
        documents = []
        for name in wanted:
            if name not in stored or name not in listed:
                continue
            chunks = tuple(
                ChunkWithVector(passages[stored_chunk.point].chunk, stored_chunk.vector)
                for stored_chunk in stored[name].chunks
                if stored_chunk.point in passages
            )
            if chunks:
                own = stored[name]
                documents.append(
                    WholeDocument(listed[name], own.crumbs, own.page, chunks, own.summary_text)
                )
        return documents

    async def open_graph(self, groups: Sequence[str] = ()) -> PassageGraph:
        """Return the graph of the passages that a person in these groups may read.

        An index from an earlier version has no edges until the next ingestion, which is logged
        once.
        """
        index = self._visible(groups)
        has_edges = self._has_edges or await index.has_graph()
        if not has_edges and self._has_edges is None:
            log.warning("graph_missing", remedy="ingest the documents again")
        self._has_edges = has_edges
        return PassageGraph(index, has_edges=has_edges)

    async def _read_outline(self, groups: Sequence[str]) -> "_Outline":
        """Return titles and versions, which are read again only after a change."""
        key, index = tuple(sorted(set(groups))), self._visible(groups)
        revision = await index.revision()
        known = self._outlines.pop(key, None)
        if known is None or known.revision != revision:
            listed = await index.list_documents()
            stated = sorted(
                {document.stated_version for document in listed if document.stated_version}
            )
            titles = await asyncio.to_thread(DocumentNames, listed)
            known = _Outline(revision, tuple(stated), titles)
        self._outlines[key] = known
        if len(self._outlines) > _KEPT:
            self._outlines.popitem(last=False)
        return known

    def _visible(self, groups: Sequence[str]) -> ReadableIndex:
        return self._index.visible_to(frozenset(groups))


def _write_headings(above: Sequence[str], path: Sequence[str]) -> Iterator[str]:
    """Yield the headings of a section that the previous section does not have."""
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(above, path, strict=False))))
    for level in range(max(0, min(same, len(path) - 1)), len(path)):
        yield f"{'#' * min(level + 1, 6)} {path[level]}"
