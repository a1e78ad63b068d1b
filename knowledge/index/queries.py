"""The vector query, with which a search requests points from the engine, and its result."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Terms = npt.NDArray[np.uint32]
PointId = UUID
"""The id of a point; the embedded engine handles this type faster than text."""


@dataclass(frozen=True, slots=True)
class SparseText:
    """A text in BM25 form: hashed terms with saturated frequencies, without IDF."""

    terms: Terms
    weights: Floats


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The points found by a query, best first; `payloads` and `texts` are empty if not
    requested.
    """

    ids: Sequence[PointId]
    scores: Floats
    payloads: Sequence[Mapping[str, Any]] = ()
    texts: Sequence[SparseText] = ()

    def by_id(self) -> dict[PointId, float]:
        """Return the scores by point id."""
        return dict(zip(self.ids, self.scores.tolist(), strict=True))


NOTHING_FOUND = QueryResult((), np.zeros(0, dtype=np.float32))
_TERM_DIGITS = 3
HNSW_EF = 160
"""The number of candidates that an engine considers in its graph, which is more than any search
requests.
"""


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """Requests the points whose vector `using` is nearest to `vector`, best first.

    `points` restricts the query to points with these ids, whose scores are exact. `fields` contains
    the payload fields to return; if `returns_text` is true, the sparse vector is returned as well.
    """

    using: str
    vector: Floats | SparseText
    limit: int
    points: Collection[PointId] | None = None
    fields: Sequence[str] = ()
    returns_text: bool = False


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point with the requested fields of its payload, and the requested texts by name."""

    payload: Mapping[str, Any]
    texts: Mapping[str, SparseText]


class ScoredPoint(Protocol):
    """A point found by an engine; both engines use the same attributes."""

    @property
    def id(self) -> Any: ...

    @property
    def score(self) -> float: ...

    @property
    def payload(self) -> Mapping[str, Any] | None: ...

    @property
    def vector(self) -> Any: ...


def read_result(query: VectorQuery, points: Sequence[ScoredPoint]) -> QueryResult:
    """Return the result of a query, converted from the engine's points."""
    if not points:
        return NOTHING_FOUND
    scores = np.array([point.score for point in points], dtype=np.float32)
    return QueryResult(
        ids=[read_id(point.id) for point in points],
        # The order in which the engine adds up terms depends on texts that a person may not read.
        scores=scores.round(_TERM_DIGITS) if isinstance(query.vector, SparseText) else scores,
        payloads=[point.payload or {} for point in points] if query.fields else (),
        texts=[read_sparse(point.vector[query.using]) for point in points]
        if query.returns_text
        else (),
    )


def read_id(value: Any) -> PointId:
    """Return the id of a point from an engine; a server returns it as text."""
    return value if isinstance(value, UUID) else UUID(str(value))


def read_sparse(vector: Any) -> SparseText:
    """Return a sparse vector from an engine, which has `indices` and `values`."""
    indices = np.array(vector.indices, dtype=np.uint32)
    return SparseText(indices, np.array(vector.values, dtype=np.float32))
