"""Writes the links between documents: which names of documents each passage mentions.

The edges that a document alone decides are written with it. A link depends on the titles of all
documents; so links are written when an ingestion has written its documents. A new title is looked
for in all passages, a title that was there before in the new ones alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from knowledge.document import Chunk
from knowledge.index.engine import Engine
from knowledge.index.graph.called_names import NameTable, list_called_names
from knowledge.index.graph.own_edges import find_own_edges
from knowledge.index.points import layout
from knowledge.index.points.layout import CALLED, CONNECTED, LINKS, MENTIONED, Point
from knowledge.index.points.point_encoder import encode_edges
from knowledge.index.queries import PointId

_DOCUMENTS_AT_ONCE = 64
_FIELDS = ("document", "version", "ordinal", "chunk_id", "heading_path", "text", MENTIONED, LINKS)
Changes = list[tuple[PointId, Mapping[str, Any]]]


class GraphWriter:
    """Connects the documents of one index; a run that was interrupted is repeated by the next."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def connect(self) -> int:
        """Write the edges that are missing; return the number of documents that lacked some."""
        listed = await self._engine.scroll(
            {"kind": "document"}, fields=("document", "version", "title", CONNECTED)
        )
        pending = {one.payload["document"]: one for one in listed if not _is_connected(one)}
        if not pending:
            return 0
        await self._engine.prepare_fields()
        known = _list_names(one for one in listed if _is_connected(one))
        added = _list_names(pending.values()) - known
        table = NameTable(known | added)
        wanted = [one for one in listed if added or one.payload["document"] in pending]
        for start in range(0, len(wanted), _DOCUMENTS_AT_ONCE):
            await self._connect(wanted[start : start + _DOCUMENTS_AT_ONCE], table)
        marks: Changes = [(one.id, _mark(one)) for one in pending.values()]
        await self._engine.set_fields(marks)
        await self._engine.upsert([Point(layout.graph_identity(), {"kind": "graph"})])
        return len(pending)

    async def _connect(self, documents: Sequence[Point], table: NameTable) -> None:
        by_id = {one.payload["document"]: one for one in documents}
        chunks = await self._engine.scroll(
            {"kind": "chunk", "document": list(by_id)}, fields=_FIELDS
        )
        by_document: dict[str, list[Point]] = {}
        for chunk in chunks:
            owner = by_id[chunk.payload["document"]]
            if chunk.payload["version"] == owner.payload["version"]:
                by_document.setdefault(chunk.payload["document"], []).append(chunk)
        changes: Changes = []
        for document_id, own in by_document.items():
            own.sort(key=lambda chunk: int(chunk.payload["ordinal"]))
            changes += _find_changes(by_id[document_id].payload["title"], own, table)
        await self._engine.set_fields(changes)


def _find_changes(title: str, chunks: Sequence[Point], table: NameTable) -> Changes:
    earlier: list[Mapping[str, Any]] = [{}] * len(chunks)
    if any(MENTIONED not in chunk.payload for chunk in chunks):
        # An earlier version of Refdesk has written the document.
        edges = find_own_edges(title, [_read_chunk(chunk) for chunk in chunks])
        earlier = [encode_edges(one) for one in edges]
    changes: Changes = []
    for chunk, fields in zip(chunks, earlier, strict=True):
        links = table.find_all(chunk.payload["text"])
        changed = {**fields, LINKS: links} if links != chunk.payload.get(LINKS, []) else fields
        if changed:
            changes.append((chunk.id, changed))
    return changes


def _read_chunk(point: Point) -> Chunk:
    payload = point.payload
    return Chunk(
        chunk_id=payload["chunk_id"],
        ordinal=payload["ordinal"],
        text=payload["text"],
        heading_path=tuple(payload["heading_path"]),
    )


def _list_names(documents: Any) -> set[str]:
    return {name for one in documents for name in list_called_names(one.payload["title"])}


def _mark(document: Point) -> Mapping[str, Any]:
    called = list_called_names(document.payload["title"])
    return {CALLED: called, CONNECTED: _make_mark(document)}


def _make_mark(document: Point) -> str:
    return f"{layout.GRAPH_FORMAT}:{document.payload['version']}"


def _is_connected(document: Point) -> bool:
    return document.payload.get(CONNECTED) == _make_mark(document)
