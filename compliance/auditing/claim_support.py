"""Measures how far a passage of a document says what a claim says of it.

Shared words alone mislead: a passage that is wrongly cited often repeats the names of parties and
things, and lacks the claim about them. So words count by their information in the document, and the
predicate of the claim counts apart.

coverage, joint      share of the claim's features, by information; with the introducing sentence
rare                 share of its three rarest features
concepts             share of its concepts, by information
has_predicate        whether it has the predicate; has_focus: the rarest feature that occurs
cosine               how alike the texts are, above the mean of the document
length               log(1 + number of words), at most 4.5
ban ... exception    polarity of the clauses with the predicate, else the focus, else all
A*kind               product of a polarity and the kind of the claim
"""

import math
from collections.abc import Mapping

import numpy as np

from compliance.verdicts.matching import Match, RequirementQuery, find_focus, match_passages
from compliance.verdicts.passages import PreparedDocument
from compliance.verdicts.polarity import POLARITIES, measure_polarity
from compliance.verdicts.weights import load_weights
from compliance.wording.cues import RuleKind
from compliance.wording.thesaurus import is_concept

_LONGEST = 4.5
_RAREST = 3
_KINDS = (*RuleKind, "topic")


def score_citation(query: RequirementQuery, document: PreparedDocument, at: int) -> float:
    """Return the probability, 0 to 1, that passage `at` says what the claim says."""
    return load_weights().citations.estimate(compute_support_features(query, document, at))


def compute_support_features(
    query: RequirementQuery, document: PreparedDocument, at: int, match: Match | None = None
) -> dict[str, float]:
    """Return the features of a claim and a passage by name; all are finite."""
    found = match_passages(query, document) if match is None else match
    weights = {one: document.weigh(one) for one in sorted(query.features)} or {"": 1.0}
    own = document.joint_features[at]
    rarest = sorted(weights, key=lambda one: -weights[one])[:_RAREST]
    concepts = {one: value for one, value in weights.items() if is_concept(one)}
    focus = find_focus(query, document)
    polarity = _find_polarity(query, focus, document, at)
    kind = "topic" if query.kind is None else query.kind
    base = {
        "coverage": float(found.coverage[at]),
        "joint": float(found.joint_coverage[at]),
        "rare": sum(one in own for one in rarest) / len(rarest),
        "concepts": _sum_shared(concepts, own) / max(sum(concepts.values()), 1e-9),
        "has_predicate": float(query.predicate in own),
        "has_focus": float(focus in own),
        "cosine": float(found.cosine[at] - np.mean(found.cosine)),
        "length": min(float(document.lengths[at]), _LONGEST),
        "has_lead": float(document.leads[at] is not None),
        "missing": max([weights[one] for one in weights if one not in own], default=0.0),
        "passages": math.log(len(document)),
    }
    products = {
        f"{name}*{one}": value * (one == kind) for name, value in polarity.items() for one in _KINDS
    }
    return {**base, **polarity, **products}


def _sum_shared(weights: Mapping[str, float], own: frozenset[str]) -> float:
    return sum(value for one, value in weights.items() if one in own)


def _find_polarity(
    query: RequirementQuery, focus: str, document: PreparedDocument, at: int
) -> dict[str, float]:
    clauses = document.clauses[at]
    for wanted in ({query.predicate}, {focus}, query.features):
        values = measure_polarity(clauses, wanted)
        if values is not None:
            return dict(zip(POLARITIES, values, strict=True))
    return dict.fromkeys(POLARITIES, 0.0)
