"""Stores documents in Qdrant, independent of the engine."""

import asyncio
import uuid
from collections.abc import Collection, Sequence
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
from knowledge.index.maintenance.halves import remove_halves
from knowledge.index.points import layout, point_decoder
from knowledge.index.points.layout import Point
from knowledge.index.points.point_encoder import PointEncoder, calibration_point, encode_picture
from knowledge.index.port import IndexInfo, WrittenDocument


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
        found = await self._documents(["chunks"])
        return IndexInfo(
            location=self._engine.location,
            tenant=self._identity.tenant,
            assistant=self._identity.assistant,
            embedding=self._identity.embedding,
            dimensions=self._identity.dimensions,
            documents=len(found),
            chunks=sum(point.payload["chunks"] for point in found),
            forms=self._identity.forms,
        )

    async def hashes(self, root: str) -> dict[str, str]:
        match = {"kind": "document", "root": root}
        found = await self._engine.scroll(match, fields=["document", "hash"])
        return {point.payload["document"]: point.payload["hash"] for point in found}

    async def put(self, document: Document, vectors: Sequence[Sequence[float]], root: str) -> None:
        self._check(document, vectors)
        async with self._writing:
            version = uuid.uuid4().hex
            document = await self._with_chosen_groups(document)
            chunks, own = await asyncio.to_thread(
                self._encoder.points_of, document, vectors, version, root
            )
            await self._engine.begin_change([document.id])
            await self._engine.upsert(chunks)
            for picture in document.files:
                await self._engine.upsert([encode_picture(document, picture, version)])
            await self._engine.upsert([own])
            await self._engine.delete_chunks([document.id], but_version=version)
            await self._write_manifest()

    async def _with_chosen_groups(self, document: Document) -> Document:
        """Return a document with the groups that the owner chose for its present version."""
        fields = (layout.GROUPS, layout.CHOSEN)
        found = await self._engine.retrieve([layout.document_identity(document.id)], fields=fields)
        if not found or not found[0].payload.get(layout.CHOSEN):
            return document
        groups = tuple(found[0].payload.get(layout.GROUPS, ()))
        return document.model_copy(update={"groups": groups, "groups_chosen": True})

    async def read_written(self, document_id: str) -> WrittenDocument | None:
        own = await self._engine.scroll({"kind": "document", "document": document_id})
        match = {"kind": "chunk", "document": document_id}
        found = await self._engine.scroll(match, vectors=True) if own else []
        return point_decoder.read_written(own[0], found) if own else None

    async def remove(self, document_ids: Sequence[str]) -> None:
        if not document_ids:
            return
        async with self._writing:
            await self._engine.begin_change(document_ids)
            await self._engine.delete([layout.document_identity(name) for name in document_ids])
            await self._engine.delete_chunks(document_ids)
            await self._write_manifest()

    async def choose_groups(
        self, document_ids: Sequence[str], groups: Sequence[str] | None
    ) -> None:
        async with self._writing:
            match = {"kind": "document", "document": list(document_ids)}
            found = await self._engine.scroll(match, fields=[])
            if groups is None:
                # A hash that no text has: the document is read again.
                own: dict[str, Any] = {layout.CHOSEN: False, "hash": ""}
            else:
                shown = {layout.GROUPS: list(groups)}
                of_parts = {**match, "kind": ("chunk", "picture")}
                parts = await self._engine.scroll(of_parts, fields=[])
                await self._engine.set_fields([(part.id, shown) for part in parts])
                own = {**shown, layout.CHOSEN: True}
            # The list of documents shows the change when the whole document has it.
            await self._engine.set_fields([(point.id, own) for point in found])
            await self._write_manifest()

    def visible_to(self, groups: Collection[str], *, restricts: bool = True) -> IndexReader:
        return IndexReader(self._engine, self.revision, frozenset(groups), restricts=restricts)

    async def connect(self) -> int:
        async with self._writing:
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
        found = await self._engine.retrieve([layout.manifest_identity()])
        return str(found[0].payload["revision"]) if found else ""

    async def put_calibrations(self, calibrations: Calibrations) -> None:
        async with self._writing:
            await self._engine.upsert([calibration_point(calibrations)])
            await self._write_manifest()

    async def close(self) -> None:
        await self._engine.close()

    async def open(self) -> None:
        """Write the description of this index, or check the existing one."""
        found = await self._engine.retrieve([layout.manifest_identity()])
        if not found:
            await self._check_earlier_formats()
            await self._engine.upsert([Point(layout.graph_identity(), {"kind": "graph"})])
            await self._write_manifest()
            return
        payload = found[0].payload
        written = VectorIdentity(
            payload["embedding"], payload["dimensions"], payload.get("forms", "")
        )
        own = self._identity.vectors
        if written != own:
            raise IndexMismatch(
                f"the index at {self._engine.location} was written with the embedding model "
                f"{_describe_embedding(*written)}, not with {_describe_embedding(*own)}: set "
                "EMBEDDING_MODEL and its settings as they were, or ingest into another place",
                written,
            )
        if self._engine.was_interrupted:
            await remove_halves(self._engine, self._engine.unfinished)
            await self._engine.end_repair()

    async def _check_earlier_formats(self) -> None:
        earlier = [layout.manifest_identity(one) for one in range(1, layout.FORMAT)]
        found = await self._engine.retrieve(earlier)
        if found:
            raise IndexMismatch(
                f"the index at {self._engine.location} has format {found[0].payload['format']}, "
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
                f"document {document.id!r} has {len(document.chunks)} chunks: expected as many "
                f"vectors of {self._identity.dimensions} numbers, found {len(vectors)} of "
                f"{sorted(lengths)}"
            )


def _describe_embedding(model: str, dimensions: int, forms: str) -> str:
    apart = f"questions and documents as {forms}" if forms else "questions and documents alike"
    return f"{model!r} ({dimensions} numbers, {apart})"
