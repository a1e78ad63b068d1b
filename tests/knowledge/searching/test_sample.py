from uuid import UUID

import numpy as np

from knowledge.index.port import IndexSample, StoredChunk
from knowledge.index.queries import Floats, SparseText
from knowledge.search.statistics.sample import CorpusSample

TERM = np.array([7], dtype=np.uint32)
ONE = np.ones(1, dtype=np.float32)


def chunk(at: int, weight: float) -> StoredChunk:
    terms = TERM if weight else TERM[:0]
    text = SparseText(terms, np.full(len(terms), weight, dtype=np.float32))
    return StoredChunk(UUID(int=at), at, (), (), np.zeros(2, dtype=np.float32), text)


def sample_of(weights: Floats, size: int) -> CorpusSample:
    chunks = [chunk(at, float(weight)) for at, weight in enumerate(weights)]
    return CorpusSample(IndexSample(chunks, []), size)


def test_a_sample_with_the_best_scores_measures_a_corpus_like_all_of_it() -> None:
    """One chunk in a thousand scores high: a sample alone would miss most of them."""
    scores = np.random.default_rng(5).random(100_000).astype(np.float32)
    scores[::1000] += 40
    best = np.sort(scores)[::-1][:300]

    found = sample_of(scores[7::50], len(scores)).measure_keywords(
        SparseText(TERM, ONE), ONE, best, asked=300
    )

    assert abs(found.mean - scores.mean()) < 0.02
    assert abs(found.deviation - scores.std()) < 0.02


def test_a_corpus_no_larger_than_the_sample_is_measured_exactly() -> None:
    scores = np.array([0, 1, 2, 5], dtype=np.float32)

    found = sample_of(scores, 4).measure_keywords(SparseText(TERM, ONE), ONE, scores[:1], asked=1)

    assert (found.mean, found.deviation) == (scores.mean(), scores.std())


def test_a_term_that_a_sample_lacks_is_rare_but_not_unknown() -> None:
    sample = sample_of(np.zeros(10, dtype=np.float32), 1000)

    assert 0 < sample.frequency(7) < 100
    assert sample_of(np.zeros(10, dtype=np.float32), 10).frequency(7) == 0
