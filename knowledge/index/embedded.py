"""The embedded index: the Qdrant engine inside this process, its files in a folder.

One process owns it at a time; the owner holds a lock on the file `owner`, which names it.
"""

import asyncio
import fcntl
import os
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import qdrant_edge as edge

from knowledge.errors import IndexOwned, IndexUnavailable
from knowledge.index import layout
from knowledge.index.layout import Point
from knowledge.index.port import SparseText
from knowledge.index.qdrant import Identity, QdrantIndex

T = TypeVar("T")

_PAGE = 1000
_POINTS_PER_FLUSH = 1024
"""Changes after which the log is flushed: what remains of it is read again at the next start."""
_UNFINISHED = "unfinished"
"""A file that exists from the first change until the engine is closed."""
_INDEXED = ("kind", "document", "root", layout.GROUPS)


async def open_embedded(folder: Path, identity: Identity) -> QdrantIndex:
    """Open the index in a folder, making it when there is none.

    Raises `IndexOwned` when another process has it open, `IndexUnavailable` when it cannot be
    read, `IndexMismatch` when another embedding model wrote it.
    """
    place = folder / layout.namespace(identity.tenant, identity.assistant)
    engine = await asyncio.to_thread(EdgeEngine, place, identity.dimensions)
    index = QdrantIndex(engine, identity)
    try:
        await index.open()
    except BaseException:
        await index.close()
        raise
    return index


class EdgeEngine:
    """See `knowledge.index.engine.Engine`."""

    shared = False

    def __init__(self, folder: Path, dimensions: int) -> None:
        self.location = str(folder)
        self._owner = _own(folder)
        self._unfinished = folder / _UNFINISHED
        self.was_interrupted = self._unfinished.exists()
        self._unflushed = 0
        try:
            self._shard = _open(folder / "shard", dimensions)
        except BaseException:
            self._owner.close()
            raise

    async def upsert(self, points: Sequence[Point]) -> None:
        await self._in_thread(lambda: self._upsert(points))

    async def delete(self, points: Sequence[str]) -> None:
        operation = edge.UpdateOperation.delete_points(list(points))
        await self._in_thread(lambda: self._change(operation, len(points)))

    async def delete_chunks(
        self, documents: Collection[str], *, but_version: str | None = None
    ) -> None:
        spared: list[Any] = [] if but_version is None else [_has("version", but_version)]
        chosen = edge.Filter(
            must=[_has("kind", "chunk"), _has("document", list(documents))], must_not=spared
        )
        operation = edge.UpdateOperation.delete_points_by_filter(chosen)
        await self._in_thread(lambda: self._change(operation, len(documents)))

    async def retrieve(self, points: Sequence[str]) -> list[Point]:
        # Tens of points take less than handing them to a thread.
        found = self._ask(lambda: self._shard.retrieve(list(points), True, False))
        return [_point(record) for record in found]

    async def scroll(
        self,
        match: Mapping[str, str | Sequence[str]],
        *,
        groups: Collection[str] | None = None,
        fields: Sequence[str] | None = None,
        vectors: bool = False,
    ) -> list[Point]:
        chosen = _select(match, groups)
        return await self._in_thread(lambda: self._scroll(chosen, fields, vectors))

    async def close(self) -> None:
        if not self._owner.closed:
            await self._in_thread(self._close)

    def _upsert(self, points: Sequence[Point]) -> None:
        made = [edge.Point(point.id, _vectors(point), point.payload) for point in points]
        self._change(edge.UpdateOperation.upsert_points(made), len(made))

    def _change(self, operation: edge.UpdateOperation, points: int) -> None:
        self._unfinished.touch()
        self._shard.update(operation)
        self._unflushed += points
        if self._unflushed >= _POINTS_PER_FLUSH:
            self._shard.flush()
            self._unflushed = 0

    def _scroll(
        self, chosen: edge.Filter, fields: Sequence[str] | None, vectors: bool
    ) -> list[Point]:
        payload: Any = True if fields is None else list(fields)
        found: list[Point] = []
        offset: Any = None
        while True:
            request = edge.ScrollRequest(offset, _PAGE, chosen, payload, vectors)
            records, offset = self._shard.scroll(request)
            found += [_point(record) for record in records]
            if offset is None:
                return found

    def _close(self) -> None:
        try:
            self._shard.flush()
            self._shard.close()
            if not self.was_interrupted:
                self._unfinished.unlink(missing_ok=True)
        finally:
            self._owner.close()

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.to_thread(self._ask, call)

    def _ask(self, call: Callable[[], T]) -> T:
        if self._owner.closed:
            raise IndexUnavailable(f"the index at {self.location} is closed")
        try:
            return call()
        except Exception as error:  # the engine raises nothing narrower
            raise IndexUnavailable(f"the index at {self.location} failed: {error}") from error


