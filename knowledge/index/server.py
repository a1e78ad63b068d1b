"""The server index: a Qdrant server that several processes share.

A client of `qdrant-client` is handed in or made from a URL; its local mode runs the same code.
"""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import httpx
import numpy as np
from grpc import RpcError
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import ApiException

from knowledge.errors import IndexUnavailable
from knowledge.index import layout
from knowledge.index.layout import Point
from knowledge.index.port import SparseText
from knowledge.index.qdrant import Identity, QdrantIndex

T = TypeVar("T")

TIMEOUT_SECONDS = 10
_PAGE = 1000
_BATCH = 200
_INDEXED = ("kind", "document", "root", layout.GROUPS)
_CLIENT_ERRORS = (ApiException, httpx.HTTPError, RpcError, OSError, RuntimeError, ValueError)
"""What `qdrant-client` raises: its local mode `ValueError` and `RuntimeError`."""


async def open_server(url: str, identity: Identity, *, api_key: str | None = None) -> QdrantIndex:
    """Open the index on the server at a URL; raises as `open_client`."""
    client = AsyncQdrantClient(
        url=url, api_key=api_key, timeout=TIMEOUT_SECONDS, check_compatibility=False
    )
    return await open_client(client, identity, location=url)


async def open_client(
    client: AsyncQdrantClient, identity: Identity, *, location: str
) -> QdrantIndex:
    """Open the index behind a client, making it when there is none; closing it closes the client.

    Raises `IndexUnavailable` when the server does not answer, `IndexMismatch` when another
    embedding model wrote the index.
    """
    engine = ServerEngine(client, identity, location)
    index = QdrantIndex(engine, identity)
    try:
        await engine.prepare()
        await index.open()
    except BaseException:
        await index.close()
        raise
    return index


class ServerEngine:
    """See `knowledge.index.engine.Engine`."""

    shared = True
    was_interrupted = False

    def __init__(self, client: AsyncQdrantClient, identity: Identity, location: str) -> None:
        self.location = location
        self._client = client
        self._collection = f"refdesk-{layout.namespace(identity.tenant, identity.assistant)}"
        self._dimensions = identity.dimensions

    async def prepare(self) -> None:
        """Create the collection if it is missing; another process may create it first."""
        if await self._await_answer(self._client.collection_exists(self._collection)):
            return
        try:
            await self._await_answer(self._create())
        except IndexUnavailable:
            if not await self._await_answer(self._client.collection_exists(self._collection)):
                raise
        for name in _INDEXED:
            await self._await_answer(
                self._client.create_payload_index(
                    self._collection, name, models.PayloadSchemaType.KEYWORD
                )
            )

    async def upsert(self, points: Sequence[Point]) -> None:
        made = [
            models.PointStruct(id=point.id, vector=_make_vectors(point), payload=point.payload)
            for point in points
        ]
        for start in range(0, len(made), _BATCH):
            batch = made[start : start + _BATCH]
            await self._await_answer(self._client.upsert(self._collection, batch, wait=True))

    async def delete(self, points: Sequence[str]) -> None:
        chosen = models.PointIdsList(points=list(points))
        await self._await_answer(self._client.delete(self._collection, chosen, wait=True))

    async def delete_chunks(
        self, documents: Collection[str], *, but_version: str | None = None
    ) -> None:
        excluded: list[models.Condition] = []
        if but_version is not None:
            excluded.append(_match("version", but_version))
        chosen = models.FilterSelector(
            filter=models.Filter(
                must=[_match("kind", "chunk"), _match("document", list(documents))],
                must_not=excluded,
            )
        )
        await self._await_answer(self._client.delete(self._collection, chosen, wait=True))

    async def retrieve(self, points: Sequence[str]) -> list[Point]:
        found = await self._await_answer(
            self._client.retrieve(self._collection, list(points), with_vectors=False)
        )
        return [_read_point(record) for record in found]

    async def scroll(
        self,
        match: Mapping[str, str | Sequence[str]],
        *,
        groups: Collection[str] | None = None,
        fields: Sequence[str] | None = None,
        vectors: bool = False,
    ) -> list[Point]:
        chosen = _select(match, groups)
        found: list[Point] = []
        offset: Any = None
        while True:
            records, offset = await self._await_answer(
                self._client.scroll(
                    self._collection,
                    scroll_filter=chosen,
                    limit=_PAGE,
                    offset=offset,
                    with_payload=True if fields is None else list(fields),
                    with_vectors=vectors,
                )
            )
            found += [_read_point(record) for record in records]
            if offset is None:
                return found

    async def close(self) -> None:
        await self._client.close()

    async def _create(self) -> bool:
        sparse = models.SparseVectorParams(modifier=models.Modifier.IDF)
        return await self._client.create_collection(
            self._collection,
            vectors_config={
                layout.SEMANTIC: models.VectorParams(
                    size=self._dimensions, distance=models.Distance.COSINE
                )
            },
            sparse_vectors_config=dict.fromkeys(layout.SPARSE, sparse),
        )

    async def _await_answer(self, asked: Awaitable[T]) -> T:
        try:
            return await asked
        except _CLIENT_ERRORS as error:
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise IndexUnavailable(
                f"the Qdrant server at {self.location} does not answer: {reason}"
            ) from error


def _select(
    match: Mapping[str, str | Sequence[str]], groups: Collection[str] | None
) -> models.Filter:
    """Return the filter for points with these values that a person of these groups may read."""
    must: list[models.Condition] = [_match(key, value) for key, value in match.items()]
    if groups is not None:
        public = models.IsEmptyCondition(is_empty=models.PayloadField(key=layout.GROUPS))
        own = [_match(layout.GROUPS, sorted(groups))] if groups else []
        must.append(models.Filter(should=[public, *own]))
    return models.Filter(must=must)


def _match(key: str, value: str | Sequence[str]) -> models.FieldCondition:
    if isinstance(value, str):
        return models.FieldCondition(key=key, match=models.MatchValue(value=value))
    return models.FieldCondition(key=key, match=models.MatchAny(any=list(value)))


def _make_vectors(point: Point) -> dict[str, Any]:
    vectors: dict[str, Any] = {
        name: models.SparseVector(indices=text.terms.tolist(), values=text.weights.tolist())
        for name, text in point.sparse.items()
    }
    if point.dense is not None:
        vectors[layout.SEMANTIC] = list(point.dense)
    return vectors


def _read_point(record: models.Record) -> Point:
    vectors: Any = record.vector or {}
    sparse = {
        name: SparseText(
            np.array(vectors[name].indices, np.uint32), np.array(vectors[name].values, np.float32)
        )
        for name in layout.SPARSE
        if name in vectors
    }
    return Point(str(record.id), record.payload or {}, vectors.get(layout.SEMANTIC), sparse)
