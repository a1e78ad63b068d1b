"""Stores documents in Qdrant, independently of the engine."""

import asyncio
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from knowledge.document import Document
from knowledge.embedding import knows
from knowledge.embedding_forms import VectorIdentity
from knowledge.errors import IndexMismatch
from knowledge.index.calibration import Calibrations
from knowledge.index.engine import Engine
from knowledge.index.graph_writer import GraphWriter
from knowledge.index.index_reader import IndexReader
from knowledge.index.maintenance.halves import (
    LONGEST_WRITE_SECONDS,
    remove_halves,
    remove_orphans,
)
from knowledge.index.points import layout, point_decoder
from knowledge.index.points.layout import Point
from knowledge.index.points.point_encoder import PointEncoder, calibration_point, encode_picture
from knowledge.index.port import IndexInfo, WrittenDocument

_REMOVED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Identity:
    """The tenant and assistant of an index, the model that computes its vectors, and its forms."""

    tenant: str
    assistant: str
    embedding: str
    dimensions: int
    forms: str = ""

    @property
    def vectors(self) -> VectorIdentity:
        """The identity of its vectors."""
        return VectorIdentity(self.embedding, self.dimensions, self.forms)


class QdrantIndex(IndexReader):
    """An index over one collection of points; see `knowledge.index.port.Index`."""

    def __init__(self, engine: Engine, identity: Identity) -> None:
        super().__init__(engine, self._count_changes)
        self._identity = identity
        self._encoder = PointEncoder(partial(knows, identity.embedding))
        self._writing = asyncio.Lock()
        self._changes = 0

    async def info(self) -> IndexInfo:
        points = await self._documents(["chunks"])
        return IndexInfo(
            location=self._engine.location,
            tenant=self._identity.tenant,
            assistant=self._identity.assistant,
            embedding=self._identity.embedding,
            dimensions=self._identity.dimensions,
            documents=len(points),
            chunks=sum(point.payload["chunks"] for point in points),
            forms=self._identity.forms,
        )

    async def hashes(self, root: str) -> dict[str, str]:
        match = {"kind": "document", "root": root}
        points = await self._engine.scroll(match, fields=["document", "hash"])
        return {point.payload["document"]: point.payload["hash"] for point in points}

    async def put(self, document: Document, vectors: Sequence[Sequence[float]], root: str) -> None:
        self._check(document, vectors)
        async with self._writing:
            await self._engine.begin_change([document.id])
            replaced: list[str] = []
            while not await self._replace(document, vectors, root, replaced):
                # Another process has changed the document meanwhile: this version follows its one.
                pass
            if replaced:
                old = {"kind": layout.KINDS_OF_CHUNKS, "document": document.id, "version": replaced}
                await self._engine.delete_matching(old)
            await self._write_manifest()

    async def _replace(
        self,
        document: Document,
        vectors: Sequence[Sequence[float]],
        root: str,
        replaced: list[str],
    ) -> bool:
        """Write a version of a document; return False if the document was changed concurrently.

        If the version was written, `replaced` receives the versions that are no longer in use.
        """
        version, identity = layout.make_version(), layout.document_identity(document.id)
        fields = (*layout.STATE, layout.GROUPS, layout.CHOSEN)
        before = next(iter(await self._engine.retrieve([identity], fields=fields)), None)
        if before is not None and before.payload.get(layout.CHOSEN):
            groups = tuple(before.payload.get(layout.GROUPS, ()))
            document = document.model_copy(update={"groups": groups, "groups_chosen": True})
        chunks, own = await asyncio.to_thread(
            self._encoder.points_of, document, vectors, version, root
        )
        await self._engine.upsert(chunks)
        for picture in document.files:
            await self._engine.upsert([encode_picture(document, picture, version)])
        if before is not None:
            # Even if the exchange fails: it may have succeeded, and another one have followed it.
            replaced.append(before.payload["version"])
        if await self._engine.exchange(own, before):
            return True
        replaced.append(version)
        return False

    async def read_written(self, document_id: str) -> WrittenDocument | None:
        own = await self._engine.scroll({"kind": "document", "document": document_id})
        match = {"kind": "chunk", "document": document_id}
        points = await self._engine.scroll(match, vectors=True) if own else []
        return point_decoder.read_written(own[0], points) if own else None

    async def remove(self, document_ids: Sequence[str]) -> None:
        if not document_ids:
            return
        async with self._writing:
            await self._engine.begin_change(document_ids)
            for start in range(0, len(document_ids), _REMOVED_AT_ONCE):
                await self._remove(document_ids[start : start + _REMOVED_AT_ONCE])
            await self._write_manifest()

    async def _remove(self, document_ids: Sequence[str]) -> None:
        """Remove the current versions; another process may be writing new ones."""
        names = [layout.document_identity(name) for name in document_ids]
        present = await self._engine.retrieve(names, fields=["version"])
        if not present:
            return
        match = {
            "document": list(document_ids),
            "version": [point.payload["version"] for point in present],
        }
        await self._engine.delete_matching({"kind": "document", **match})
        await self._engine.delete_matching({"kind": layout.KINDS_OF_CHUNKS, **match})

    async def choose_groups(
        self, document_ids: Sequence[str], groups: Sequence[str] | None
    ) -> None:
        async with self._writing:
            match = {"kind": "document", "document": list(document_ids)}
            points = await self._engine.scroll(match, fields=["version"])
            while True:
                await self._choose_groups(match, points, groups)
                now = await self._engine.scroll(match, fields=["version"])
                if _list_versions(now) == _list_versions(points):
                    break
                # Another process has written a document meanwhile: its new parts need them too.
                points = now
            await self._write_manifest()

    async def _choose_groups(
        self,
        match: Mapping[str, str | Sequence[str]],
        found: Sequence[Point],
        groups: Sequence[str] | None,
    ) -> None:
        # A changed choice: who writes a document at the same time reads it again.
        own: dict[str, Any] = {layout.CHOICE: uuid.uuid4().hex}
        if groups is None:
            # A hash that no text has: the document is read again.
            own |= {layout.CHOSEN: False, "hash": ""}
        else:
            shown = {layout.GROUPS: list(groups)}
            parts = await self._engine.scroll({**match, "kind": ("chunk", "picture")}, fields=[])
            await self._engine.set_fields([(part.id, shown) for part in parts])
            own |= {**shown, layout.CHOSEN: True}
        # The list of documents shows the change when the whole document has it.
        await self._engine.set_fields([(point.id, own) for point in found])

    def visible_to(self, groups: Collection[str], *, restricts: bool = True) -> IndexReader:
        return IndexReader(self._engine, self.revision, frozenset(groups), restricts=restricts)

    async def connect(self) -> int:
        async with self._writing:
            if self._engine.shared:
                await remove_orphans(self._engine, time.time() - LONGEST_WRITE_SECONDS)
            connected = await GraphWriter(self._engine).connect()
            if connected:
                await self._write_manifest()
        return connected

    def optimize_regularly(self) -> None:
        self._engine.optimize_regularly()

    async def copy_to(self, folder: Path) -> bool:
        return await self._engine.copy_to(folder)

    async def optimize(self) -> None:
        await self._engine.optimize()

    async def _count_changes(self) -> str:
        if not self._engine.shared:
            return str(self._changes)
        points = await self._engine.retrieve([layout.manifest_identity()])
        return str(points[0].payload["revision"]) if points else ""

    async def put_calibrations(self, calibrations: Calibrations) -> None:
        async with self._writing:
            await self._engine.upsert([calibration_point(calibrations)])
            await self._write_manifest()

    async def close(self) -> None:
        await self._engine.close()

    async def open(self) -> None:
        """Write the description of this index, or check the existing one."""
        points = await self._engine.retrieve([layout.manifest_identity()])
        if not points:
            await self._check_earlier_formats()
            await self._engine.upsert([Point(layout.graph_identity(), {"kind": "graph"})])
            await self._write_manifest()
            return
        payload = points[0].payload
        written = VectorIdentity(
            payload["embedding"], payload["dimensions"], payload.get("forms", "")
        )
        own = self._identity.vectors
        if written != own:
            raise IndexMismatch(
                f"the index at {self._engine.location} was written with the embedding model "
                f"{_describe_embedding(*written)}, not with {_describe_embedding(*own)}: restore "
                "the previous EMBEDDING_MODEL and its settings, or ingest into a new index",
                written,
            )
        if self._engine.was_interrupted:
            await remove_halves(self._engine, self._engine.unfinished)
            await self._engine.end_repair()

    async def _check_earlier_formats(self) -> None:
        earlier = [
            layout.manifest_identity(earlier_format) for earlier_format in range(1, layout.FORMAT)
        ]
        points = await self._engine.retrieve(earlier)
        if points:
            raise IndexMismatch(
                f"the index at {self._engine.location} has format {points[0].payload['format']}, "
                f"this version of Refdesk uses format {layout.FORMAT}: remove "
                f"{self._engine.storage}, then ingest the documents again"
            )

    async def _write_manifest(self) -> None:
        self._changes += 1
        if self._changes > 1 and not self._engine.shared:
            return
        payload = {
            "kind": "manifest",
            "format": layout.FORMAT,
            "tenant": self._identity.tenant,
            "assistant": self._identity.assistant,
            "embedding": self._identity.embedding,
            "dimensions": self._identity.dimensions,
            "forms": self._identity.forms,
            "revision": uuid.uuid4().hex,
        }
        await self._engine.upsert([Point(layout.manifest_identity(), payload)])

    def _check(self, document: Document, vectors: Sequence[Sequence[float]]) -> None:
        lengths = {len(vector) for vector in vectors}
        if len(vectors) != len(document.chunks) or lengths - {self._identity.dimensions}:
            raise ValueError(
                f"document {document.id!r}: expected {len(document.chunks)} vectors (one per "
                f"chunk) with {self._identity.dimensions} dimensions, found {len(vectors)} with "
                f"dimensions {sorted(lengths)}"
            )


def _list_versions(documents: Sequence[Point]) -> set[str]:
    return {document.payload["version"] for document in documents}


def _describe_embedding(model: str, dimensions: int, forms: str) -> str:
    apart = f"questions and documents as {forms}" if forms else "questions and documents alike"
    return f"{model!r} ({dimensions} dimensions, {apart})"
