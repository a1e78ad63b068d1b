"""The server index, which uses a Qdrant server that several processes share.

A client from `qdrant-client` is passed in or created from a URL; its local mode runs the same code.
"""

from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from qdrant_client import AsyncQdrantClient, models

from knowledge.errors import IndexUnavailable
from knowledge.index.points import layout
from knowledge.index.points.layout import Point
from knowledge.index.qdrant import Identity, QdrantIndex
from knowledge.index.queries import (
    HNSW_EF,
    PointId,
    QueryResult,
    SparseText,
    VectorQuery,
    read_id,
    read_result,
    read_sparse,
)
from knowledge.index.server.server_collections import ServerCollections, await_answer

T = TypeVar("T")

TIMEOUT_SECONDS = 10
_PAGE = 1000
_BATCH = 200
_MOST_VALUES = 10_000


class ServerEngine:
    """See `knowledge.index.engine.Engine`."""

    shared = True
    was_interrupted = False
    unfinished: Collection[str] | None = ()

    def __init__(
        self,
        client: AsyncQdrantClient,
        identity: Identity,
        location: str,
        collection: str | None = None,
    ) -> None:
        self.location = location
        self._client = client
        self._collections = ServerCollections(client, identity.tenant, identity.assistant, location)
        self._collection = collection or ""
        self._dimensions = identity.dimensions

    @property
    def storage(self) -> str:
        """The name of the collection that an operator removes to remove all points."""
        return f"the collection {self._collection}"

    async def prepare(self) -> None:
        """Create the collection if it is missing; another process may create it first."""
        self._collection = self._collection or await self._collections.find_serving()
        if await self._await_answer(self._client.collection_exists(self._collection)):
            return
        try:
            await self._await_answer(self._create())
        except IndexUnavailable:
            if not await self._await_answer(self._client.collection_exists(self._collection)):
                raise
        keyword = models.PayloadSchemaType.KEYWORD
        for name in layout.INDEXED:
            await self._await_answer(
                self._client.create_payload_index(self._collection, name, keyword)
            )
        await self.prepare_fields()

    async def begin_change(self, documents: Collection[str]) -> None:
        """Do nothing, because a search ignores chunks that are not part of their document's current
        version.
        """

    async def end_repair(self) -> None:
        """Do nothing, because no process repairs points that other processes may be writing."""

    async def upsert(self, points: Sequence[Point]) -> None:
        made = [_make_struct(point) for point in points]
        for start in range(0, len(made), _BATCH):
            batch = made[start : start + _BATCH]
            await self._await_answer(self._client.upsert(self._collection, batch, wait=True))

    async def delete(self, points: Sequence[PointId]) -> None:
        chosen = models.PointIdsList(points=_name(points))
        await self._await_answer(self._client.delete(self._collection, chosen, wait=True))

    async def delete_matching(self, match: Mapping[str, str | Sequence[str]]) -> None:
        chosen = models.FilterSelector(filter=_select(match, None))
        await self._await_answer(self._client.delete(self._collection, chosen, wait=True))

    async def exchange(self, point: Point, before: Point | None) -> bool:
        mode, unchanged = models.UpdateMode.INSERT_ONLY, None
        if before is not None:
            mode, unchanged = models.UpdateMode.UPDATE_ONLY, _select_unchanged(before)
        await self._await_answer(
            self._client.upsert(
                self._collection,
                [_make_struct(point)],
                wait=True,
                update_filter=unchanged,
                update_mode=mode,
            )
        )
        written = await self.retrieve([point.id], fields=["version"])
        return bool(written) and written[0].payload["version"] == point.payload["version"]

    async def retrieve(
        self,
        points: Sequence[PointId],
        *,
        fields: Sequence[str] | None = None,
        vectors: Sequence[str] = (),
    ) -> list[Point]:
        payload = True if fields is None else list(fields)
        records = await self._await_answer(
            self._client.retrieve(
                self._collection,
                _name(points),
                with_payload=payload,
                with_vectors=list(vectors) or False,
            )
        )
        return [_read_point(record) for record in records]

    async def scroll(
        self,
        match: Mapping[str, str | Sequence[str]],
        *,
        groups: Collection[str] | None = None,
        fields: Sequence[str] | None = None,
        vectors: bool = False,
        limit: int | None = None,
    ) -> list[Point]:
        chosen = _select(match, groups)
        payload = True if fields is None else list(fields)
        points: list[Point] = []
        async for page in self._pages(chosen, payload, vectors, limit):
            points += page
        return points

    async def pages(
        self, match: Mapping[str, str | Sequence[str]], *, fields: Sequence[str]
    ) -> AsyncIterator[Sequence[Point]]:
        async for page in self._pages(_select(match, None), list(fields), False, None):
            yield page

    async def find_each(
        self,
        field: str,
        values: Sequence[str],
        *,
        limit: int,
        groups: Collection[str] | None = None,
        fields: Sequence[str] = (),
    ) -> list[list[Point]]:
        points: list[list[Point]] = []
        for start in range(0, len(values), _BATCH):
            requests = [
                models.QueryRequest(
                    filter=_select({field: value}, groups), limit=limit, with_payload=list(fields)
                )
                for value in values[start : start + _BATCH]
            ]
            answers = await self._await_answer(
                self._client.query_batch_points(self._collection, requests)
            )
            points += [
                [Point(read_id(point.id), point.payload or {}) for point in each.points]
                for each in answers
            ]
        return points

    async def set_fields(self, changes: Sequence[tuple[PointId, Mapping[str, Any]]]) -> None:
        for start in range(0, len(changes), _BATCH):
            operations: list[models.UpdateOperation] = [
                models.SetPayloadOperation(
                    # By a filter: a point that was deleted meanwhile is no error then.
                    set_payload=models.SetPayload(payload=dict(fields), filter=_select_id(point))
                )
                for point, fields in changes[start : start + _BATCH]
            ]
            await self._await_answer(
                self._client.batch_update_points(self._collection, operations, wait=True)
            )

    async def prepare_fields(self) -> None:
        schema = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, on_disk=True)
        for name in layout.NAMED:
            await self._await_answer(
                self._client.create_payload_index(self._collection, name, schema)
            )

    async def count(
        self, match: Mapping[str, str | Sequence[str]], *, groups: Collection[str] | None = None
    ) -> int:
        chosen = _select(match, groups)
        counted = await self._await_answer(
            self._client.count(self._collection, count_filter=chosen, exact=True)
        )
        return counted.count

    async def list_values(
        self,
        field: str,
        match: Mapping[str, str | Sequence[str]],
        *,
        groups: Collection[str] | None = None,
    ) -> dict[str, int]:
        chosen = _select(match, groups)
        response = await self._await_answer(
            self._client.facet(
                self._collection, field, facet_filter=chosen, limit=_MOST_VALUES, exact=True
            )
        )
        return {str(hit.value): hit.count for hit in response.hits if hit.count}

    async def query(
        self, queries: Sequence[VectorQuery], *, groups: Collection[str] | None = None
    ) -> list[QueryResult]:
        requests = [_request(query, groups) for query in queries]
        responses = await self._await_answer(
            self._client.query_batch_points(self._collection, requests)
        )
        return [
            read_result(vector_query, each.points)
            for vector_query, each in zip(queries, responses, strict=True)
        ]

    def optimize_regularly(self) -> None:
        """Do nothing: see `optimize`."""

    async def copy_to(self, folder: Path) -> bool:
        return False

    async def optimize(self) -> None:
        """Do nothing, because a server optimizes its collections itself."""

    async def close(self) -> None:
        await self._client.close()

    async def _pages(
        self, chosen: models.Filter, payload: bool | list[str], vectors: bool, limit: int | None
    ) -> AsyncIterator[list[Point]]:
        offset: Any = None
        left = limit
        while True:
            records, offset = await self._await_answer(
                self._client.scroll(
                    self._collection,
                    scroll_filter=chosen,
                    limit=_PAGE if left is None else min(_PAGE, left),
                    offset=offset,
                    with_payload=payload,
                    with_vectors=vectors,
                )
            )
            yield [_read_point(record) for record in records]
            left = None if left is None else left - len(records)
            if offset is None or left == 0:
                return

    async def _create(self) -> bool:
        """Create the collection, with vectors and texts on disk and eight-bit copies of vectors in
        memory.
        """
        sparse = models.SparseVectorParams(
            modifier=models.Modifier.IDF, index=models.SparseIndexParams(on_disk=True)
        )
        dense = models.VectorParams(
            size=self._dimensions,
            distance=models.Distance.COSINE,
            on_disk=True,
            datatype=models.Datatype.FLOAT16,
        )
        return await self._client.create_collection(
            self._collection,
            vectors_config={layout.SEMANTIC: dense},
            sparse_vectors_config=dict.fromkeys(layout.SPARSE, sparse),
            on_disk_payload=True,
            quantization_config=models.ScalarQuantization(
                scalar=models.ScalarQuantizationConfig(
                    type=models.ScalarType.INT8, quantile=0.99, always_ram=True
                )
            ),
        )

    async def _await_answer(self, asked: Awaitable[T]) -> T:
        return await await_answer(asked, self.location)


