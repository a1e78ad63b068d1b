"""The weights of verdicts: a logistic model for any requirement, and models of known checklists.

The general model reads what a requirement and a document have in common. A requirement of a
checklist that was used in reviews before also has a calibration: its own level and slopes, learned
from reviewed documents, because a score means something else for every requirement. It is found by
a hash of the requirement's text. `weights.json` is written by `python -m benchmarks.compliance`
from one half of reviewed documents; it has numbers and no text of them.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field

from compliance.verdicts.verdict import Status

STATUSES = (Status.COMPLIANT, Status.VIOLATION, Status.GAP)
WEIGHTS_FILE = Path(__file__).with_name("weights.json")
_SHOWN = 16
Triple = tuple[float, float, float]
"""One number for each of `STATUSES`."""


class VerdictModel(BaseModel, frozen=True):
    """A multinomial logistic model; `thresholds` multiply its probabilities before a choice."""

    bias: Triple
    weights: Mapping[str, Triple]
    thresholds: Triple = (1.0, 1.0, 1.0)


class CalibratedChecklist(BaseModel, frozen=True):
    """A model of one checklist; `requirements` adds a level and slopes by the key of each."""

    name: str
    model: VerdictModel
    centres: Mapping[str, tuple[float, float]] = Field(description="mean and deviation by feature")
    requirements: Mapping[str, tuple[Triple, ...]]


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

    general: VerdictModel
    checklists: tuple[CalibratedChecklist, ...] = ()
    citations: BinaryModel
    conduct: BinaryModel


@cache
def load_weights() -> VerdictWeights:
    """Return the shipped weights."""
    return VerdictWeights.model_validate(json.loads(WEIGHTS_FILE.read_text("utf-8")))


def make_key(requirement: str) -> str:
    """Return the key of a requirement's text; spaces and capitals do not matter."""
    plain = " ".join(requirement.casefold().split())
    return hashlib.sha256(plain.encode()).hexdigest()[:_SHOWN]


def compute_probabilities(
    features: Mapping[str, float], requirement: str, weights: VerdictWeights
) -> tuple[npt.NDArray[np.float64], Triple, bool]:
    """Return the probabilities of `STATUSES`, the thresholds, and whether it is calibrated."""
    key = make_key(requirement)
    for checklist in weights.checklists:
        if key in checklist.requirements:
            values = _add_up(checklist.model, features) + _calibrate(checklist, key, features)
            return _normalise(values), checklist.model.thresholds, True
    return _normalise(_add_up(weights.general, features)), weights.general.thresholds, False


def _calibrate(
    checklist: CalibratedChecklist, key: str, features: Mapping[str, float]
) -> npt.NDArray[np.float64]:
    level, *slopes = (np.array(one) for one in checklist.requirements[key])
    values = level
    for slope, (name, (mean, deviation)) in zip(slopes, checklist.centres.items(), strict=True):
        values = values + slope * (features[name] - mean) / deviation
    found: npt.NDArray[np.float64] = values
    return found


def _add_up(model: VerdictModel, features: Mapping[str, float]) -> npt.NDArray[np.float64]:
    rows = np.array(list(model.weights.values()))
    values = np.array([features[name] for name in model.weights])
    found: npt.NDArray[np.float64] = np.array(model.bias) + values @ rows
    return found


def _normalise(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    shares = np.exp(values - values.max())
    found: npt.NDArray[np.float64] = shares / shares.sum()
    return found
