"""Fits the weights of `knowledge.answerability` on labelled searches.

Two logistic models with a ridge on standardised features, fitted by Newton's method. Every
collection weighs the same, and within it every label as `_LABELS` says; so a collection with many
questions, or a label that is easy to collect, does not decide.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.quality.scope_report.corpora import IN_SCOPE
from benchmarks.quality.scope_report.features import Features, Measured
from knowledge.answerability import Assessment

Array = npt.NDArray[np.float64]
DECISIONS = ("answer", "ask", "refuse")
ACCEPTED = 0.95
RIDGE = 15.0
_STEPS = 30
_LABELS = {IN_SCOPE: 1.5, "near": 0.7, "far": 0.5, "chitchat": 0.3}


@dataclass(frozen=True, slots=True)
class LinearModel:
    """A bias and a weight per feature and class, for features as the search gives them."""

    names: tuple[str, ...]
    bias: Array
    weights: Array

    def sum(self, features: Features) -> Array:
        """Return the sum for each class."""
        values = np.array([features.get(name, 0.0) for name in self.names])
        sums: Array = self.bias + values @ self.weights
        return sums


@dataclass(frozen=True, slots=True)
class Fitted:
    """What `knowledge.answerability` holds as constants."""

    covered: LinearModel
    asked: LinearModel

    def assess(self, features: Features) -> Assessment:
        """Return the probabilities; a search that found nothing is refused."""
        if not features:
            return Assessment(0.0, 0.0, 0.0)
        coverage = float(_softmax(self.covered.sum(features)[None])[0, 0])
        answer, ask = (float(share) for share in _softmax(self.asked.sum(features)[None])[0, :2])
        return Assessment(answerability=answer, coverage=coverage, ambiguity=ask)


def fit(measured: Sequence[Measured], covered: tuple[str, ...], asked: tuple[str, ...]) -> Fitted:
    """Return the weights for these features; only what may be fitted on is looked at."""
    return Fitted(_fit_coverage(measured, covered), _fit_decision(measured, asked))


def _fit_coverage(measured: Sequence[Measured], names: tuple[str, ...]) -> LinearModel:
    """Return weights that give 95 % of the questions in scope, of the mean collection, half."""
    rows = [one for one in measured if one.fitted and one.label and one.scope]
    importance = _balance([(one.collection, one.label) for one in rows], _LABELS)
    classes = [0 if one.label == IN_SCOPE else 1 for one in rows]
    found = _fit_classes([one.scope for one in rows], names, classes, 2, importance)
    inside = [(one.collection, found.sum(one.scope)[0]) for one in rows if one.label == IN_SCOPE]
    each = Counter(name for name, _ in inside)
    shares = np.array([1 / each[name] for name, _ in inside])
    values = np.array([value for _, value in inside])
    order = np.argsort(values)
    passed = np.cumsum(shares[order]) / shares.sum()
    least = values[order][int(np.searchsorted(passed, 1 - ACCEPTED))]
    return LinearModel(names, found.bias - least, found.weights)


def _fit_decision(measured: Sequence[Measured], names: tuple[str, ...]) -> LinearModel:
    rows = [one for one in measured if one.fitted and one.decision and (one.answer or one.scope)]
    importance = _balance([("", one.decision) for one in rows], {})
    classes = [DECISIONS.index(one.decision) for one in rows]
    return _fit_classes([one.answer or one.scope for one in rows], names, classes, 3, importance)


def _balance(keys: Sequence[tuple[str, str]], label_weights: Mapping[str, float]) -> Array:
    """Return an importance per row, so that the labels of each collection weigh as stated."""
    counts = Counter(keys)
    raw = np.array([label_weights.get(label, 1.0) / counts[name, label] for name, label in keys])
    totals = dict.fromkeys((name for name, _ in keys), 0.0)
    for (name, _), value in zip(keys, raw, strict=True):
        totals[name] += float(value)
    balanced = np.array([value / totals[name] for (name, _), value in zip(keys, raw, strict=True)])
    importance: Array = balanced / balanced.mean()
    return importance


def _fit_classes(
    features: Sequence[Features],
    names: tuple[str, ...],
    classes: Sequence[int],
    count: int,
    importance: Array,
) -> LinearModel:
    """Fit a multinomial logistic model whose last class is the reference."""
    values = np.array([[one.get(name, 0.0) for name in names] for one in features])
    mean, spread = values.mean(axis=0), values.std(axis=0) + 1e-9
    inputs = np.column_stack([np.ones(len(values)), (values - mean) / spread])
    size = inputs.shape[1]
    wanted = np.eye(count)[np.asarray(classes)][:, :-1]
    ridge = np.tile(np.r_[1e-6, np.full(size - 1, RIDGE)], count - 1)
    found = np.zeros((count - 1) * size)
    for _ in range(_STEPS):
        matrix = found.reshape(count - 1, size)
        shares = _softmax(inputs @ matrix.T)[:, :-1]
        slope = ((shares - wanted) * importance[:, None]).T @ inputs
        bend = np.zeros((len(found), len(found)))
        for one in range(count - 1):
            for other in range(count - 1):
                own = shares[:, one] * ((one == other) - shares[:, other]) * importance
                block = (inputs * own[:, None]).T @ inputs
                bend[one * size : (one + 1) * size, other * size : (other + 1) * size] = block
        step = np.linalg.solve(bend + np.diag(ridge), slope.ravel() + ridge * found)
        found -= step
    matrix = found.reshape(count - 1, size)
    weights = matrix[:, 1:] / spread
    return LinearModel(names, matrix[:, 0] - weights @ mean, weights.T)


def _softmax(sums: Array) -> Array:
    """Return the shares of the classes; the last one, the reference, has the sum 0."""
    all_sums = np.column_stack([sums, np.zeros(len(sums))])
    raised = np.exp(all_sums - all_sums.max(axis=1, keepdims=True))
    shares: Array = raised / raised.sum(axis=1, keepdims=True)
    return shares
