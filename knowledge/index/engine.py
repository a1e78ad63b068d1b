"""The port to Qdrant, in this process or on a server."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from knowledge.index.points.layout import Point
from knowledge.index.queries import PointId, QueryResult, VectorQuery


class Engine(Protocol):
    """One collection of points. Every call raises `IndexUnavailable` if Qdrant does not respond.

    `shared` is true if other processes may change the points as well. `was_interrupted` is true if
    the last process was killed after a change, possibly between changes that belong together.
    `unfinished` contains the documents that it may have left incomplete, or is None if they are
    unknown. `storage` names what an operator has to remove to remove all points.
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
        """Record the documents whose points are about to change, for a restart after a kill."""
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
        """Write the point of a document if it has not changed since it was read; return whether it
        was written.

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
        """Return payloads and the named vectors; points that do not exist are omitted."""
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
        """Return all points whose payload has these values; for a list, any of the values may
        match.

        If `groups` is given, only points without groups and points with one of these groups are
        returned; if `limit` is given, only the first ones by id.
        """
        ...

    def pages(
        self, match: Mapping[str, str | Sequence[str]], *, fields: Sequence[str]
    ) -> AsyncIterator[Sequence[Point]]:
        """Yield the selected fields of the points that `scroll` would return, in batches of at most
        1,000.
        """
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
        """Return, for each value, at most `limit` points that have it in an indexed field."""
        ...

    async def set_fields(self, changes: Sequence[tuple[PointId, Mapping[str, Any]]]) -> None:
        """Set fields of points without changing their other fields; unknown points are ignored."""
        ...

    async def prepare_fields(self) -> None:
        """Create the indexes for the fields `layout.NAMED` if an earlier version created the
        collection.
        """
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
        """Return the values of an indexed field in the points that `scroll` would return.

        Each value is mapped to its number of points.
        """
        ...

    async def query(
        self, queries: Sequence[VectorQuery], *, groups: Collection[str] | None = None
    ) -> Sequence[QueryResult]:
        """Run several queries together, and return the results in order.

        If `groups` is given, other points are excluded, both from the results and from the IDF of a
        term.
        """
        ...

    def optimize_regularly(self) -> None:
        """Build the search index during writes as well, so that memory does not grow with the
        number of points.
        """
        ...

    async def copy_to(self, folder: Path) -> bool:
        """Copy the files of the index below `folder`; return False if they are on a server."""
        ...

    async def optimize(self) -> None:
        """Build the search index for the points that were written."""
        ...

    async def close(self) -> None: ...
