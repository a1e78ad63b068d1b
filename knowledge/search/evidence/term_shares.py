"""Finds which of a question's terms its best candidates and the best pages contain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from knowledge.index.queries import Floats, Terms
from knowledge.search.candidates.found_candidates import Candidates
from knowledge.search.evidence.compared_texts import ComparedText
from knowledge.search.evidence.vocabularies import Vocabularies
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
    vocabularies: Vocabularies,
    candidates: Candidates,
    query: Query,
    view: CorpusView,
    *,
    texts: Mapping[int, ComparedText],
    documents: Sequence[int],
) -> TermShares:
    """Return which of the terms these candidates and documents contain."""
    own = _find_best_known(query, view)
    present_chunks = {
        chunk: (own[:, None] == text.terms).any(axis=1) for chunk, text in texts.items()
    }
    pages = {one: candidates.documents[one] for one in documents}
    held = await vocabularies.read(view.index, pages.values())
    present_documents = {
        one: np.isin(own, held[document.document_id]) for one, document in pages.items()
    }
    return TermShares(own, view.idf(own), view.frequencies(own), present_chunks, present_documents)


def _find_best_known(query: Query, view: CorpusView) -> Terms:
    """Return the terms of the wording that the documents know best."""
    if not query.phrases:
        return query.own

    def compute_share(phrase: Terms) -> float:
        idf = view.idf(phrase)
        present = view.frequencies(phrase) > 0
        return float(idf[present].sum() / max(float(idf.sum()), 1e-9))

    return max(query.phrases, key=compute_share)
