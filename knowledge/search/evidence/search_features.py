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

import numpy as np
import numpy.typing as npt

from knowledge.index.bm25 import B, K, TermNumbers
from knowledge.index.port import Floats, Terms
from knowledge.search.evidence.word_evidence import measure_word_evidence
from knowledge.search.fusion import RankedPage
from knowledge.search.levels import Scores, standardise
from knowledge.search.mirror import Mirror
from knowledge.search.query import Query

Chunks = npt.NDArray[np.int64]
_BOUND = K + 1 if B else K


def features(
    mirror: Mirror,
    query: Query,
    scores: Scores,
    ranked: Sequence[RankedPage],
    numbers: TermNumbers,
) -> dict[str, float]:
    """Return the features of a search over an index that is not empty."""
    own = _own(mirror, query)
    idf = mirror.keywords.idf(own)
    whole = max(float(idf.sum()), 1e-9)
    by_keywords = _top(scores.bm25, 10)
    found = {
        **measure_word_evidence(mirror, own, by_keywords.tolist(), numbers),
        **_terms(mirror, own, idf, whole),
        **_coverage(mirror, own, idf / whole, by_keywords, ranked),
        **_pages(mirror, ranked),
        "title": _compute_title_share(mirror, own, idf / whole, by_keywords, numbers),
        "product": _names_root(mirror, own, numbers),
        "bm": float(scores.bm25[by_keywords[0]]) / (whole * _BOUND),
        "bmabs": float(np.log1p(scores.bm25[by_keywords[0]])),
        "kz": float(standardise(scores.bm25).max()),
        "match": float(scores.match.max()),
    }
    return found | _dense(mirror, own, idf / whole, scores, by_keywords)


def _own(mirror: Mirror, query: Query) -> Terms:
    """Return the terms of the wording that the documents know best."""
    if not query.phrases:
        return query.own

    def compute_share(phrase: Terms) -> float:
        idf = mirror.keywords.idf(phrase)
        present = [len(mirror.keywords.rows_of(term)) > 0 for term in phrase]
        return float(idf[present].sum() / max(float(idf.sum()), 1e-9))

    return max(query.phrases, key=compute_share)


def _terms(mirror: Mirror, own: Terms, idf: Floats, whole: float) -> dict[str, float]:
    counts = np.array([len(mirror.keywords.rows_of(term)) for term in own], dtype=np.float32)
    highest = float(np.log1p((len(mirror) + 0.5) / 0.5))
    return {
        "known": float(idf[counts > 0].sum()) / whole,
        "unk": float(min(int((counts == 0).sum()), 3)),
        "n": float(np.log1p(len(own))),
        "gen": float(np.log1p(counts).mean()) if len(own) else 0.0,
        "rare": float(idf.max()) / highest if len(own) else 0.0,
    }


def _coverage(
    mirror: Mirror,
    own: Terms,
    shares: Floats,
    by_keywords: Chunks,
    ranked: Sequence[RankedPage],
) -> dict[str, float]:
    covered = _compute_coverage(mirror, own, shares, by_keywords)
    best_page = max((_on_page(mirror, own, shares, page) for page in ranked[:3]), default=0.0)
    return {"best": float(covered.max()), "best_page": best_page}


def _on_page(mirror: Mirror, own: Terms, shares: Floats, page: RankedPage) -> float:
    """Return the share of the question that stands anywhere on a page."""
    start = int(mirror.chunk_starts[page.document])
    end = start + len(mirror.entries[page.document].points)
    inside = [mirror.keywords.occurs_between(term, start, end) for term in own]
    return float(shares[inside].sum())


def _compute_coverage(mirror: Mirror, own: Terms, shares: Floats, chunks: Chunks) -> Floats:
    """Return for each chunk the share of the question that it contains."""
    covered = np.zeros(len(mirror), dtype=np.float32)
    for term, share in zip(own, shares, strict=True):
        covered[mirror.keywords.rows_of(term)] += share
    chosen: Floats = covered[chunks]
    return chosen


def _compute_title_share(
    mirror: Mirror, own: Terms, shares: Floats, chunks: Chunks, numbers: TermNumbers
) -> float:
    sections = {int(mirror.section_of[chunk]) for chunk in chunks}
    places = frozenset().union(*(mirror.place_of(section, numbers) for section in sections))
    stands = [int(term) in places for term in own]
    return float(shares[stands].sum())


def _names_root(mirror: Mirror, own: Terms, numbers: TermNumbers) -> float:
    named = mirror.roots(numbers)
    return float(any(int(term) in named for term in own))


def _pages(mirror: Mirror, ranked: Sequence[RankedPage]) -> dict[str, float]:
    values = [page.score for page in ranked[:10]]
    first, second = ([*values, 0.0, 0.0])[:2]
    crumbs = {mirror.entries[page.document].crumbs[:-1] for page in ranked[:5]}
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
    mirror: Mirror, own: Terms, shares: Floats, scores: Scores, by_keywords: Chunks
) -> dict[str, float]:
    cosine = scores.cosine
    if cosine is None:
        return {}
    best = _top(cosine, 50)
    ten = best[:10]
    documents = mirror.document_of
    shared = np.intersect1d(documents[ten[:3]], documents[by_keywords[:3]])
    values = (
        float(cosine[best[0]]),
        float(cosine[ten].mean()),
        float(cosine[best].mean()),
        float(cosine.mean()),
        float(standardise(cosine).max()),
        float(_compute_coverage(mirror, own, shares, ten).mean()),
        len(np.intersect1d(ten, by_keywords)) / 10,
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