def _own(folder: Path) -> IO[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        owner = (folder / "owner").open("a+", encoding="utf-8")
    except OSError as error:
        raise IndexUnavailable(f"the index at {folder} cannot be opened: {error}") from error
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner.seek(0)
        who = owner.read().strip() or "unknown"
        owner.close()
        raise IndexOwned(
            f"the index at {folder} is owned by process {who}: stop that process, or set "
            "QDRANT_URL so that several can share a server"
        ) from error
    owner.truncate(0)
    owner.write(str(os.getpid()))
    owner.flush()
    return owner


def _open(folder: Path, dimensions: int) -> edge.EdgeShard:
    try:
        if (folder / "edge_config.json").exists():
            return edge.EdgeShard.load(str(folder))
        _create(folder, dimensions)
        return edge.EdgeShard.load(str(folder))
    except Exception as error:  # the engine raises nothing narrower
        raise IndexUnavailable(f"the index at {folder} cannot be opened: {error}") from error


def _create(folder: Path, dimensions: int) -> None:
    """Make an empty index; a process that is killed meanwhile leaves no half of one at `folder`."""
    half = folder.with_name(f"{folder.name}.half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    shard = edge.EdgeShard.create(str(half), _configuration(dimensions))
    for name in _INDEXED:
        schema = edge.PayloadSchemaType.Keyword
        shard.update(edge.UpdateOperation.create_field_index(name, schema))
    shard.flush()
    shard.close()
    half.rename(folder)


def _configuration(dimensions: int) -> edge.EdgeConfig:
    dense = edge.EdgeVectorParams(size=dimensions, distance=edge.Distance.Cosine)
    sparse = edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
    return edge.EdgeConfig(
        vectors={layout.SEMANTIC: dense}, sparse_vectors=dict.fromkeys(layout.SPARSE, sparse)
    )


def _select(
    match: Mapping[str, str | Sequence[str]], groups: Collection[str] | None
) -> edge.Filter:
    """Return the filter for points with these values that a person of these groups may read."""
    must: Any = [_has(key, value) for key, value in match.items()]
    if groups is not None:
        public = edge.IsEmptyCondition(layout.GROUPS)
        own = [_has(layout.GROUPS, sorted(groups))] if groups else []
        must.append(edge.Filter(should=[public, *own]))
    return edge.Filter(must=must)


def _has(key: str, value: str | Sequence[str]) -> edge.FieldCondition:
    match: Any = edge.MatchValue(value) if isinstance(value, str) else edge.MatchAny(list(value))
    return edge.FieldCondition(key, match=match)


def _vectors(point: Point) -> Any:
    vectors: dict[str, Any] = {
        name: edge.SparseVector(text.terms.tolist(), text.weights.tolist())
        for name, text in point.sparse.items()
    }
    if point.dense is not None:
        vectors[layout.SEMANTIC] = list(point.dense)
    return vectors


def _point(record: edge.Record) -> Point:
    vectors: Any = record.vector or {}
    sparse = {
        name: SparseText(
            np.array(vectors[name].indices, np.uint32), np.array(vectors[name].values, np.float32)
        )
        for name in layout.SPARSE
        if name in vectors
    }
    return Point(str(record.id), record.payload or {}, vectors.get(layout.SEMANTIC), sparse)
