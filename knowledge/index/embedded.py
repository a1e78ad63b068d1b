"""The embedded index: the Qdrant engine in this process, with its files in a folder.

Only one process can own it at a time. The owner holds a lock on the file `owner`, which contains
its name.
"""

import asyncio
import fcntl
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

import qdrant_edge as edge

from knowledge.data_folder import check_space
from knowledge.errors import IndexOwned, IndexUnavailable
from knowledge.index.maintenance.change_log import ChangeLog
from knowledge.index.maintenance.shard_files import (
    POINTS_PER_SEGMENT,
    index_fields,
    open_shard,
)
from knowledge.index.maintenance.sparse_files import copy_sparse
from knowledge.index.maintenance.unused_memory import return_unused_memory
from knowledge.index.points import layout
from knowledge.index.points.engine_values import (
    has_value,
    make_filter,
    make_request,
    make_vectors,
    read_point,
)
from knowledge.index.points.layout import Point
from knowledge.index.qdrant import Identity, QdrantIndex
from knowledge.index.queries import (
    PointId,
    QueryResult,
    VectorQuery,
    read_id,
    read_result,
)

T = TypeVar("T")

_PAGE = 1000
_POINTS_PER_FLUSH = 1024
"""The number of changes after which the log is flushed; unflushed changes are read again at the
next start.
"""
_UNFINISHED = "unfinished"
"""The file of the `ChangeLog`, which lists changes that may be incomplete."""
_FEW = 50
_MOST_VALUES = 10_000


