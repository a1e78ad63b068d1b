"""The query of a vector: the request of a search to the engine, and its result."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Terms = npt.NDArray[np.uint32]
PointId = UUID
"""The name of a point; the embedded engine takes and gives it faster than its text."""


@dataclass(frozen=True, slots=True)
class SparseText:
    """A text in the form of BM25: hashed terms and their saturated frequencies, without IDF."""

    terms: Terms
    weights: Floats


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The points that a query found, best first; `payloads` and `texts` are empty if not asked."""

    ids: Sequence[PointId]
    scores: Floats
    payloads: Sequence[Mapping[str, Any]] = ()
    texts: Sequence[SparseText] = ()

    def by_id(self) -> dict[PointId, float]:
        """Return the scores by the ids of the points."""
        return dict(zip(self.ids, self.scores.tolist(), strict=True))


NOTHING_FOUND = QueryResult((), np.zeros(0, dtype=np.float32))
_TERM_DIGITS = 3
HNSW_EF = 160
"""The candidates that an engine looks at in its graph, more than any search asks for."""


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """Asks for the points whose vector `using` is nearest to `vector`, best first.

    `points` restricts it to the points with these ids, whose scores are exact. `fields` are the
    fields of the payload to return; with `returns_text` the sparse vector is returned too.
    """

    using: str
    vector: Floats | SparseText
    limit: int
    points: Collection[PointId] | None = None
    fields: Sequence[str] = ()
    returns_text: bool = False


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point with the requested fields of its payload and the requested texts, by name."""

    payload: Mapping[str, Any]
    texts: Mapping[str, SparseText]


class ScoredPoint(Protocol):
    """A point that an engine found; both engines have the same attributes."""

    @property
    def id(self) -> Any: ...

    @property
    def score(self) -> float: ...

    @property
    def payload(self) -> Mapping[str, Any] | None: ...

    @property
    def vector(self) -> Any: ...


def read_result(query: VectorQuery, points: Sequence[ScoredPoint]) -> QueryResult:
    """Return the result of an engine for a query."""
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
    """Return the name of a point of an engine; a server gives it as a text."""
    return value if isinstance(value, UUID) else UUID(str(value))


def read_sparse(vector: Any) -> SparseText:
    """Return a sparse vector of an engine, which has `indices` and `values`."""
    indices = np.array(vector.indices, dtype=np.uint32)
    return SparseText(indices, np.array(vector.values, dtype=np.float32))
