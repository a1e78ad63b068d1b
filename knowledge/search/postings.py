"""Scores every row of a collection of texts by BM25, in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from knowledge.index.port import Floats, SparseText, Terms

Rows = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Packed:
    """Sparse texts of neighbouring rows, as three arrays of one length; rows count from 0."""

    count: int
    rows: Rows
    terms: Terms
    weights: Floats


def pack(texts: Sequence[SparseText]) -> Packed:
    """Join the texts of a document's rows."""
    lengths = [len(text.terms) for text in texts]
    return Packed(
        len(texts),
        np.repeat(np.arange(len(texts), dtype=np.int32), lengths),
        _join([text.terms for text in texts], np.uint32),
        _join([text.weights for text in texts], np.float32),
    )


class Postings:
    """The rows that contain each term, with its weights."""

    def __init__(self, parts: Sequence[Packed]) -> None:
        self.count = sum(part.count for part in parts)
        offsets = np.cumsum([0, *(part.count for part in parts)])[:-1]
        rows = _join(
            [part.rows + np.int32(at) for part, at in zip(parts, offsets, strict=True)], np.int32
        )
        terms = _join([part.terms for part in parts], np.uint32)
        order = np.argsort(terms, kind="stable")
        self._rows: Rows = rows[order]
        self._weights: Floats = _join([part.weights for part in parts], np.float32)[order]
        self._terms, self._starts = np.unique(terms[order], return_index=True)
        self._ends = np.append(self._starts[1:], len(rows))
        found = self._ends - self._starts
        self._idf = np.log1p((self.count - found + 0.5) / (found + 0.5)).astype(np.float32)
        self._unknown_idf = float(np.log1p((self.count + 0.5) / 0.5))

    def scores(self, terms: Terms, weights: Floats) -> Floats:
        """Return the score of every row for weighted terms without duplicates."""
        total = np.zeros(self.count, dtype=np.float32)
        for term, weight in zip(terms, weights, strict=True):
            at = self._at(term)
            if at is not None:
                chosen = slice(self._starts[at], self._ends[at])
                total[self._rows[chosen]] += self._weights[chosen] * (self._idf[at] * weight)
        return total

    def rows_of(self, term: np.uint32) -> Rows:
        """Return the rows that contain a term."""
        at = self._at(term)
        return self._rows[:0] if at is None else self._rows[self._starts[at] : self._ends[at]]

    def occurs_between(self, term: np.uint32, start: int, end: int) -> bool:
        """Return whether any row from `start` to before `end` contains a term."""
        rows = self.rows_of(term)
        at = int(np.searchsorted(rows, start))
        return at < len(rows) and int(rows[at]) < end

    def idf(self, terms: Terms) -> Floats:
        """Return the inverse document frequency of terms; of unknown ones the highest."""
        if not len(self._terms):
            return np.full(len(terms), self._unknown_idf, dtype=np.float32)
        at = np.minimum(np.searchsorted(self._terms, terms), len(self._terms) - 1)
        known = self._terms[at] == terms
        return np.where(known, self._idf[at], np.float32(self._unknown_idf))

    def _at(self, term: np.uint32) -> int | None:
        at = int(np.searchsorted(self._terms, term))
        return at if at < len(self._terms) and self._terms[at] == term else None


def _join(arrays: Sequence[npt.NDArray[np.generic]], kind: npt.DTypeLike) -> npt.NDArray:  # type: ignore[type-arg]
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype=kind)
