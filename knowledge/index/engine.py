"""The port to Qdrant, in this process or on a server."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from knowledge.index.points.layout import Point
from knowledge.index.queries import PointId, QueryResult, VectorQuery


class Engine(Protocol):
    """One collection of points; every call raises `IndexUnavailable` if Qdrant does not answer.

    `shared`: other processes may change the points too; `was_interrupted`: the last process was
    killed after a change, perhaps between changes that belong together. `unfinished` are the
    documents that it may have left incomplete; None if unknown. `storage` names what an operator
    removes to remove all points.
    """

    location: str
    shared: bool

    @property
    def was_interrupted(self) -> bool: ...

    @property
    def unfinished(self) -> Collection[str] | None: ...

    @property
    def storage(self) -> str: ...

    async def begin_change(self, documents: Collection[str]) -> None:
        """Record the documents whose points are going to change, for a restart after a kill."""
        ...

    async def end_repair(self) -> None:
        """Record that the changes of an interrupted process have been repaired."""
        ...

    async def upsert(self, points: Sequence[Point]) -> None: ...

    async def delete(self, points: Sequence[PointId]) -> None: ...

    async def delete_matching(self, match: Mapping[str, str | Sequence[str]]) -> None:
        """Delete all points that `scroll` would return."""
        ...

    async def exchange(self, point: Point, before: Point | None) -> bool:
        """Write the point of a document if it still is as it was read; return whether it was.

        `before` is the point with the fields `layout.STATE`, or None if there was none.
        """
        ...

    async def retrieve(
        self,
        points: Sequence[PointId],
        *,
        fields: Sequence[str] | None = None,
        vectors: Sequence[str] = (),
    ) -> Sequence[Point]:
        """Return payloads and the named vectors; points that are not there are left out."""
        ...

    async def scroll(
        self,
        match: Mapping[str, str | Sequence[str]],
        *,
        groups: Collection[str] | None = None,
        fields: Sequence[str] | None = None,
        vectors: bool = False,
        limit: int | None = None,
    ) -> Sequence[Point]:
        """Return all points whose payload has these values, or one of several.

        With `groups`, only the points without groups and those with one of these; with `limit`,
        the first ones by id.
        """
        ...

    def pages(
        self, match: Mapping[str, str | Sequence[str]], *, fields: Sequence[str]
    ) -> AsyncIterator[Sequence[Point]]:
        """Yield some fields of the points that `scroll` would return, at most 1,000 at once."""
        ...

    async def find_each(
        self,
        field: str,
        values: Sequence[str],
        *,
        limit: int,
        groups: Collection[str] | None = None,
        fields: Sequence[str] = (),
    ) -> Sequence[Sequence[Point]]:
        """Return for each value at most `limit` points that have it in an indexed field."""
        ...

    async def set_fields(self, changes: Sequence[tuple[PointId, Mapping[str, Any]]]) -> None:
        """Set fields of points and leave their other fields; unknown points are ignored."""
        ...

    async def prepare_fields(self) -> None:
        """Index the fields `layout.NAMED` where an earlier version made the index."""
        ...

    async def count(
        self, match: Mapping[str, str | Sequence[str]], *, groups: Collection[str] | None = None
    ) -> int:
        """Return the number of points that `scroll` would return."""
        ...

    async def list_values(
        self,
        field: str,
        match: Mapping[str, str | Sequence[str]],
        *,
        groups: Collection[str] | None = None,
    ) -> Mapping[str, int]:
        """Return the values of an indexed field of the points that `scroll` would return.

        Each has its number of points.
        """
        ...

    async def query(
        self, queries: Sequence[VectorQuery], *, groups: Collection[str] | None = None
    ) -> Sequence[QueryResult]:
        """Answer queries together, in their order.

        With `groups`, other points take no part: neither as results nor in the IDF of a term.
        """
        ...

    def optimize_regularly(self) -> None:
        """Build them during writes too, so that memory does not grow with the points."""
        ...

    async def copy_to(self, folder: Path) -> bool:
        """Copy the files of the index below `folder`; return False if a server has them."""
        ...

    async def optimize(self) -> None:
        """Build the search structures of the points that were written."""
        ...

    async def close(self) -> None: ...
