"""Judges an act that a text reports: covered by a ground of the law, or against it.

The rule weighs how often the report speaks of consent that is missing or given, of grounds (a duty
of law, an investigation), and of wrongs. It reads no facts: a person has to decide.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import BaseModel, Field

from compliance.verdicts.polarity import list_clause_polarities
from compliance.verdicts.weights import load_weights
from compliance.wording.cues import split_words

_CONSENT = frozenset({"@consent", "@authorization"})
_GROUNDS: Mapping[str, str] = {"compulsion": "@compelled", "investigation": "@investigation"}
_LACKING = frozenset(
    {"unauthorized", "unauthorised", "improper", "improperly", "inadvertently", "inappropriate",
     "unlawful", "unlawfully", "illegally", "wrongful", "wrongfully", "contravening", "unknowingly",
     "unbefugt", "rechtswidrig", "unrechtmäßig"}
)  # fmt: skip
_THRESHOLD = 0.5


class ConductVerdict(BaseModel, frozen=True):
    """Whether an act seems permitted; `confidence` is the probability of the label, 0 to 1."""

    label: Literal["Permit", "Forbid"]
    confidence: float = Field(ge=0.0, le=1.0)


def judge_conduct(text: str, language: str = "en") -> ConductVerdict:
    """Return whether the act that a text reports seems permitted."""
    forbidden = load_weights().conduct.estimate(compute_conduct_features(text, language))
    if forbidden >= _THRESHOLD:
        return ConductVerdict(label="Forbid", confidence=round(forbidden, 4))
    return ConductVerdict(label="Permit", confidence=round(1 - forbidden, 4))


def compute_conduct_features(text: str, language: str = "en") -> dict[str, float]:
    """Return log(1 + number of clauses) of each kind."""
    counts = dict.fromkeys(("consent_missing", "consent_given", "lacking", *_GROUNDS), 0)
    for kind in _list_kinds(text, language):
        counts[kind] += 1
    counts["lacking"] = sum(word.text in _LACKING for word in split_words(text))
    return {name: math.log1p(count) for name, count in counts.items()}


def _list_kinds(text: str, language: str) -> Iterator[str]:
    for clause in list_clause_polarities(text, language):
        if not clause.features.isdisjoint(_CONSENT):
            yield "consent_missing" if clause.values[4] else "consent_given"
        for kind, concept in _GROUNDS.items():
            if concept in clause.features:
                yield kind
