"""Features of a search, for estimating whether the question can be answered.

Terms are weighted by IDF. All features are finite; those that need vectors are missing without
them.

known       share of the question's terms that the documents contain at all
best        highest share of them in one of the ten best chunks by keywords
best_page   highest share of them in one of the three best pages
title       share of them in the headings and crumbs of the ten best chunks by keywords
dcov        mean share of them in the ten best chunks by meaning
bm, bmabs   best BM25 score, over its upper bound; as a logarithm
kz, sz      best z-score by keywords; by meaning
dense1      best cosine; dense10, dense50: the mean of the ten, of the fifty best; densemean: of all
agree       share of the ten best chunks by meaning that are among the ten by keywords
over        1 when the three best by either share a document
match       highest likeness of question and heading
fused1      best page's score; fused2, fused5: the second and fifth; gap: first less second, of it
entropy     of the ten best pages' scores, 0 (one place) to 1 (all alike)
branches    different crumbs above the five best pages
product     1 when a term names the root of the crumbs
subject_known, subject_best, surprise: see `knowledge.search.evidence.word_evidence`
unk, n      terms that are unknown, 3 at most; log(1 + number of terms)
gen, rare   mean log(1 + number of chunks with the term); highest IDF over the possible
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from knowledge.index.bm25 import B, K, TermNumbers
from knowledge.index.queries import Floats
from knowledge.index.terms import terms
from knowledge.search.candidates.found_candidates import Candidates
from knowledge.search.evidence.term_shares import TermShares
from knowledge.search.evidence.word_evidence import measure_word_evidence
from knowledge.search.fusion import RankedPage
from knowledge.search.levels import Scores
from knowledge.search.statistics.corpus import CorpusView

Chunks = npt.NDArray[np.int64]
_BOUND = K + 1 if B else K
_BEST = 10
_PAGES = 3
_MOST_PLACES = 4096


def list_best(scores: Scores, ranked: Sequence[RankedPage]) -> tuple[list[int], list[int]]:
    """Return the candidates and the documents whose terms the features compare."""
    best = set(_top(scores.bm25, _BEST).tolist())
    if scores.cosine is not None:
        best.update(_top(scores.cosine, _BEST).tolist())
    return sorted(best), sorted({page.document for page in ranked[:_PAGES]})


def features(
    candidates: Candidates,
    view: CorpusView,
    scores: Scores,
    ranked: Sequence[RankedPage],
    found: TermShares,
    numbers: TermNumbers,
    places: Sequence[tuple[str, str]],
    language: str,
) -> dict[str, float]:
    """Return the features of a search that has candidates, for a question in `language`.

    `places` are the headings and crumbs of the best candidates by keywords, with their languages.
    """
    by_keywords = _top(scores.bm25, _BEST)
    whole = max(float(found.idf.sum()), 1e-9)
    best = float(scores.bm25[by_keywords[0]])
    return {
        **measure_word_evidence(
            found,
            by_keywords.tolist(),
            len(view),
            numbers,
            language,
            places=_list_place_terms(candidates, by_keywords, places, numbers),
        ),
        **_terms(found, len(view)),
        **_pages(candidates, ranked),
        "best": float(found.cover(by_keywords.tolist()).max()),
        "best_page": max(
            (float(found.shares[found.documents[p.document]].sum()) for p in ranked[:_PAGES]),
            default=0.0,
        ),
        "title": _compute_title_share(found, places, numbers),
        "product": float(any(int(term) in view.roots for term in found.own)),
        "bm": best / (whole * _BOUND),
        "bmabs": float(np.log1p(best)),
        "kz": float(scores.words.standardise(scores.bm25).max()),
        "match": float(scores.match.max()),
        **_dense(candidates, found, scores, by_keywords),
    }


def list_best_by_keywords(scores: Scores) -> list[int]:
    """Return the best candidates by keywords."""
    return [int(chunk) for chunk in _top(scores.bm25, _BEST)]


def _terms(found: TermShares, size: int) -> dict[str, float]:
    counts, idf = found.counts, found.idf
    highest = float(np.log1p((size + 0.5) / 0.5))
    return {
        "known": float(idf[counts > 0].sum()) / max(float(idf.sum()), 1e-9),
        "unk": float(min(int((counts == 0).sum()), 3)),
        "n": float(np.log1p(len(idf))),
        "gen": float(np.log1p(counts).mean()) if len(idf) else 0.0,
        "rare": float(idf.max()) / highest if len(idf) else 0.0,
    }


def _compute_title_share(
    found: TermShares, places: Sequence[tuple[str, str]], numbers: TermNumbers
) -> float:
    """Return the share of the question that the places contain."""
    known = {
        number
        for place, language in places
        for number in numbers.of_all(_read_terms(place, language)).tolist()
    }
    stands = [int(term) in known for term in found.own]
    return float(found.shares[stands].sum())


def _list_place_terms(
    candidates: Candidates,
    chunks: Chunks,
    places: Sequence[tuple[str, str]],
    numbers: TermNumbers,
) -> list[frozenset[int]]:
    """Return the terms of each candidate's place, with those of its document's title."""
    titles = [candidates.documents[candidates.document_of[chunk]].crumbs[:1] for chunk in chunks]
    return [
        frozenset(
            number
            for text in (place, *title)
            for number in numbers.of_all(_read_terms(text, language)).tolist()
        )
        for (place, language), title in zip(places, titles, strict=True)
    ]


@lru_cache(maxsize=_MOST_PLACES)
def _read_terms(place: str, language: str) -> tuple[str, ...]:
    return tuple(terms(place, language))


def _pages(candidates: Candidates, ranked: Sequence[RankedPage]) -> dict[str, float]:
    values = [page.score for page in ranked[:10]]
    first, second = ([*values, 0.0, 0.0])[:2]
    crumbs = {candidates.documents[page.document].crumbs[:-1] for page in ranked[:5]}
    return {
        "fused1": first,
        "fused2": second,
        "fused5": values[4] if len(values) > 4 else 0.0,
        "gap": (first - second) / first if first > 0 else 0.0,
        "entropy": _entropy(values),
        "branches": float(len(crumbs)),
    }


def _entropy(values: Sequence[float]) -> float:
    if len(values) < 2:
        return 0.0
    shares = np.exp(np.array(values) - max(values))
    shares /= shares.sum()
    return float(-(shares * np.log(np.maximum(shares, 1e-12))).sum() / np.log(len(values)))


def _dense(
    candidates: Candidates, found: TermShares, scores: Scores, by_keywords: Chunks
) -> dict[str, float]:
    cosine = scores.cosine
    if cosine is None or scores.meaning is None:
        return {}
    best = _top(cosine, 50)
    ten = best[:_BEST]
    documents = candidates.document_of
    shared = np.intersect1d(documents[ten[:3]], documents[by_keywords[:3]])
    values = (
        float(cosine[best[0]]),
        float(cosine[ten].mean()),
        float(cosine[best].mean()),
        scores.meaning.mean,
        float(scores.meaning.standardise(cosine).max()),
        float(found.cover(ten.tolist()).mean()),
        len(np.intersect1d(ten, by_keywords)) / _BEST,
        float(len(shared) > 0),
    )
    names = ("dense1", "dense10", "dense50", "densemean", "sz", "dcov", "agree", "over")
    return dict(zip(names, values, strict=True))


def _top(values: Floats, count: int) -> Chunks:
    """Return the best, best first; of equals the earlier one."""
    if len(values) > count:
        least = np.partition(values, -count)[-count]
        chosen = np.flatnonzero(values >= least)
    else:
        chosen = np.arange(len(values))
    order = np.argsort(-values[chosen], kind="stable")
    top: Chunks = chosen[order][:count]
    return top
