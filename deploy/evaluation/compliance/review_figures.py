"""The figures of the suite `compliance`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from compliance.verdicts.verdict import Status

Figures = dict[str, object]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class JudgedVerdict:
    """A verdict of people and one of ours; `recall` of its evidence, None: nothing to find.

    `position` is that of the document in its file.
    """

    position: int
    gold: Status
    found: Status
    confidence: float
    recall: float | None


@dataclass(frozen=True, slots=True)
class ScoredCitation:
    """Whether a citation is true, and how much speaks for it."""

    position: int
    is_true: bool
    score: float


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A case; labels are empty where the law does not apply; `recall` of five sections."""

    position: int
    gold: str
    found: str
    recall: float | None


def measure_halves(judged: Sequence[T], compute: Callable[[Sequence[T]], Figures]) -> Figures:
    """Return figures of all documents, and of those at even and at odd positions.

    Weights were fitted on even positions only.
    """
    return {
        "all": compute(judged),
        "even positions": compute([one for one in judged if _position(one) % 2 == 0]),
        "odd positions": compute([one for one in judged if _position(one) % 2 == 1]),
    }


def compute_verdict_figures(judged: Sequence[JudgedVerdict]) -> Figures:
    """Return macro-F1 of three and of two statuses, gaps, evidence, and confidence."""
    pairs = [(one.gold, one.found) for one in judged]
    there = [(gold is Status.GAP, found is Status.GAP) for gold, found in pairs]
    recalls = [one.recall for one in judged if one.recall is not None]
    gold_gaps = [found for gold, found in there if gold]
    found_gaps = [gold for gold, found in there if found]
    return {
        "verdicts": len(judged),
        "accuracy": average([gold is found for gold, found in pairs]),
        "macro-F1": compute_macro_f1(pairs, tuple(Status)),
        "macro-F1, there or missing": compute_macro_f1(there, (False, True)),
        **{f"F1 {one.value}": round(compute_f1(pairs, one), 4) for one in Status},
        "gaps, recall": average(gold_gaps),
        "gaps, precision": average(found_gaps),
        "evidence recall": average(recalls),
        "calibration error": compute_calibration_error(judged),
    }


def compute_citation_figures(scored: Sequence[ScoredCitation]) -> Figures:
    """Return how well the score separates true citations from planted ones."""
    true = [one.score for one in scored if one.is_true]
    planted = [one.score for one in scored if not one.is_true]
    return {"citations": len(scored), "AUC": compute_separation(true, planted)}


def compute_case_figures(judged: Sequence[JudgedCase]) -> Figures:
    """Return the recall of sections, and macro-F1 of permitted and forbidden acts."""
    pairs = [(one.gold, one.found) for one in judged if one.gold]
    return {
        "cases": len(judged),
        "sections recall@5": average([one.recall for one in judged if one.recall is not None]),
        "accuracy": average([gold == found for gold, found in pairs]),
        "macro-F1": compute_macro_f1(pairs, ("Permit", "Forbid")),
    }


def compute_macro_f1(pairs: Sequence[tuple[T, T]], labels: Sequence[T]) -> float:
    """Return the mean F1 of the labels that occur in either."""
    own = [label for label in labels if any(label in pair for pair in pairs)]
    return average([compute_f1(pairs, label) for label in own])


def compute_f1(pairs: Sequence[tuple[T, T]], label: T) -> float:
    """Return the F1 of one label; pairs are correct and found."""
    both = sum(gold == label and found == label for gold, found in pairs)
    count = sum((gold == label) + (found == label) for gold, found in pairs)
    return 2 * both / count if count else 0.0


def compute_separation(good: Sequence[float], bad: Sequence[float]) -> float | None:
    """Return the AUC; None: there are only good or only bad ones."""
    if not good or not bad:
        return None
    wins = sum((one > other) + 0.5 * (one == other) for one in good for other in bad)
    return round(wins / (len(good) * len(bad)), 4)


def compute_calibration_error(judged: Sequence[JudgedVerdict], bins: int = 10) -> float:
    """Return the mean difference of confidence and correctness over bins of confidence."""
    if not judged:
        return 0.0
    total = 0.0
    for number in range(bins):
        own = [one for one in judged if min(int(one.confidence * bins), bins - 1) == number]
        right = sum(one.gold is one.found for one in own)
        total += abs(sum(one.confidence for one in own) - right)
    return round(total / len(judged), 4)


def average(values: Sequence[float]) -> float:
    """Return the mean, rounded; 0 of nothing."""
    return round(sum(values) / len(values), 4) if values else 0.0


def _position(judged: object) -> int:
    return int(getattr(judged, "position", 0))
