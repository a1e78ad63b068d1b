"""Says from the features of a search whether the documents answer, cover or confuse a question.

Two small logistic models with global weights. They were fitted, with a ridge, on searches over
four collections (cloud and government pages, a programming framework, a web framework, a law) and
questions with human labels: answerable, underspecified, unanswerable; inside, or about other
software, other trades, small talk. No weight belongs to a collection, and features that merely
separate the collections (their size, the length of their questions) were left out.

- *Answerability* and *ambiguity* are the probabilities of "answer" and "ask" among answer, ask and
  refuse, as if the three were equally frequent: so a threshold of a third is neutral.
- *Coverage* is placed so that about 95 % of real questions have at least 0.5.
- In a collection of few chunks a question is also covered when its own words stand together in one
  chunk, and not by chance: there likeness alone refuses short questions and codes ("error 4029").
  In large collections words of any question stand together somewhere, and likeness decides.

The modules of `knowledge.search.evidence` and `knowledge.wording`
define the features. One that is missing counts as 0.
"""

import math
from collections.abc import Iterable, Mapping

from knowledge.search.assessment import Assessment

# feature: (towards "answer", towards "ask"), against "refuse"
_BIAS = (-7.766, -5.681)
_ASKED: dict[str, tuple[float, float]] = {
    "dense1": (10.971, -2.053),
    "alone1": (2.840, 4.112),
    "alone10": (-2.329, 4.736),
    "definite": (-0.359, 0.987),
    "pointing_at_nothing": (-0.505, 1.573),
    "unmentioned": (0.232, 0.839),
    "bm": (2.271, 2.135),
    "dcov": (1.445, 2.225),
    "first": (0.983, -1.927),
    "agree": (0.792, -0.408),
}
_COVERAGE_BIAS = -12.251
_COVERED: dict[str, float] = {
    "dense1": 9.877,
    "dense10": 8.603,
    "match": 3.187,
    "bmabs": 1.997,
    "gap": 2.138,
    "kz": -0.183,
    "agree": 2.390,
    "best_page": 0.637,
}
COVERED_BY_WORDS = 0.6
ANSWERED_BY_WORDS = 0.35
_FEW_CHUNKS = 300
_HARDLY_ANY = 20
_ENOUGH_WORDS = 0.35


def assess(features: Mapping[str, float]) -> Assessment:
    """Return the probabilities; a search that found nothing has no features and is refused."""
    if not features:
        return Assessment(0.0, 0.0, 0.0)
    answer, ask = _answer_or_ask(features)
    coverage = _coverage(features)
    if _stands_together(features):
        coverage = max(coverage, COVERED_BY_WORDS)
        answer = max(answer, ANSWERED_BY_WORDS)
    return Assessment(answerability=answer, coverage=coverage, ambiguity=ask)


def _stands_together(features: Mapping[str, float]) -> bool:
    """Return whether the words of the question stand together in a chunk, and not by chance."""
    if features.get("chunks", math.inf) > _FEW_CHUNKS:
        return False
    by_chance = features["chunks"] > _HARDLY_ANY and features.get("surprise", 0.0) < 0.0
    return not by_chance and features.get("subject_best", 0.0) >= _ENOUGH_WORDS


def _answer_or_ask(features: Mapping[str, float]) -> tuple[float, float]:
    answer = _BIAS[0] + _sum([(features.get(name, 0.0), pair[0]) for name, pair in _ASKED.items()])
    ask = _BIAS[1] + _sum([(features.get(name, 0.0), pair[1]) for name, pair in _ASKED.items()])
    highest = max(answer, ask, 0.0)
    shares = [math.exp(value - highest) for value in (answer, ask, 0.0)]
    return shares[0] / sum(shares), shares[1] / sum(shares)


def _coverage(features: Mapping[str, float]) -> float:
    value = _COVERAGE_BIAS + _sum(
        [(features.get(name, 0.0), weight) for name, weight in _COVERED.items()]
    )
    return 1 / (1 + math.exp(-max(min(value, 50.0), -50.0)))


def _sum(terms: Iterable[tuple[float, float]]) -> float:
    return sum([value * weight for value, weight in terms])
