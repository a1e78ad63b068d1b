"""Writes the links between documents, which are the document names that each passage mentions.

Edges within a document are written together with it. A link depends on the titles of all documents,
so links are written after an ingestion has written its documents. A new title is looked up in all
passages, and an existing title only in new passages.

Links are stored in points without vectors, one for several chunks, because the engine copies a
point with its vectors when one of its fields changes.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from knowledge.document import Chunk
from knowledge.index.engine import Engine
from knowledge.index.graph.called_names import NameTable, list_called_names
from knowledge.index.graph.own_edges import find_own_edges
from knowledge.index.points import layout
from knowledge.index.points.layout import CALLED, CONNECTED, GROUPS, LINKS, MENTIONED, Point
from knowledge.index.points.point_encoder import encode_edges
from knowledge.index.queries import PointId

_DOCUMENTS_AT_ONCE = 64
_FIELDS = ("document", "version", "ordinal", "chunk_id", "heading_path", "text", MENTIONED)
_DOCUMENT_FIELDS = ("document", "version", "title", CALLED, GROUPS)
Changes = list[tuple[PointId, Mapping[str, Any]]]


class GraphWriter:
    """Connects the documents of one index; the next run repairs an interrupted one."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def connect(self) -> int:
        """Write missing edges; return the number of documents that lacked some."""
        listed = await self._engine.scroll({"kind": "document"}, fields=_DOCUMENT_FIELDS)
        marks = await self._engine.scroll({"kind": "links"}, fields=("document", CONNECTED))
        marked = {
            mark.payload["document"]: mark.payload[CONNECTED]
            for mark in marks
            if CONNECTED in mark.payload
        }
        pending = {
            point.payload["document"]: point
            for point in listed
            if marked.get(point.payload["document"]) != _make_mark(point)
        }
        if not pending:
            return 0
        await self._engine.prepare_fields()
        known = _list_names(point for point in listed if point.payload["document"] not in pending)
        added = _list_names(pending.values()) - known
        await self._name(pending.values())
        every = NameTable(known | added)
        new = NameTable(added)
        others = (
            [point for point in listed if point.payload["document"] not in pending] if added else []
        )
        for part in _divide(others):
            await self._add(part, new, every)
        for part in _divide(list(pending.values())):
            await self._connect(part, every)
        await self._engine.upsert([Point(layout.graph_identity(), {"kind": "graph"})])
        return len(pending)

    async def _name(self, documents: Iterable[Point]) -> None:
        """Write the names of documents that were written by an earlier version of Refdesk."""
        changes: Changes = [
            (document.id, {CALLED: list_called_names(document.payload["title"])})
            for document in documents
            if CALLED not in document.payload
        ]
        await self._engine.set_fields(changes)

    async def _add(self, documents: Sequence[Point], new: NameTable, every: NameTable) -> None:
        """Write the links of connected documents that mention one of the new names."""
        by_id = {document.payload["document"]: document for document in documents}
        chunks = await self._read_chunks(by_id, ("document", "version", "ordinal", "text"))
        for document_id, own in chunks.items():
            changed = {
                int(chunk.payload["ordinal"]) // layout.CHUNKS_OF_LINKS
                for chunk in own
                if new.find_all(chunk.payload["text"])
            }
            if changed:
                points = _make_points(by_id[document_id], own, every)
                await self._engine.upsert([points[at] for at in sorted(changed)])

    async def _connect(self, documents: Sequence[Point], table: NameTable) -> None:
        by_id = {point.payload["document"]: point for point in documents}
        chunks = await self._read_chunks(by_id, _FIELDS)
        changes: Changes = []
        made: list[Point] = []
        for document_id, document in by_id.items():
            own = chunks.get(document_id, [])
            changes += _find_changes(document.payload["title"], own)
            made += _make_points(document, own, table).values()
        await self._engine.set_fields(changes)
        await self._engine.upsert(made)

    async def _read_chunks(
        self, documents: Mapping[str, Point], fields: Sequence[str]
    ) -> dict[str, list[Point]]:
        """Return the chunks of the current versions of documents, in order."""
        points = await self._engine.scroll(
            {"kind": "chunk", "document": list(documents)}, fields=fields
        )
        by_document: dict[str, list[Point]] = {}
        for chunk in points:
            owner = documents[chunk.payload["document"]]
            if chunk.payload["version"] == owner.payload["version"]:
                by_document.setdefault(chunk.payload["document"], []).append(chunk)
        for own in by_document.values():
            own.sort(key=lambda chunk: int(chunk.payload["ordinal"]))
        return by_document


def _divide(documents: Sequence[Point]) -> list[Sequence[Point]]:
    return [
        documents[start : start + _DOCUMENTS_AT_ONCE]
        for start in range(0, len(documents), _DOCUMENTS_AT_ONCE)
    ]


def _make_points(document: Point, chunks: Sequence[Point], table: NameTable) -> dict[int, Point]:
    """Return the points for the links of a document by number; the first one always exists."""
    payload = document.payload
    links: dict[int, dict[str, list[str]]] = {0: {}}
    for chunk in chunks:
        names = table.find_all(chunk.payload["text"])
        if names:
            ordinal = int(chunk.payload["ordinal"])
            own = links.setdefault(ordinal // layout.CHUNKS_OF_LINKS, {})
            own[str(ordinal)] = names
    tags = [layout.make_tag("kind", "links"), layout.make_tag("document", payload["document"])]
    fields = {
        layout.TAGS: tags,
        "document": payload["document"],
        "version": payload["version"],
        **({GROUPS: payload[GROUPS]} if payload.get(GROUPS) else {}),
    }
    return {
        number: Point(
            layout.links_identity(payload["document"], number * layout.CHUNKS_OF_LINKS),
            {**fields, LINKS: own, **({} if number else {CONNECTED: _make_mark(document)})},
        )
        for number, own in links.items()
    }


def _find_changes(title: str, chunks: Sequence[Point]) -> Changes:
    """Return the edges of a document that was written by an earlier version of Refdesk."""
    if all(MENTIONED in chunk.payload for chunk in chunks):
        return []
    edges = find_own_edges(title, [_read_chunk(chunk) for chunk in chunks])
    pairs = zip(chunks, edges, strict=True)
    return [(chunk.id, encode_edges(own_edges)) for chunk, own_edges in pairs]


def _read_chunk(point: Point) -> Chunk:
    payload = point.payload
    return Chunk(
        chunk_id=payload["chunk_id"],
        ordinal=payload["ordinal"],
        text=payload["text"],
        heading_path=tuple(payload["heading_path"]),
    )


def _list_names(documents: Any) -> set[str]:
    return {name for document in documents for name in list_called_names(document.payload["title"])}


def _make_mark(document: Point) -> str:
    return f"{layout.GRAPH_FORMAT}:{document.payload['version']}"
