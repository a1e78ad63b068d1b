"""Features of a search with and without the earlier turns of its conversation.

All features are finite; those that need vectors are 0 without them.

alone1, alone10  best cosine of the question without its conversation; the mean of the ten best
gain             best cosine with the conversation, less `alone1`
likeness         cosine of the question and the turns that it refers to
shared           share of the question's terms, by IDF, that occur in those turns
page_gap         best page's cosine less the second's; page_gap5: less the fifth's
spread           entropy of the twenty best cosines, sharpened: 0 (one chunk) to 3 (all alike)
turns            log(1 + number of the user's turns before)
"""

import math
from collections.abc import Sequence

import numpy as np

from knowledge.index.bm25 import TermNumbers
from knowledge.index.queries import Floats
from knowledge.index.terms import terms
from knowledge.search.candidates.found_candidates import Candidates, RawScores
from knowledge.search.query import Query, Wordings
from knowledge.search.statistics.corpus import CorpusView

_SHARPNESS = 15.0
_NEAREST = 20
_CANDIDATES = 100


def conversation(
    candidates: Candidates,
    query: Query,
    asked: Wordings,
    view: CorpusView,
    numbers: TermNumbers,
) -> dict[str, float]:
    """Return the features of a question in its conversation."""
    return {
        **_alone(candidates.raw),
        **_gaps(candidates, candidates.raw.cosine),
        "likeness": _likeness(query),
        "shared": _compute_overlap(view, query, asked, numbers),
        "turns": math.log1p(asked.turns),
    }


def _alone(raw: RawScores) -> dict[str, float]:
    if raw.alone is None or raw.cosine is None:
        return {"alone1": 0.0, "alone10": 0.0, "gain": 0.0}
    return {
        "alone1": float(raw.alone[0]),
        "alone10": float(raw.alone.mean()),
        "gain": float(raw.cosine.max() - raw.alone[0]),
    }


def _gaps(found: Candidates, cosine: Floats | None) -> dict[str, float]:
    if cosine is None:
        return {"page_gap": 0.0, "page_gap5": 0.0, "spread": 0.0}
    best = _best(cosine, _NEAREST)
    pages = [*_best_of_pages(found, cosine), *([0.0] * 5)]
    shares = np.exp((best - best[0]) * _SHARPNESS)
    shares /= shares.sum()
    return {
        "page_gap": pages[0] - pages[1],
        "page_gap5": pages[0] - pages[4],
        "spread": float(-(shares * np.log(np.maximum(shares, 1e-12))).sum()),
    }


def _best_of_pages(found: Candidates, cosine: Floats) -> Sequence[float]:
    count = min(_CANDIDATES, len(cosine))
    chunks = np.argpartition(-cosine, count - 1)[:count]
    pages = found.page_of[found.document_of[chunks]]
    best = [float(cosine[chunks[pages == page]].max()) for page in np.unique(pages)]
    return sorted(best, reverse=True)


def _likeness(query: Query) -> float:
    if query.alone is None or query.earlier is None:
        return 0.0
    return float(np.dot(query.alone, query.earlier))


def _compute_overlap(
    view: CorpusView, query: Query, asked: Wordings, numbers: TermNumbers
) -> float:
    idf = view.idf(query.own)
    earlier = {
        number
        for turn in asked.related
        for number in numbers.of_all(terms(turn, asked.language)).tolist()
    }
    stands = [term in earlier for term in query.own.tolist()]
    return float(idf[stands].sum()) / max(float(idf.sum()), 1e-9)


def _best(values: Floats, count: int) -> Floats:
    count = min(count, len(values))
    best: Floats = -np.sort(np.partition(-values, count - 1)[:count])
    return best
