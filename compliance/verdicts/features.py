"""The features of a requirement and a document, from which a verdict is decided.

score1, score2, score3   best score, second, mean of the best three (`compliance.verdicts.matching`)
peak                     best score, in deviations from the mean of all passages
coverage, joint, cosine  the best of each over all passages; cosine3: the mean of the best three
passages                 log(number of passages)
whole, rare, rare_first  best coverage among the best passages; best share, and that of the first,
                         of the three rarest features that a passage has
missing, missing_least   information of the weightiest feature that the first passage lacks, and
                         of that which the fullest of the best passages lacks
known, known_weight      share of the features that occur at all, and of their information
focus_weight, focus_count, predicate_weight, predicate_count
                         information and log number of passages of the rarest feature that occurs,
                         and of the predicate
has_focus, has_predicate whether one of the best passages has it
focus.*, predicate.*     polarity of the clauses of the best passages that have it
passage.*                polarity cues of the best passages as a whole
is.*                     kind of the requirement; `only`, `some`
A.B                      product of a polarity or score and a kind: what forbids a permission
"""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from compliance.verdicts.matching import Match, RequirementQuery, find_focus, weigh_features
from compliance.verdicts.passages import PreparedDocument
from compliance.verdicts.polarity import POLARITIES, measure_polarity
from compliance.wording.cues import RuleKind

BEST = 6
"""How many of the best passages are read."""
_SHARPNESS = 4.0
_RAREST = 3
_KINDS = (RuleKind.DUTY, RuleKind.BAN, RuleKind.PERMISSION, "only", "some")


def compute_features(
    query: RequirementQuery, document: PreparedDocument, match: Match
) -> dict[str, float]:
    """Return the features by name; all are finite."""
    best = match.order[:BEST]
    kinds = dict(_describe_kind(query))
    scores = dict(_measure_scores(match, best))
    found = dict(_measure_coverage(query, document, match, best))
    focus = find_focus(query, document)
    polarity = {
        **_measure_clauses("focus", focus, document, match, best),
        **_measure_clauses("predicate", query.predicate, document, match, best),
        **_measure_passages(document, best),
    }
    crossed = {**polarity, "score1": scores["score1"], "rare": found["rare"]}
    products = {
        f"{name}*{kind}": value * is_kind
        for name, value in crossed.items()
        for kind, is_kind in kinds.items()
    }
    return {**scores, **found, **polarity, **kinds, **products}


def _describe_kind(query: RequirementQuery) -> Iterator[tuple[str, float]]:
    truths = {
        "only": query.is_exclusive,
        "some": query.is_partial,
    }
    for kind in _KINDS:
        yield f"is.{kind}", float(truths.get(kind, kind == query.kind))


def _measure_scores(match: Match, best: Sequence[int]) -> Iterator[tuple[str, float]]:
    score = match.score
    yield "score1", float(score[best[0]])
    yield "score2", float(score[best[min(1, len(best) - 1)]])
    yield "score3", float(score[list(best[:3])].mean())
    yield "peak", float((score[best[0]] - score.mean()) / max(float(score.std()), 1e-6))
    yield "coverage", float(match.coverage.max())
    yield "joint", float(match.joint_coverage.max())
    yield "cosine", float(match.cosine.max())
    yield "cosine3", float(np.sort(match.cosine)[-3:].mean())
    yield "passages", math.log(len(score))


def _measure_coverage(
    query: RequirementQuery, document: PreparedDocument, match: Match, best: Sequence[int]
) -> Iterator[tuple[str, float]]:
    weights = weigh_features(query, document) or {"": 1.0}
    rarest = sorted(weights, key=lambda one: -weights[one])[:_RAREST]
    own = [document.joint_features[at] for at in best]
    rare = [sum(one in features for one in rarest) / len(rarest) for features in own]
    lacks = [max([weights[w] for w in weights if w not in of], default=0.0) for of in own]
    known = [one for one in weights if one in document.counts]
    focus = find_focus(query, document)
    yield "whole", max(float(match.joint_coverage[at]) for at in best)
    yield "rare", max(rare)
    yield "rare_first", rare[0]
    yield "missing", lacks[0]
    yield "missing_least", min(lacks)
    yield "known", len(known) / len(weights)
    yield "known_weight", sum(weights[one] for one in known) / sum(weights.values())
    yield "focus_weight", document.weigh(focus) if focus else 0.0
    yield "focus_count", math.log1p(document.counts.get(focus, 0))
    yield "predicate_weight", weights.get(query.predicate, 0.0)
    yield "predicate_count", math.log1p(document.counts.get(query.predicate, 0))


def _measure_clauses(
    name: str, feature: str, document: PreparedDocument, match: Match, best: Sequence[int]
) -> Mapping[str, float]:
    total = 0.0
    sums = np.zeros(len(POLARITIES))
    for at in best:
        values = measure_polarity(document.clauses[at], (feature,))
        if values is not None:
            weight = math.exp(_SHARPNESS * (match.score[at] - match.score[best[0]]))
            total += weight
            sums += weight * np.array(values)
    means = sums / total if total else sums
    found = {f"{name}.{key}": float(one) for key, one in zip(POLARITIES, means, strict=True)}
    return {**found, f"has_{name}": float(total > 0.0)}


def _measure_passages(document: PreparedDocument, best: Sequence[int]) -> Mapping[str, float]:
    rows = [
        tuple(max(column) for column in zip(*(one.values for one in clauses), strict=True))
        for at in best
        if (clauses := document.clauses[at])
    ]
    means = np.array(rows).mean(axis=0) if rows else np.zeros(len(POLARITIES))
    return {f"passage.{key}": float(one) for key, one in zip(POLARITIES, means, strict=True)}
