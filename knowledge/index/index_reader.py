"""Reads documents from an index: all of them, or those that a member of the given groups may
read.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from envelope.question import may_read
from knowledge.documents.page import PictureFile
from knowledge.index.calibration import Calibrations
from knowledge.index.engine import Engine
from knowledge.index.listing import ListedDocument
from knowledge.index.points import layout, point_decoder
from knowledge.index.points.layout import GROUPS, Point
from knowledge.index.port import IndexCounts, IndexedPassage, StoredDocument
from knowledge.index.queries import PointId, QueryResult, StoredPoint, VectorQuery

_DOCUMENTS_AT_ONCE = 256
_CHUNK_FIELDS = ["document", "version", "ordinal", "heading_path", "defined"]
# A document that changes while it is read is read again.
_READS = 5

Revision = Callable[[], Awaitable[str]]


class IndexReader:
    """See `knowledge.index.port.ReadableIndex`.

    `groups` are the groups of the person for whom documents are read; None means that all documents
    are read. The engine filters every list by them, so that other documents do not take part in a
    search. If `restricts` is false, vector queries are not filtered, because no document is
    restricted to a group.
    """

    def __init__(
        self,
        engine: Engine,
        revision: Revision,
        groups: frozenset[str] | None = None,
        *,
        restricts: bool = True,
    ) -> None:
        self._engine = engine
        self._read_revision = revision
        self._groups = groups
        self._filter = groups if restricts else None

    async def revision(self) -> str:
        return await self._read_revision()

    async def groups(self) -> frozenset[str]:
        match = {"kind": "document"}
        return frozenset(await self._engine.list_values(GROUPS, match, groups=self._groups))

    async def versions(self) -> Mapping[str, str]:
        points = await self._documents(["document", "version"])
        return {point.payload["document"]: point.payload["version"] for point in points}

    async def list_documents(
        self, document_ids: Sequence[str] | None = None
    ) -> Sequence[ListedDocument]:
        points = await self._documents(layout.LISTED, document_ids)
        return [point_decoder.list_document(point) for point in points]

    async def languages(self) -> Mapping[str, int]:
        match = {"kind": "document"}
        return await self._engine.list_values("language", match, groups=self._groups)

    async def counts(self) -> IndexCounts:
        return IndexCounts(
            chunks=await self._engine.count({"kind": "chunk"}, groups=self._groups),
            documents=await self._engine.count({"kind": "document"}, groups=self._groups),
            labelled=await self._engine.count({"labelled": "yes"}, groups=self._groups),
            languages=tuple(sorted(await self.languages())),
        )

    async def query(self, queries: Sequence[VectorQuery]) -> Sequence[QueryResult]:
        return await self._engine.query(queries, groups=self._filter) if queries else []

    async def fields_of(
        self, points: Sequence[PointId], fields: Sequence[str]
    ) -> Mapping[PointId, Mapping[str, Any]]:
        wanted = (*fields, GROUPS)
        retrieved = await self._engine.retrieve(points, fields=wanted) if points else []
        return {point.id: point.payload for point in retrieved if self._is_visible(point)}

    async def read_points(
        self, points: Sequence[PointId], fields: Sequence[str], vectors: Sequence[str]
    ) -> Mapping[PointId, StoredPoint]:
        wanted = (*fields, GROUPS)
        retrieved = await self._engine.retrieve(points, fields=wanted, vectors=vectors)
        return {
            point.id: point_decoder.read_stored(point)
            for point in retrieved
            if self._is_visible(point)
        }

    async def has_graph(self) -> bool:
        return bool(await self._engine.retrieve([layout.graph_identity()]))

    async def find_each(
        self, field: str, values: Sequence[str], fields: Sequence[str], limit: int
    ) -> Sequence[Sequence[Mapping[str, Any]]]:
        points = await self._engine.find_each(
            field, values, limit=limit, groups=self._groups, fields=fields
        )
        return [[point.payload for point in each] for each in points]

    async def find_documents(
        self,
        match: Mapping[str, str | Sequence[str]],
        fields: Sequence[str],
        limit: int | None = None,
    ) -> Mapping[PointId, Mapping[str, Any]]:
        every = {"kind": "document", **match}
        points = await self._engine.scroll(every, groups=self._groups, fields=fields, limit=limit)
        return {point.id: point.payload for point in points}

    async def load(self, document_ids: Sequence[str]) -> Sequence[StoredDocument]:
        loaded: list[StoredDocument] = []
        for start in range(0, len(document_ids), _DOCUMENTS_AT_ONCE):
            loaded += await self._load(document_ids[start : start + _DOCUMENTS_AT_ONCE])
        return loaded

    async def passages(self, points: Sequence[PointId]) -> Mapping[PointId, IndexedPassage]:
        retrieved = await self._engine.retrieve(points) if points else []
        # Ids are looked up without a filter; a document may have got groups since it was found.
        return {
            point.id: point_decoder.read_passage(point)
            for point in retrieved
            if self._is_visible(point)
        }

    async def picture(self, document_id: str, picture: str) -> PictureFile | None:
        points = await self._engine.retrieve([layout.picture_identity(document_id, picture)])
        for point in points:
            if self._is_visible(point):
                return PictureFile(picture, point.payload["media_type"], point.payload["data"])
        return None

    async def calibrations(self) -> Calibrations:
        points = await self._engine.retrieve([layout.calibration_identity()])
        return point_decoder.read_calibrations(points[0]) if points else {}

    def _is_visible(self, point: Point) -> bool:
        return self._groups is None or may_read(point.payload.get(GROUPS, ()), self._groups)

    async def _load(self, document_ids: Sequence[str]) -> list[StoredDocument]:
        whole: list[StoredDocument] = []
        wanted = list(document_ids)
        for _ in range(_READS):
            if not wanted:
                break
            complete, wanted = await self._read(wanted)
            whole += complete
        return whole

    async def _read(self, document_ids: list[str]) -> tuple[list[StoredDocument], list[str]]:
        """Return the documents that were read completely, and those that changed in the
        meantime.
        """
        own = await self._engine.scroll(
            {"kind": "document", "document": document_ids}, groups=self._groups, vectors=True
        )
        chunks: dict[str, list[Point]] = defaultdict(list)
        match = {"kind": "chunk", "document": document_ids}
        for chunk in await self._engine.scroll(
            match, groups=self._groups, fields=_CHUNK_FIELDS, vectors=True
        ):
            chunks[chunk.payload["document"]].append(chunk)
        whole: list[StoredDocument] = []
        changed: list[str] = []
        for point in own:
            name = point.payload["document"]
            document = point_decoder.read_document(point, chunks[name])
            if document is not None:
                whole.append(document)
            else:
                changed.append(name)
        return whole, changed

    async def _documents(
        self, fields: Sequence[str], document_ids: Sequence[str] | None = None
    ) -> Sequence[Point]:
        match: dict[str, str | Sequence[str]] = {"kind": "document"}
        if document_ids is not None:
            match["document"] = document_ids
        return await self._engine.scroll(match, groups=self._groups, fields=fields)