class EdgeEngine:
    """See `knowledge.index.engine.Engine`."""

    shared = False

    def __init__(self, folder: Path, dimensions: int) -> None:
        self.location = str(folder)
        self.storage = f"the folder {folder}"
        self._owner = lock_folder(folder)
        self._log = ChangeLog(folder / _UNFINISHED)
        self._changing = threading.RLock()
        self._unflushed = 0
        self._points_per_optimization: int | None = None
        self._unoptimized = 0
        try:
            self._shard = open_shard(folder, dimensions)
        except BaseException:
            self._owner.close()
            raise

    @property
    def was_interrupted(self) -> bool:
        """Whether the last process was killed after a change."""
        return self._log.was_interrupted

    @property
    def unfinished(self) -> Collection[str] | None:
        """The documents that may be incomplete, or None if they are unknown."""
        return self._log.documents

    async def begin_change(self, documents: Collection[str]) -> None:
        await self._in_thread(lambda: self._log.begin(documents))

    async def end_repair(self) -> None:
        await self._in_thread(self._end_repair)

    async def upsert(self, points: Sequence[Point]) -> None:
        await self._in_thread(lambda: self._upsert(points))

    async def delete(self, points: Sequence[PointId]) -> None:
        operation = edge.UpdateOperation.delete_points(list(points))
        await self._in_thread(lambda: self._change(operation, len(points)))

    async def delete_matching(self, match: Mapping[str, str | Sequence[str]]) -> None:
        chosen = edge.Filter(must=[has_value(name, value) for name, value in match.items()])
        operation = edge.UpdateOperation.delete_points_by_filter(chosen)
        await self._in_thread(lambda: self._change(operation, 1))

    async def exchange(self, point: Point, before: Point | None) -> bool:
        """Write the point; no other process changes the index."""
        await self.upsert([point])
        return True

    async def retrieve(
        self,
        points: Sequence[PointId],
        *,
        fields: Sequence[str] | None = None,
        vectors: Sequence[str] = (),
    ) -> list[Point]:
        payload: Any = True if fields is None else list(fields)
        named: Any = list(vectors) or False

        def read() -> list[Point]:
            return [
                read_point(record) for record in self._shard.retrieve(list(points), payload, named)
            ]

        # Tens of points take less than handing them to a thread.
        return self._ask(read) if len(points) <= _FEW else await self._in_thread(read)

    async def scroll(
        self,
        match: Mapping[str, str | Sequence[str]],
        *,
        groups: Collection[str] | None = None,
        fields: Sequence[str] | None = None,
        vectors: bool = False,
        limit: int | None = None,
    ) -> list[Point]:
        chosen = make_filter(match, groups)
        return await self._in_thread(lambda: self._scroll(chosen, fields, vectors, limit))

    async def find_each(
        self,
        field: str,
        values: Sequence[str],
        *,
        limit: int,
        groups: Collection[str] | None = None,
        fields: Sequence[str] = (),
    ) -> list[list[Point]]:
        requests = [
            edge.QueryRequest(
                limit, filter=make_filter({field: value}, groups), with_payload=list(fields)
            )
            for value in values
        ]
        if not requests:
            return []
        points = await self._in_thread(
            lambda: self._shard.query_batch(edge.QueryBatchRequest(requests))
        )
        return [
            [Point(read_id(point.id), point.payload or {}) for point in each] for each in points
        ]

    async def set_fields(self, changes: Sequence[tuple[PointId, Mapping[str, Any]]]) -> None:
        await self._in_thread(lambda: self._set_fields(changes))

    async def prepare_fields(self) -> None:
        known = self._shard.info().payload_schema
        missing = [name for name in layout.NAMED if name not in known]
        await self._in_thread(lambda: index_fields(self._shard, missing))

    async def pages(
        self, match: Mapping[str, str | Sequence[str]], *, fields: Sequence[str]
    ) -> AsyncIterator[Sequence[Point]]:
        chosen, names = make_filter(match, None), list(fields)
        offset: Any = None
        while True:
            request = edge.ScrollRequest(offset, _PAGE, chosen, names)
            records, offset = await self._in_thread(partial(self._shard.scroll, request))
            yield [read_point(record) for record in records]
            if offset is None:
                return

    async def count(
        self, match: Mapping[str, str | Sequence[str]], *, groups: Collection[str] | None = None
    ) -> int:
        request = edge.CountRequest(filter=make_filter(match, groups))
        return await self._in_thread(lambda: self._shard.count(request))

    async def list_values(
        self,
        field: str,
        match: Mapping[str, str | Sequence[str]],
        *,
        groups: Collection[str] | None = None,
    ) -> dict[str, int]:
        chosen = make_filter(match, groups)
        request = edge.FacetRequest(field, limit=_MOST_VALUES, exact=True, filter=chosen)
        response = await self._in_thread(lambda: self._shard.facet(request))
        return {str(hit.value): hit.count for hit in response.hits if hit.count}

    async def query(
        self, queries: Sequence[VectorQuery], *, groups: Collection[str] | None = None
    ) -> list[QueryResult]:
        return await self._in_thread(lambda: self._query(queries, groups))

    def optimize_regularly(self, points: int = POINTS_PER_SEGMENT // 2) -> None:
        self._points_per_optimization = points

    async def optimize(self) -> None:
        await self._in_thread(self._optimize)

    async def copy_to(self, folder: Path) -> bool:
        await self._in_thread(lambda: self._copy(folder))
        return True

    async def close(self) -> None:
        if not self._owner.closed:
            await self._in_thread(self._close)

    def _upsert(self, points: Sequence[Point]) -> None:
        check_space(Path(self.location))
        made = [edge.Point(point.id, make_vectors(point), point.payload) for point in points]
        self._change(edge.UpdateOperation.upsert_points(made), len(made))

    def _set_fields(self, changes: Sequence[tuple[PointId, Mapping[str, Any]]]) -> None:
        for point, fields in changes:
            self._change(edge.UpdateOperation.set_payload([point], dict(fields)), 1)

    def _copy(self, folder: Path) -> None:
        """Copy the files between two changes; the change log lists what they leave incomplete."""
        own = Path(self.location)
        with self._changing:
            self._shard.flush()
            _copy_files(own, folder)

    def _change(self, operation: edge.UpdateOperation, points: int) -> None:
        with self._changing:
            self._apply(operation, points)

    def _apply(self, operation: edge.UpdateOperation, points: int) -> None:
        self._shard.update(operation)
        self._unflushed += points
        self._unoptimized += points
        if self._unflushed >= _POINTS_PER_FLUSH:
            self._flush()
            every = self._points_per_optimization
            if every is not None and self._unoptimized >= every:
                self._optimize()

    def _optimize(self) -> None:
        with self._changing:
            self._shard.optimize()
        self._unoptimized = 0
        return_unused_memory()

    def _flush(self) -> None:
        self._shard.flush()
        self._unflushed = 0
        self._log.keep_last()

    def _end_repair(self) -> None:
        self._shard.flush()
        self._log.forget_interruption()

    def _query(
        self, queries: Sequence[VectorQuery], groups: Collection[str] | None
    ) -> list[QueryResult]:
        batch = edge.QueryBatchRequest([make_request(query, groups) for query in queries])
        scored_points = self._shard.query_batch(batch)
        return [
            read_result(query, points) for query, points in zip(queries, scored_points, strict=True)
        ]

    def _scroll(
        self,
        chosen: edge.Filter,
        fields: Sequence[str] | None,
        vectors: bool,
        limit: int | None,
    ) -> list[Point]:
        payload: Any = True if fields is None else list(fields)
        points: list[Point] = []
        offset: Any = None
        while True:
            page = _PAGE if limit is None else min(_PAGE, limit - len(points))
            request = edge.ScrollRequest(offset, page, chosen, payload, vectors)
            records, offset = self._shard.scroll(request)
            points += [read_point(record) for record in records]
            if offset is None or len(points) == limit:
                return points

    def _close(self) -> None:
        try:
            self._shard.flush()
            self._shard.close()
            self._log.close()
        finally:
            self._owner.close()

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await asyncio.to_thread(self._ask, call)

    def _ask(self, call: Callable[[], T]) -> T:
        if self._owner.closed:
            raise IndexUnavailable(f"the index at {self.location} is closed")
        try:
            return call()
        except IndexUnavailable:
            raise
        except Exception as error:  # the engine raises nothing narrower
            raise IndexUnavailable(f"the index at {self.location} failed: {error}") from error


async def open_embedded(
    folder: Path, identity: Identity, *, name: str | None = None
) -> QdrantIndex:
    """Open the index in a folder, and create it if it does not exist.

    `name` is the name of its folder; by default, it consists of tenant and assistant.

    Raises `IndexOwned` if another process has it open, `IndexUnavailable` if it cannot be read, and
    `IndexMismatch` if a different embedding model wrote it.
    """
    own = folder / (name or layout.namespace(identity.tenant, identity.assistant))
    engine = await asyncio.to_thread(EdgeEngine, own, identity.dimensions)
    index = QdrantIndex(engine, identity)
    try:
        await index.open()
    except BaseException:
        await index.close()
        raise
    return index


def copy_closed(folder: Path, target: Path) -> None:
    """Copy a closed index below a folder; raises `IndexOwned` if a process has it open.

    The original is not changed. Unfinished changes of an interrupted process are repaired in the
    copy.
    """
    try:
        with (folder / "owner").open("rb") as owner:
            fcntl.flock(owner, fcntl.LOCK_SH | fcntl.LOCK_NB)
            _copy_files(folder, target)
    except BlockingIOError as error:
        raise IndexOwned(f"the index at {folder} is open in another process") from error
    except OSError as error:
        raise IndexUnavailable(f"the index at {folder} cannot be copied: {error}") from error


def lock_folder(folder: Path) -> IO[str]:
    """Return the file whose lock grants ownership of an index until it is closed; raises
    `IndexOwned`.
    """
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
            f"the index at {folder} is in use by process {who}: stop that process, or set "
            f"QDRANT_URL so that several processes can share a server"
        ) from error
    owner.truncate(0)
    owner.write(str(os.getpid()))
    owner.flush()
    return owner


def _copy_files(folder: Path, target: Path) -> None:
    ignored = shutil.ignore_patterns("owner")
    shutil.copytree(folder, target / folder.name, ignore=ignored, copy_function=copy_sparse)
