"""Says from the features of a search whether the documents answer, cover or confuse a question.

Two small logistic models with global weights. They were fitted, with a ridge, on searches over
four collections (cloud and government pages, a programming framework, a web framework, a law) and
questions with human labels: answerable, underspecified, unanswerable; inside, or about other
software, other trades, small talk. No weight belongs to a collection, and features that merely
tell the collections apart (their size, the length of their questions) were left out.

- *Answerability* and *ambiguity* are the probabilities of "answer" and "ask" among answer, ask and
  refuse, as if the three were equally frequent: so a threshold of a third is neutral.
- *Coverage* is placed so that about 95 % of real questions have at least 0.5.

`knowledge.search.features`, `knowledge.search.conversing` and `knowledge.wording` define the
features. One that is missing counts as 0.
"""

import math
from collections.abc import Iterable, Mapping

from knowledge.search.assessment import Assessment

# feature: (towards "answer", towards "ask"), against "refuse"
_BIAS = (-7.751, -5.649)
_ASKED: dict[str, tuple[float, float]] = {
    "dense1": (9.653, -2.184),
    "alone1": (3.696, 4.208),
    "alone10": (-1.907, 4.743),
    "definite": (-0.350, 0.979),
    "pointing_at_nothing": (-0.502, 1.573),
    "unmentioned": (0.210, 0.846),
    "bm": (2.350, 1.964),
    "dcov": (1.179, 2.283),
    "first": (0.971, -1.917),
    "agree": (1.152, -0.366),
}
_COVERAGE_BIAS = -12.427
_COVERED: dict[str, float] = {
    "dense1": 14.421,
    "dense10": 4.477,
    "match": 3.922,
    "bm": 3.841,
    "bmabs": 2.280,
    "gap": 3.039,
    "best": -2.190,
    "sz": -0.227,
    "kz": -0.166,
}


def assess(features: Mapping[str, float]) -> Assessment:
    """Return the probabilities; a search that found nothing has no features and is refused."""
    if not features:
        return Assessment(0.0, 0.0, 0.0)
    answer, ask = _answer_or_ask(features)
    return Assessment(answerability=answer, coverage=_coverage(features), ambiguity=ask)


def _answer_or_ask(features: Mapping[str, float]) -> tuple[float, float]:
    answer = _BIAS[0] + _sum((features.get(name, 0.0), pair[0]) for name, pair in _ASKED.items())
    ask = _BIAS[1] + _sum((features.get(name, 0.0), pair[1]) for name, pair in _ASKED.items())
    highest = max(answer, ask, 0.0)
    shares = [math.exp(value - highest) for value in (answer, ask, 0.0)]
    return shares[0] / sum(shares), shares[1] / sum(shares)


def _coverage(features: Mapping[str, float]) -> float:
    value = _COVERAGE_BIAS + _sum(
        (features.get(name, 0.0), weight) for name, weight in _COVERED.items()
    )
    return 1 / (1 + math.exp(-max(min(value, 50.0), -50.0)))


def _sum(terms: Iterable[tuple[float, float]]) -> float:
    return sum(value * weight for value, weight in terms)
