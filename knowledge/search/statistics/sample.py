"""A sample of the corpus: how scores are distributed over all chunks, at any size of it.

The levels' scores are compared as z-scores over all chunks. A search sees only its candidates, so
the mean and the deviation come from a random sample, for BM25 together with the best scores that
the engine found. A corpus that is no larger than the sample is measured exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from knowledge.index.port import IndexSample
from knowledge.index.queries import Floats, SparseText
from knowledge.search.statistics.postings import Postings

CHUNKS = 2048
DOCUMENTS = 1024


@dataclass(frozen=True, slots=True)
class Moments:
    """The mean and the standard deviation of a score over all chunks."""

    mean: float
    deviation: float

    def standardise(self, values: Floats) -> Floats:
        """Return z-scores; nothing but zeros when all chunks are alike."""
        if self.deviation < 1e-9:
            return np.zeros_like(values)
        standard: Floats = (values - np.float32(self.mean)) / np.float32(self.deviation)
        return standard


class CorpusSample:
    """The vectors and terms of some chunks and documents; `size` is the number of all chunks."""

    def __init__(self, sample: IndexSample, size: int) -> None:
        self.size = size
        self.chunks = len(sample.chunks)
        self.vectors = _stack([chunk.vector for chunk in sample.chunks])
        self.keywords = Postings([chunk.keywords for chunk in sample.chunks])
        self.crumbs = tuple((one.crumbs, one.language) for one in sample.documents)
        self.letters = "".join(
            sorted({letter for one in sample.documents for letter in one.letters})
        )
        self._centres = _stack([one.centre for one in sample.documents])
        self._summaries = Postings([one.summary for one in sample.documents])
        weights = np.array([one.chunks for one in sample.documents], dtype=np.float64)
        self._shares = weights / max(float(weights.sum()), 1.0)

    @property
    def is_whole(self) -> bool:
        """Whether every chunk is in the sample."""
        return self.chunks >= self.size

    def frequency(self, term: int) -> float:
        """Return about how many of all chunks contain a term."""
        found = len(self.keywords.rows_of(np.uint32(term)))
        if self.is_whole or not self.chunks:
            return float(found)
        return max(found, 0.5) * self.size / self.chunks

    def measure_cosines(self, vector: Floats) -> Moments:
        """Return the moments of the chunks' cosines with a vector."""
        return _measure(cosines(self.vectors, vector))

    def measure_centres(self, vector: Floats) -> Moments:
        """Return the moments of the cosines of the documents' centres, each once per chunk."""
        return self._weigh(cosines(self._centres, vector))

    def measure_summaries(self, text: SparseText, documents: int) -> Moments:
        """Return the moments of the BM25 of the summaries of `documents`, each once per chunk."""
        scale = documents / max(self._summaries.count, 1)
        found = [len(self._summaries.rows_of(term)) for term in text.terms]
        count = np.maximum(np.array(found, dtype=np.float32), 0.5 if scale > 1 else 0.0) * scale
        idf = np.log1p(np.maximum(documents - count + 0.5, 0.0) / (count + 0.5))
        return self._weigh(self._summaries.scores(text.terms, text.weights * idf))

    def measure_keywords(self, text: SparseText, idf: Floats, best: Floats, asked: int) -> Moments:
        """Return the moments of the chunks' BM25.

        `best` are the highest scores of all chunks, at most `asked`.
        """
        scores = self.keywords.scores(text.terms, text.weights * idf)
        if self.is_whole or not self.chunks:
            return _measure(scores)
        rest = max(self.size - len(best), 0)
        below = scores[scores < best[-1]] if len(best) >= asked else scores[:0]
        below = below if len(below) else np.zeros(1, dtype=np.float32)
        high, below = best.astype(np.float64), below.astype(np.float64)
        mean = (high.sum() + rest * below.mean()) / self.size
        square = ((high**2).sum() + rest * (below**2).mean()) / self.size
        return Moments(float(mean), float(max(square - mean**2, 0.0)) ** 0.5)

    def _weigh(self, scores: Floats) -> Moments:
        if not len(scores):
            return Moments(0.0, 0.0)
        mean = float(self._shares @ scores)
        return Moments(mean, float(self._shares @ (scores.astype(np.float64) - mean) ** 2) ** 0.5)


def cosines(vectors: Floats, vector: Floats) -> Floats:
    """Return the products of all rows with one vector.

    `einsum` takes one thread: a product shared between threads waits for the slower one, up to a
    hundred times as long on a busy machine.
    """
    if not len(vectors):
        return np.zeros(0, dtype=np.float32)
    products: Floats = np.einsum("ij,j->i", vectors, vector)
    return products


def _measure(values: Floats) -> Moments:
    return Moments(float(values.mean()), float(values.std())) if len(values) else Moments(0.0, 0.0)


def _stack(vectors: Sequence[Floats]) -> Floats:
    return np.stack(vectors) if vectors else np.zeros((0, 0), dtype=np.float32)
