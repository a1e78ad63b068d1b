"""Reads documents of an index: all of them, or those that a person of some groups may read."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence

from envelope.question import may_read
from knowledge.index import layout
from knowledge.index.calibration import Calibrations
from knowledge.index.engine import Engine
from knowledge.index.layout import GROUPS, Point
from knowledge.index.listing import ListedDocument
from knowledge.index.port import Passage, StoredDocument

_DOCUMENTS_AT_ONCE = 256
# A document that changes while it is read is read again.
_READS = 5

Revision = Callable[[], Awaitable[str]]


class IndexReader:
    """See `knowledge.index.port.ReadableIndex`.

    `groups` are those of the person for whom documents are read; None: all documents are read. The
    engine filters every list by them, so that no other document takes part in a search.
    """

    def __init__(
        self, engine: Engine, revision: Revision, groups: frozenset[str] | None = None
    ) -> None:
        self._engine = engine
        self._read_revision = revision
        self._groups = groups

    async def revision(self) -> str:
        return await self._read_revision()

    async def groups(self) -> frozenset[str]:
        found = await self._documents([GROUPS])
        return frozenset(group for point in found for group in point.payload.get(GROUPS, ()))

    async def versions(self) -> Mapping[str, str]:
        found = await self._documents(["document", "version"])
        return {point.payload["document"]: point.payload["version"] for point in found}

    async def list_documents(
        self, document_ids: Sequence[str] | None = None
    ) -> Sequence[ListedDocument]:
        found = await self._documents(layout.LISTED, document_ids)
        return [layout.list_document(point) for point in found]

    async def languages(self) -> Mapping[str, int]:
        found = await self._documents(["language"])
        return Counter(str(point.payload["language"]) for point in found)

    async def load(self, document_ids: Sequence[str]) -> Sequence[StoredDocument]:
        loaded: list[StoredDocument] = []
        for start in range(0, len(document_ids), _DOCUMENTS_AT_ONCE):
            loaded += await self._load(document_ids[start : start + _DOCUMENTS_AT_ONCE])
        return loaded

    async def passages(self, points: Sequence[str]) -> Mapping[str, Passage]:
        found = await self._engine.retrieve(points) if points else []
        # Ids are looked up without a filter; a document may have got groups since it was found.
        return {point.id: layout.passage(point) for point in found if self._is_visible(point)}

    async def calibrations(self) -> Calibrations:
        found = await self._engine.retrieve([layout.calibration_identity()])
        return layout.read_calibrations(found[0]) if found else {}

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
        """Return the documents that were read completely, and those that changed meanwhile."""
        own = await self._engine.scroll(
            {"kind": "document", "document": document_ids}, groups=self._groups, vectors=True
        )
        chunks: dict[str, list[Point]] = defaultdict(list)
        match = {"kind": "chunk", "document": document_ids}
        fields = ["document", "version", "ordinal", "heading_path", "defined"]
        for chunk in await self._engine.scroll(
            match, groups=self._groups, fields=fields, vectors=True
        ):
            chunks[chunk.payload["document"]].append(chunk)
        whole: list[StoredDocument] = []
        changed: list[str] = []
        for point in own:
            name = point.payload["document"]
            document = layout.read_document(point, chunks[name])
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
