"""Assesses by rules whether passages complete an answer: four criteria, 1 to 10, and their mean.

- *Completeness* comes from the words of the question that the passages have together, from the
  passages that others lead to, and from how much the first passage stands out: where the last
  passage of a chain is missing, one passage alone matches the question.
- *Accuracy* is the share of an answer that the passages support; *clarity* and *specificity* are
  about its form: sentences of readable length, and names or numbers.

The weights and the means were fitted on half of a set of questions of several passages, see
`docs/measurements/evaluation.md`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from llm.offline.support import numbers_of, support, terms, weight_of

_COVERED = 0.80, 0.12
_LINKED = 2.4, 1.6
_FALL = 7.7, 4.8
_LINKED_WEIGHT = 0.5
_FALL_WEIGHT = 0.5
_NEXT = 3
_LONG_SENTENCE = 60


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that was shown; `is_linked` says that another passage mentions it."""

    text: str
    score: float = 0.0
    is_linked: bool = False


@dataclass(frozen=True, slots=True)
class RuleAssessment:
    """Four scores from 1 to 10; `missing` are words of the question that no passage has."""

    completeness: float
    accuracy: float
    clarity: float
    specificity: float
    missing: tuple[str, ...] = ()

    @property
    def quality(self) -> float:
        """The mean of the four."""
        parts = (self.completeness, self.accuracy, self.clarity, self.specificity)
        return round(sum(parts) / len(parts), 2)


def assess(question: str, evidence: Sequence[Evidence], answer: str = "") -> RuleAssessment:
    """Return the scores of an answer, or of passages that an answer could be written from."""
    text = "\n".join(one.text for one in evidence)
    return RuleAssessment(
        completeness=_scale(measure_completeness(question, evidence)),
        accuracy=_scale(support(answer, text) if answer else 1.0 if evidence else 0.0),
        clarity=_scale(_measure_clarity(answer or text)),
        specificity=_scale(1.0 if numbers_of(answer or text) else 0.6 if evidence else 0.0),
        missing=_list_missing(question, text),
    )


def measure_completeness(question: str, evidence: Sequence[Evidence]) -> float:
    """Return how likely the passages have all that the question needs, 0 to 1."""
    if not evidence:
        return 0.0
    linked = sum(one.is_linked for one in evidence)
    scores = [one.score for one in evidence]
    following = scores[1 : 1 + _NEXT] or scores
    fall = scores[0] - sum(following) / len(following)
    value = (
        _standardise(_measure_cover(question, evidence), _COVERED)
        + _LINKED_WEIGHT * _standardise(linked, _LINKED)
        - _FALL_WEIGHT * _standardise(fall, _FALL)
    )
    return 1 / (1 + math.exp(-value))


def _measure_cover(question: str, evidence: Sequence[Evidence]) -> float:
    asked = {term: weight_of(term) for term in terms(question)}
    known = {term for one in evidence for term in terms(one.text)}
    total = sum(asked.values())
    return sum(weight for term, weight in asked.items() if term in known) / total if total else 1.0


def _list_missing(question: str, text: str) -> tuple[str, ...]:
    known = set(terms(text))
    asked = dict.fromkeys(terms(question, cut=False))
    return tuple(word for word in asked if weight_of(word) >= 1 and set(terms(word)) - known)


def _measure_clarity(text: str) -> float:
    sentences = [part for part in text.replace("\n", ". ").split(". ") if part.strip()]
    if not sentences:
        return 0.0
    longest = max(len(part.split()) for part in sentences)
    return min(1.0, _LONG_SENTENCE / max(longest, 1))


def _standardise(value: float, scale: tuple[float, float]) -> float:
    mean, deviation = scale
    return (value - mean) / deviation


def _scale(share: float) -> float:
    return round(1 + 9 * max(0.0, min(1.0, share)), 2)
