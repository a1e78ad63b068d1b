"""Scores every row of a small collection of texts, in memory."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from knowledge.index.queries import Floats, SparseText, Terms

Rows = npt.NDArray[np.int32]
_TABLE = 1 << 14


class Postings:
    """The texts that contain each term, with its weights; texts count from 0."""

    def __init__(self, texts: Sequence[SparseText]) -> None:
        self.count = len(texts)
        lengths = [len(text.terms) for text in texts]
        rows = np.repeat(np.arange(len(texts), dtype=np.int32), lengths)
        terms = _join([text.terms for text in texts], np.uint32)
        order = np.argsort(terms, kind="stable")
        self._rows: Rows = rows[order]
        self._weights: Floats = _join([text.weights for text in texts], np.float32)[order]
        self._terms, self._starts = np.unique(terms[order], return_index=True)
        self._ends = np.append(self._starts[1:], len(rows))

    def scores(self, terms: Terms, weights: Floats) -> Floats:
        """Return the sum of the products of weights for every text; each term comes once."""
        total = np.zeros(self.count, dtype=np.float32)
        for term, weight in zip(terms, weights, strict=True):
            at = self._at(term)
            if at is not None:
                chosen = slice(self._starts[at], self._ends[at])
                total[self._rows[chosen]] += self._weights[chosen] * weight
        return total

    def rows_of(self, term: np.uint32) -> Rows:
        """Return the texts that contain a term."""
        at = self._at(term)
        return self._rows[:0] if at is None else self._rows[self._starts[at] : self._ends[at]]

    def _at(self, term: np.uint32) -> int | None:
        at = int(np.searchsorted(self._terms, term))
        return at if at < len(self._terms) and self._terms[at] == term else None


def score_texts(texts: Sequence[SparseText], terms: Terms, weights: Floats) -> Floats:
    """Return the sum of the products of weights for every text; each term comes once."""
    if not texts or not len(terms):
        return np.zeros(len(texts), dtype=np.float32)
    order = np.argsort(terms)
    known, factors = terms[order], weights[order]
    joined = np.concatenate([text.terms for text in texts])
    chosen = find_members(joined, known)
    ends = np.cumsum([len(text.terms) for text in texts])
    rows = np.searchsorted(ends, chosen, side="right")
    found = factors[np.searchsorted(known, joined[chosen])]
    products = np.concatenate([text.weights for text in texts])[chosen] * found
    return np.bincount(rows, products, len(texts)).astype(np.float32)


def find_members(joined: Terms, known: Terms) -> npt.NDArray[np.intp]:
    """Return the positions of those of many terms that are among a few.

    The last bits of a term exclude most others; `numpy.isin` alone takes five times as long.
    """
    table = np.zeros(_TABLE, dtype=bool)
    table[known & np.uint32(_TABLE - 1)] = True
    similar = np.flatnonzero(table[joined & np.uint32(_TABLE - 1)])
    return similar[np.isin(joined[similar], known)]


def _join(arrays: Sequence[npt.NDArray[np.generic]], kind: npt.DTypeLike) -> npt.NDArray:  # type: ignore[type-arg]
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=kind)