def connect_server(url: str, *, api_key: str | None = None) -> AsyncQdrantClient:
    """Return a client for the server at a URL, without sending a request."""
    return AsyncQdrantClient(
        url=url, api_key=api_key, timeout=TIMEOUT_SECONDS, check_compatibility=False
    )


async def open_server(
    url: str, identity: Identity, *, api_key: str | None = None, collection: str | None = None
) -> QdrantIndex:
    """Open the index on the server at a URL; raises the same errors as `open_client`."""
    client = connect_server(url, api_key=api_key)
    return await open_client(client, identity, location=url, collection=collection)


async def open_client(
    client: AsyncQdrantClient,
    identity: Identity,
    *,
    location: str,
    collection: str | None = None,
) -> QdrantIndex:
    """Open the index behind a client, and create it if it does not exist; closing the index closes
    the client.

    By default, `collection` is the one in use. Raises `IndexUnavailable` if the server does not
    respond, and `IndexMismatch` if a different embedding model wrote the index.
    """
    engine = ServerEngine(client, identity, location, collection)
    index = QdrantIndex(engine, identity)
    try:
        await engine.prepare()
        await index.open()
    except BaseException:
        await index.close()
        raise
    return index


def _select(
    match: Mapping[str, str | Sequence[str]], groups: Collection[str] | None
) -> models.Filter:
    """Return the filter for points with these values that a person in these groups may read."""
    must: list[models.Condition] = [_match(key, value) for key, value in match.items()]
    if groups is not None:
        public = models.IsEmptyCondition(is_empty=models.PayloadField(key=layout.GROUPS))
        own = [_match(layout.GROUPS, sorted(groups))] if groups else []
        must.append(models.Filter(should=[public, *own]))
    return models.Filter(must=must)


