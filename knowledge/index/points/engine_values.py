"""Converts points, filters, and queries to the values of the embedded engine, and back."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import qdrant_edge as edge

from knowledge.index.points import layout
from knowledge.index.points.layout import Point
from knowledge.index.queries import HNSW_EF, SparseText, VectorQuery, read_id, read_sparse


def make_filter(
    match: Mapping[str, str | Sequence[str]], groups: Collection[str] | None
) -> edge.Filter:
    """Return the filter for points with these values that a person in these groups may read."""
    must: list[Any] = [has_value(key, value) for key, value in match.items()]
    if groups is not None:
        public = edge.IsEmptyCondition(layout.GROUPS)
        own = [has_value(layout.GROUPS, sorted(groups))] if groups else []
        must.append(edge.Filter(should=[public, *own]))
    return edge.Filter(must=must)


def make_request(query: VectorQuery, groups: Collection[str] | None) -> edge.QueryRequest:
    """Return a query request that finds only points which these groups may read."""
    vector: Any = query.vector
    if isinstance(vector, SparseText):
        vector = edge.SparseVector(vector.terms.tolist(), vector.weights.tolist())
    else:
        vector = vector.tolist()
    is_exact = query.points is not None
    must: list[Any] = [] if query.points is None else [edge.HasIdCondition(set(query.points))]
    idf: Any = None
    if groups is not None:
        must.append(make_filter({}, groups))
        if isinstance(query.vector, SparseText):
            key, value = layout.POPULATIONS[query.using]
            idf = edge.IdfParams(corpus=make_filter({key: value}, groups))
    parameters = edge.SearchParams(
        hnsw_ef=None if is_exact else HNSW_EF,
        exact=is_exact,
        quantization=edge.QuantizationSearchParams(
            ignore=is_exact, rescore=None if is_exact else True
        ),
        idf=idf,
    )
    return edge.QueryRequest(
        query.limit,
        query=edge.Query.Nearest(vector, query.using),
        filter=edge.Filter(must=must) if must else None,
        params=parameters,
        with_payload=list(query.fields) if query.fields else False,
        with_vector=[query.using] if query.returns_text else False,
    )


def has_value(key: str, value: str | Sequence[str]) -> edge.FieldCondition:
    """Return the condition that a field has this value, or one of these values."""
    field, located = layout.locate(key, value)
    match: Any = (
        edge.MatchValue(located) if isinstance(located, str) else edge.MatchAny(list(located))
    )
    return edge.FieldCondition(field, match=match)


def make_vectors(point: Point) -> Any:
    """Return the vectors of a point by name."""
    vectors: dict[str, Any] = {
        name: edge.SparseVector(text.terms.tolist(), text.weights.tolist())
        for name, text in point.sparse.items()
    }
    if point.dense is not None:
        vectors[layout.SEMANTIC] = list(point.dense)
    return vectors


def read_point(record: edge.Record) -> Point:
    """Return a point as stored in the engine."""
    vectors: Any = record.vector
    if not vectors:
        return Point(read_id(record.id), record.payload or {})
    sparse = {name: read_sparse(vectors[name]) for name in layout.SPARSE if name in vectors}
    return Point(read_id(record.id), record.payload or {}, vectors.get(layout.SEMANTIC), sparse)
