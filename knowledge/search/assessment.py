"""Probabilities about a question from the features of its search; a calibration replaces them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Assessment:
    """Probabilities, 0 to 1.

    `answerability`: the documents contain an answer. `coverage`: the question is about their
    subjects. `ambiguity`: the question has several meanings.
    """

    answerability: float
    coverage: float
    ambiguity: float


Assess = Callable[[Mapping[str, float]], Assessment]


def assess_uncalibrated(features: Mapping[str, float]) -> Assessment:
    """Return an estimate from the best cosine, the known words and the spread over pages."""
    nearness = (features.get("dense1", 0.0) - 0.2) / 0.5
    likely = 0.5 * nearness + 0.5 * features.get("best", 0.0)
    spread = features.get("entropy", 0.0)
    return Assessment(_clamp(likely), _clamp(features.get("known", 0.0)), _clamp(spread))


def _clamp(value: float) -> float:
    return min(max(value, 0.0), 1.0)
