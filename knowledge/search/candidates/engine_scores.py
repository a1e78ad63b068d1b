"""The exact scores of points, which the engine compares with the question.

To read a point with its vectors and terms costs thirty times as much as to have the engine
compare it.
"""

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from knowledge.index.points.layout import CENTRE, KEYWORDS, SEMANTIC, SUMMARY
from knowledge.index.port import ReadableIndex
from knowledge.index.queries import Floats, PointId, QueryResult, SparseText, VectorQuery
from knowledge.search.query import Query


class EngineScores:
    """The scores of the points that were asked for so far, by the vector that was compared."""

    def __init__(self, index: ReadableIndex, query: Query) -> None:
        self._index = index
        self._asked: dict[str, Floats | SparseText] = {}
        if len(query.terms):
            text = SparseText(query.terms, query.weights)
            self._asked |= {KEYWORDS: text, SUMMARY: text}
        if query.vector is not None:
            self._asked |= {SEMANTIC: query.vector, CENTRE: query.vector}
        self._known: dict[str, dict[PointId, float]] = {name: {} for name in self._asked}

    def add(self, using: str, found: QueryResult) -> None:
        """Take over the scores of a query of the same vector."""
        self._known[using].update(found.by_id())

    async def read(self, wanted: Mapping[str, Collection[PointId]]) -> None:
        """Read the scores of points, by the vector to compare, as far as they are not known.

        Points that share no term with the question get 0.
        """
        asked: list[VectorQuery] = []
        for using, points in wanted.items():
            if using in self._asked:
                known = self._known[using]
                missing = [point for point in points if point not in known]
                if missing:
                    known.update(dict.fromkeys(missing, 0.0))
                    asked.append(VectorQuery(using, self._asked[using], len(missing), missing))
        if asked:
            for query, found in zip(asked, await self._index.query(asked), strict=True):
                self.add(query.using, found)

    def of(self, using: str, points: Iterable[PointId]) -> Floats:
        """Return the scores of points; 0 for those that were not asked for."""
        known = self._known.get(using, {})
        return np.array([known.get(point, 0.0) for point in points], dtype=np.float32)