def _request(query: VectorQuery, groups: Collection[str] | None) -> models.QueryRequest:
    vector: Any = query.vector
    if isinstance(vector, SparseText):
        vector = models.SparseVector(indices=vector.terms.tolist(), values=vector.weights.tolist())
    else:
        vector = vector.tolist()
    is_exact = query.points is not None
    must: list[models.Condition] = []
    if query.points is not None:
        must.append(models.HasIdCondition(has_id=_name(query.points)))
    idf: models.IdfCorpusParams | None = None
    if groups is not None:
        must.append(_select({}, groups))
        if isinstance(query.vector, SparseText):
            key, value = layout.POPULATIONS[query.using]
            idf = models.IdfCorpusParams(corpus=_select({key: value}, groups))
    parameters = models.SearchParams(
        hnsw_ef=None if is_exact else HNSW_EF,
        exact=is_exact,
        quantization=models.QuantizationSearchParams(
            ignore=is_exact, rescore=None if is_exact else True
        ),
        idf=idf,
    )
    return models.QueryRequest(
        query=vector,
        using=query.using,
        filter=models.Filter(must=must) if must else None,
        params=parameters,
        limit=query.limit,
        with_payload=list(query.fields) if query.fields else False,
        with_vector=[query.using] if query.returns_text else False,
    )


def _match(key: str, value: str | Sequence[str]) -> models.FieldCondition:
    field, located = layout.locate(key, value)
    if isinstance(located, str):
        return models.FieldCondition(key=field, match=models.MatchValue(value=located))
    return models.FieldCondition(key=field, match=models.MatchAny(any=list(located)))


def _name(points: Collection[PointId]) -> list[models.ExtendedPointId]:
    return [str(point) for point in points]


def _select_id(point: PointId) -> models.Filter:
    return models.Filter(must=[models.HasIdCondition(has_id=_name([point]))])


def _select_unchanged(before: Point) -> models.Filter:
    """Return the filter for a document that has not changed since it was read."""
    must: list[models.Condition] = [
        models.FieldCondition(key=name, match=models.MatchValue(value=before.payload[name]))
        if before.payload.get(name)
        else models.IsEmptyCondition(is_empty=models.PayloadField(key=name))
        for name in layout.STATE
    ]
    return models.Filter(must=must)


def _make_struct(point: Point) -> models.PointStruct:
    return models.PointStruct(id=str(point.id), vector=_make_vectors(point), payload=point.payload)


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
    sparse = {name: read_sparse(vectors[name]) for name in layout.SPARSE if name in vectors}
    return Point(read_id(record.id), record.payload or {}, vectors.get(layout.SEMANTIC), sparse)
