"""Measures whether the words of a question stand together in the documents, at any size of them.

subject_known  share of the subject's terms, by IDF, that the documents hold at all
subject_best   highest share of them in one of the best chunks by keywords
subject_placed the same, where the title and the headings of a chunk count as its words
chunks         the number of chunks
surprise       how unlikely that is by chance: the sum of log(N / n) over the terms in that chunk,
               less log N, for N chunks of which n hold a term. At 0 one chunk of the documents
               would be expected to hold these words together if words were spread by chance.

The subject is the question without words that only ask ("much", "cost"). A question
that has no such word has no subject, and its surprise is negative.
"""

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from knowledge.index.bm25 import TermNumbers
from knowledge.index.queries import Floats, Terms
from knowledge.index.terms import terms
from knowledge.search.evidence.term_shares import Present, TermShares
from knowledge.stop_words import ASKING_WORDS

_ENGLISH = "en"


def make_no_evidence(size: int) -> dict[str, float]:
    """Return the features of a question without a subject; `size` is the number of chunks."""
    nothing = {"subject_known": 0.0, "subject_best": 0.0, "subject_placed": 0.0}
    return {"chunks": float(size), "surprise": -float(np.log1p(size)), **nothing}


def measure_word_evidence(
    found: TermShares,
    chunks: Sequence[int],
    size: int,
    numbers: TermNumbers,
    language: str,
    *,
    places: Sequence[frozenset[int]] = (),
) -> dict[str, float]:
    """Return the features of the question's terms in the given candidates, out of `size` chunks.

    `language` is that of the question; `places` has the terms of each candidate's title and
    headings.
    """
    is_subject = ~np.isin(found.own, numbers.of_all(_list_asking_terms(language)))
    if not is_subject.any() or not len(chunks):
        return make_no_evidence(size)
    counts = found.counts[is_subject]
    idf = found.idf[is_subject]
    shares = idf / max(float(idf.sum()), 1e-9)
    rarity = np.where(counts > 0, np.log(size / np.maximum(counts, 1e-9)), 0.0)
    held = [found.chunks[chunk][is_subject] for chunk in chunks]
    return {
        "chunks": float(size),
        "subject_known": float(shares[counts > 0].sum()),
        "subject_best": max(float(shares[present].sum()) for present in held),
        "subject_placed": _find_best_placed(found.own[is_subject], shares, held, places),
        "surprise": max(float(rarity[present].sum()) for present in held) - float(np.log(size)),
    }


def _find_best_placed(
    own: Terms, shares: Floats, held: Sequence[Present], places: Sequence[frozenset[int]]
) -> float:
    """Return the highest share in a chunk together with its title and headings."""
    best = max(float(shares[present].sum()) for present in held)
    for present, place in zip(held, places, strict=False):
        named = np.array([int(term) in place for term in own], dtype=bool)
        best = max(best, float(shares[present | named].sum()))
    return best


@cache
def _list_asking_terms(language: str) -> tuple[str, ...]:
    """Return the terms that only ask in English, and in a language."""
    own = ASKING_WORDS.get(language, "") if language != _ENGLISH else ""
    return (*terms(ASKING_WORDS[_ENGLISH], _ENGLISH), *_analyse_alone(own, language))


def _analyse_alone(words: str, language: str) -> Iterator[str]:
    """Yield the terms of each word alone: among others, a function word is left out."""
    for word in words.split():
        yield from terms(word, language)
