"""Ranks the passages of a document by how much they concern a requirement.

The score is the share of the requirement's features, weighted by their information, that a passage
has, plus the cosine of both where there are vectors. An item of a list also has the features of the
sentence that introduces it, at a discount. Of the name of a topic, words that the document never
uses count nothing: a heading is worded by its drafter, and only concepts are the same everywhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compliance.verdicts.passages import Floats, PreparedDocument, Vector
from compliance.wording.cues import RuleKind, find_cues, split_words
from compliance.wording.thesaurus import find_features, is_concept, list_features

_COSINE_WEIGHT = 0.6
_LEAD_DISCOUNT = 0.9
_HEADING_PENALTY = 0.3
_HEADING_LENGTH = 2.0
_TITLE_WORD = 4
"""Shorter words, such as "of" and "for", are not capitalised in titles."""


@dataclass(frozen=True, slots=True)
class RequirementQuery:
    """A requirement in the form that is compared; `kind` None: only the name of a topic.

    `predicate` is the first concept after the cue.
    """

    text: str
    features: frozenset[str]
    predicate: str
    kind: RuleKind | None
    is_exclusive: bool
    is_partial: bool
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """The passages of a document for one query; all arrays have a value per passage."""

    score: Floats
    coverage: Floats
    joint_coverage: Floats
    cosine: Floats
    order: tuple[int, ...]


def make_query(text: str, language: str = "en", vector: Vector | None = None) -> RequirementQuery:
    """Return a requirement, or a topic that a document must disclose, for comparing."""
    words = split_words(text)
    cues = find_cues(words, language, *RuleKind)
    rest = text[cues[0].end :] if cues else text
    after = list_features(rest, language) or list_features(text, language)
    predicate = next((one for one in after if is_concept(one)), after[0] if after else "")
    spelled = {word.text for word in words}
    return RequirementQuery(
        text=text,
        features=find_features(text, language),
        predicate=predicate,
        kind=None if is_title(text) or not cues else RuleKind(cues[0].group),
        is_exclusive=not spelled.isdisjoint({"only", "solely", "nur", "ausschließlich"}),
        is_partial=not spelled.isdisjoint({"some", "einige", "manche"}),
        vector=vector,
    )


def match_passages(query: RequirementQuery, document: PreparedDocument) -> Match:
    """Return the scores of all passages, and their indices with the best first."""
    weights = weigh_features(query, document)
    coverage = _cover(weights, document.features)
    joint = _cover(weights, document.joint_features)
    cosine = _compute_cosines(query, document)
    score = np.maximum(coverage, _LEAD_DISCOUNT * joint) + _COSINE_WEIGHT * cosine
    score = score - _HEADING_PENALTY * (document.lengths < _HEADING_LENGTH)
    order = tuple(int(one) for one in np.argsort(-score, kind="stable"))
    return Match(score, coverage, joint, cosine, order)


def weigh_features(query: RequirementQuery, document: PreparedDocument) -> dict[str, float]:
    """Return the information of the features of a query that are compared."""
    known = sorted(query.features)
    if query.kind is None:
        known = [one for one in known if is_concept(one) or one in document.counts] or known
    return {one: document.weigh(one) for one in known}


def is_title(text: str) -> bool:
    """Return whether a text is a heading in capitals: "Mandatory Access" obliges nobody."""
    words = [one for one in text.split() if len(one) >= _TITLE_WORD]
    return bool(words) and text[-1].isalpha() and all(one[0].isupper() for one in words)


def find_focus(query: RequirementQuery, document: PreparedDocument) -> str:
    """Return the feature of a query that is rarest in the document but occurs; empty: none."""
    there = [one for one in sorted(query.features) if one in document.counts]
    return max(there, key=document.weigh, default="")


def _cover(weights: Mapping[str, float], features: Sequence[frozenset[str]]) -> Floats:
    total = max(sum(weights.values()), 1e-9)
    shares = [sum([weights[one] for one in own & weights.keys()]) / total for own in features]
    return np.array(shares, dtype=float)


def _compute_cosines(query: RequirementQuery, document: PreparedDocument) -> Floats:
    if query.vector is None or document.vectors is None:
        return np.zeros(len(document))
    vector = np.asarray(query.vector, dtype=np.float32)
    return np.asarray(document.vectors @ vector, dtype=float)
