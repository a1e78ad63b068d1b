"""Measures whether the words of a question stand together in the documents, at any size of them.

subject_known  share of the subject's terms, by IDF, that the documents hold at all
subject_best   highest share of them in one of the best chunks by keywords
chunks         the number of chunks
surprise       how unlikely that is by chance: the sum of log(N / n) over the terms in that chunk,
               less log N, for N chunks of which n hold a term. At 0 one chunk of the documents
               would be expected to hold these words together if words were spread by chance.

The subject is the question without words that only ask ("much", "cost"). A question
that has no such word has no subject, and its surprise is negative.
"""

from collections.abc import Sequence

import numpy as np

from knowledge.index.bm25 import TermNumbers
from knowledge.index.port import Terms
from knowledge.index.terms import terms
from knowledge.search.mirror import Mirror
from knowledge.stop_words import ASKING_WORDS


def make_no_evidence(size: int) -> dict[str, float]:
    """Return the features of a question without a subject; `size` is the number of chunks."""
    nothing = {"subject_known": 0.0, "subject_best": 0.0}
    return {"chunks": float(size), "surprise": -float(np.log1p(size)), **nothing}


def measure_word_evidence(
    mirror: Mirror, own: Terms, chunks: Sequence[int], numbers: TermNumbers
) -> dict[str, float]:
    """Return the features of a question's terms `own` in the given chunks."""
    subject = own[~np.isin(own, numbers.of_all(terms(ASKING_WORDS, "en")))]
    size = len(mirror)
    if not len(subject) or not len(chunks):
        return make_no_evidence(size)
    idf = mirror.keywords.idf(subject)
    shares = idf / max(float(idf.sum()), 1e-9)
    held = np.zeros(size, dtype=np.float32)
    surprise = np.zeros(size, dtype=np.float32)
    known = 0.0
    for term, share in zip(subject, shares, strict=True):
        rows = mirror.keywords.rows_of(term)
        if len(rows):
            known += float(share)
            held[rows] += share
            surprise[rows] += np.log(size / len(rows))
    best = np.asarray(chunks)
    return {
        "chunks": float(size),
        "subject_known": known,
        "subject_best": float(held[best].max()),
        "surprise": float(surprise[best].max()) - float(np.log(size)),
    }
