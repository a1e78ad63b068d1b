"""Fits ridge logistic models with numpy; the same data give the same weights."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
_STEPS = 400
_RATE = 0.05
_NEWTON_STEPS = 30


def fit_classes(
    values: Matrix, labels: Sequence[int], classes: int, ridge: float
) -> tuple[Matrix, Matrix]:
    """Return weights (a row per feature) and biases of a multinomial model."""
    centres, scales = values.mean(axis=0), values.std(axis=0)
    scales = np.where(scales < 1e-6, 1.0, scales)
    ready = np.c_[(values - centres) / scales, np.ones(len(values))]
    wanted = np.eye(classes)[np.array(labels)]
    weights = np.zeros((ready.shape[1], classes))
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        held = np.r_[weights[:-1], np.zeros((1, classes))] * ridge
        slope = (ready.T @ (compute_shares(ready @ weights) - wanted) + held) / len(ready)
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope * slope
        size = _RATE * (1.0 if step < _STEPS / 2 else 0.2)
        move = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
        weights = weights - size * move
    rows = weights[:-1] / scales[:, None]
    return rows, weights[-1] - (rows * centres[:, None]).sum(axis=0)


def fit_two(
    values: Matrix, labels: Sequence[float], ridge: float, shares: Sequence[float] | None = None
) -> tuple[Matrix, float]:
    """Return weights and bias of a model of two classes; `shares` weighs the rows."""
    wanted = np.array(labels, dtype=float)
    heavy = np.ones(len(wanted)) if shares is None else np.array(shares)
    centres, scales = values.mean(axis=0), values.std(axis=0)
    scales = np.where(scales < 1e-6, 1.0, scales)
    ready = np.c_[(values - centres) / scales, np.ones(len(values))]
    weights = np.zeros(ready.shape[1])
    held = np.full(len(weights), ridge)
    held[-1] = 1e-6
    for _ in range(_NEWTON_STEPS):
        found = 1 / (1 + np.exp(-ready @ weights))
        slope = ready.T @ (heavy * (found - wanted)) + held * weights
        curve = (ready * (heavy * found * (1 - found))[:, None]).T @ ready + np.diag(held)
        weights = weights - np.linalg.solve(curve, slope)
    rows = weights[:-1] / scales
    return rows, float(weights[-1] - (rows * centres).sum())


def choose_thresholds(shares: Matrix, labels: Sequence[int]) -> tuple[float, float, float]:
    """Return factors of three classes that give the best macro-F1 on these rows."""
    gold = np.array(labels)
    best, chosen = -1.0, (1.0, 1.0, 1.0)
    for second in np.linspace(0.4, 4.0, 19):
        for third in np.linspace(0.5, 2.0, 13):
            factors = (1.0, round(float(second), 3), round(float(third), 3))
            score = compute_macro_f1(gold, (shares * np.array(factors)).argmax(axis=1))
            if score > best:
                best, chosen = score, factors
    return chosen


def compute_macro_f1(gold: npt.NDArray[np.int_], found: npt.NDArray[np.int_]) -> float:
    """Return the mean F1 of the classes that occur."""
    scores = []
    for label in np.unique(np.r_[gold, found]):
        both = int(((gold == label) & (found == label)).sum())
        scores.append(2 * both / int((gold == label).sum() + (found == label).sum()))
    return float(np.mean(scores))


def compute_shares(values: Matrix) -> Matrix:
    """Return the probabilities of each row."""
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    found: Matrix = powers / powers.sum(axis=1, keepdims=True)
    return found
