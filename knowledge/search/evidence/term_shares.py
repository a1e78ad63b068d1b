"""Finds which of a question's terms its best candidates and the best pages contain."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from knowledge.index.points import layout
from knowledge.index.points.layout import document_identity
from knowledge.index.port import ReadableIndex
from knowledge.index.queries import Floats, SparseText, Terms, VectorQuery
from knowledge.search.candidates import Candidates
from knowledge.search.query import Query
from knowledge.search.statistics.corpus import CorpusView

Present = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TermShares:
    """The terms `own` of the wording that the documents know best, each with its share by IDF.

    `chunks` says for candidates which of the terms they contain, `documents` for documents.
    """

    own: Terms
    idf: Floats
    counts: Floats
    chunks: dict[int, Present]
    documents: dict[int, Present]

    @property
    def shares(self) -> Floats:
        """The share of each term in the question, by IDF."""
        shares: Floats = self.idf / max(float(self.idf.sum()), 1e-9)
        return shares

    def cover(self, chunks: Sequence[int]) -> Floats:
        """Return for each of these candidates the share of the question that it contains."""
        return np.array([self.shares[self.chunks[chunk]].sum() for chunk in chunks], np.float32)


async def read_term_shares(
    index: ReadableIndex,
    candidates: Candidates,
    query: Query,
    view: CorpusView,
    *,
    chunks: Sequence[int],
    documents: Sequence[int],
) -> TermShares:
    """Return which of the terms these candidates and documents contain."""
    own = _find_best_known(query, view)
    pages = {document_identity(candidates.documents[one].document_id): one for one in documents}
    present_chunks = {
        one: (own[:, None] == candidates.chunks[one].keywords.terms).any(axis=1) for one in chunks
    }
    present_documents = {one: np.zeros(len(own), dtype=bool) for one in documents}
    known = [term for term in own.tolist() if view.frequency(term) > 0] if pages else []
    asked = [
        VectorQuery(layout.VOCABULARY, _one_term(term), len(pages), list(pages)) for term in known
    ]
    for term, found in zip(known, await index.query(asked), strict=True):
        for point in found.ids:
            present_documents[pages[point]] |= own == term
    return TermShares(own, view.idf(own), view.frequencies(own), present_chunks, present_documents)


def _one_term(term: int) -> SparseText:
    return SparseText(np.array([term], np.uint32), np.ones(1, np.float32))


def _find_best_known(query: Query, view: CorpusView) -> Terms:
    """Return the terms of the wording that the documents know best."""
    if not query.phrases:
        return query.own

    def compute_share(phrase: Terms) -> float:
        idf = view.idf(phrase)
        present = view.frequencies(phrase) > 0
        return float(idf[present].sum() / max(float(idf.sum()), 1e-9))

    return max(query.phrases, key=compute_share)
