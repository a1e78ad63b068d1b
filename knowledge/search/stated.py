"""Weighs the metadata that a source states about a page: an author's words for it."""

import numpy as np

from knowledge.index.points import layout
from knowledge.index.points.layout import document_identity
from knowledge.index.port import ReadableIndex
from knowledge.index.queries import Floats, SparseText, Terms, VectorQuery
from knowledge.search.candidates.found_candidates import Candidates
from knowledge.search.query import Query
from knowledge.search.statistics.corpus import CorpusView


async def find_stated(
    index: ReadableIndex, candidates: Candidates, query: Query, view: CorpusView
) -> Floats:
    """Return for the first chunk of each page how much of the question its metadata alone has.

    The value is the share of the question's terms, by IDF, that the metadata adds to the page's
    text, 0 to 1, of the best wording. A term counts the less, the more other chunks contain it.
    Chunks other than the first one of a page have 0.
    """
    stated = np.zeros(len(candidates), dtype=np.float32)
    texts = [text for phrase in query.phrases if (text := _weigh(phrase, view)) is not None]
    if not texts:
        return stated
    firsts = {
        document_identity(chunk.document_id): number
        for number, chunk in enumerate(candidates.chunks)
        if chunk.ordinal == 0
    }
    if not firsts:
        return stated
    found = await index.query(
        [VectorQuery(layout.LABELS, text, len(firsts), list(firsts)) for text in texts]
    )
    for result in found:
        for point, share in result.by_id().items():
            stated[firsts[point]] = max(stated[firsts[point]], share)
    return stated


def _weigh(phrase: Terms, view: CorpusView) -> SparseText | None:
    """Return the terms that labels have, with weights that undo the IDF of the engine."""
    idf = view.idf(phrase)
    labels = np.array([view.label_frequency(term) for term in phrase.tolist()], dtype=np.float32)
    present = labels > 0
    if not present.any():
        return None
    engine = np.log((view.counts.labelled + 1) / (labels[present] + 0.5))
    held = labels[present]
    share = idf[present] * held / np.maximum(view.frequencies(phrase)[present], held)
    weights = share / max(float(idf.sum()), 1e-6) / np.maximum(engine, 1e-6)
    return SparseText(phrase[present], weights.astype(np.float32))
