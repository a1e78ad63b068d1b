"""Creates the sparse vectors for both types of index; the engine adds the IDF.

The weight of a term is f (k + 1) / (f + k (1 - b + b L / A)), where f is its frequency in the text,
L the text's length in terms, and A the average length (Robertson and Zaragoza 2009, The
Probabilistic Relevance Framework, section 3).
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import qdrant_edge

from knowledge.index.queries import SparseText, Terms
from knowledge.index.terms import terms

K = 1.2
B = 0.75
# The engine needs the average in advance. A chunk with its headings has about 60.
CHUNK_LENGTH = 60.0
SUMMARY_LENGTH = 120.0
PARTS_LENGTH = 250.0


class Bm25:
    """Computes BM25 term weights, assuming texts of about `average_length` terms."""

    def __init__(self, average_length: float) -> None:
        self._model = qdrant_edge.Bm25(
            qdrant_edge.Bm25Config(
                k=K,
                b=B,
                avg_len=average_length,
                tokenizer=qdrant_edge.TokenizerType.Whitespace,
                stopwords=qdrant_edge.StopwordsSet(languages=set(), custom=set()),
                stemmer=qdrant_edge.DisabledStemmer(),
            )
        )

    def encode(self, text: str, language: str) -> SparseText:
        return self.encode_terms(terms(text, language))

    def encode_terms(self, words: Iterable[str]) -> SparseText:
        """Return the weights of terms; terms may be repeated."""
        vector = self._model.embed_document(" ".join(words))
        return SparseText(
            np.array(vector.indices, dtype=np.uint32), np.array(vector.values, dtype=np.float32)
        )

    def number(self, term: str) -> int:
        """Return the number of a term, as used in `terms`."""
        indices = self._model.embed_query(term).indices
        return int(indices[0]) if indices else 0


class TermNumbers:
    """Maps terms to their numbers in the sparse vectors, with a cache."""

    _MOST = 1 << 17

    def __init__(self) -> None:
        self._bm25 = Bm25(CHUNK_LENGTH)
        self._known: dict[str, int] = {}

    def of(self, term: str) -> int:
        """Return the number of a term, as used in `terms`."""
        number = self._known.get(term)
        if number is None:
            if len(self._known) >= self._MOST:
                self._known.clear()
            number = self._known[term] = self._bm25.number(term)
        return number

    def of_all(self, words: Iterable[str]) -> Terms:
        """Return the numbers of distinct terms, without duplicates, in the order of the terms."""
        return np.array([self.of(term) for term in dict.fromkeys(words)], dtype=np.uint32)


def sort_terms(numbers: Terms) -> Terms:
    """Return the numbers, sorted and without duplicates.

    For the few terms of a text, `np.unique` and `np.isin` are slower, and load all of `numpy.ma`.
    """
    return np.array(sorted(set(numbers.tolist())), dtype=np.uint32)


def are_terms(numbers: Terms, known: Terms) -> npt.NDArray[np.bool_]:
    """Return which of the numbers are among the known ones."""
    members = set(known.tolist())
    return np.array([number in members for number in numbers.tolist()], dtype=bool)


def merge(one: SparseText, other: SparseText) -> SparseText:
    """Return the terms of both texts, each with the higher of its two weights."""
    numbers, at = np.unique(np.concatenate((one.terms, other.terms)), return_inverse=True)
    weights = np.zeros(len(numbers), dtype=np.float32)
    np.maximum.at(weights, at, np.concatenate((one.weights, other.weights)))
    return SparseText(numbers, weights)
