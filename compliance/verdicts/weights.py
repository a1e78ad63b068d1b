"""The weights of verdicts: a logistic model of what a requirement and a document have in common.

One model decides about all rules, and one about all names of topics; nothing is looked up by a
requirement's text.
`weights.json` is written by `python -m benchmarks.compliance` from one half of reviewed documents;
it has numbers and no text of them.
"""

import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel

from compliance.verdicts.verdict import Status

STATUSES = (Status.COMPLIANT, Status.VIOLATION, Status.GAP)
WEIGHTS_FILE = Path(__file__).with_name("weights.json")
Triple = tuple[float, float, float]
"""One number for each of `STATUSES`."""


class VerdictModel(BaseModel, frozen=True):
    """A multinomial logistic model; `thresholds` multiply its probabilities before a choice."""

    bias: Triple
    weights: Mapping[str, Triple]
    thresholds: Triple = (1.0, 1.0, 1.0)


class BinaryModel(BaseModel, frozen=True):
    """A logistic model of one claim, such as that a citation is true."""

    bias: float
    weights: Mapping[str, float]

    def estimate(self, features: Mapping[str, float]) -> float:
        """Return the probability, 0 to 1."""
        value = self.bias + sum(features[name] * one for name, one in self.weights.items())
        return 1 / (1 + math.exp(-max(min(value, 50.0), -50.0)))


class VerdictWeights(BaseModel, frozen=True):
    """All models."""

    rules: VerdictModel
    topics: VerdictModel
    citations: BinaryModel
    conduct: BinaryModel


@cache
def load_weights() -> VerdictWeights:
    """Return the shipped weights."""
    return VerdictWeights.model_validate(json.loads(WEIGHTS_FILE.read_text("utf-8")))


def compute_probabilities(
    features: Mapping[str, float], model: VerdictModel
) -> npt.NDArray[np.float64]:
    """Return the probabilities of `STATUSES`."""
    return _normalise(_add_up(model, features))


def _add_up(model: VerdictModel, features: Mapping[str, float]) -> npt.NDArray[np.float64]:
    rows = np.array(list(model.weights.values()))
    values = np.array([features[name] for name in model.weights])
    found: npt.NDArray[np.float64] = np.array(model.bias) + values @ rows
    return found


def _normalise(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    shares = np.exp(values - values.max())
    found: npt.NDArray[np.float64] = shares / shares.sum()
    return found
