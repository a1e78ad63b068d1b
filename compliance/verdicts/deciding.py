"""Decides whether a document fulfils a requirement."""

from collections.abc import Iterable, Sequence

import numpy as np

from compliance.requirements.requirement import TextPlace
from compliance.verdicts.features import BEST, compute_features
from compliance.verdicts.matching import Match, RequirementQuery, match_passages
from compliance.verdicts.passages import PreparedDocument
from compliance.verdicts.verdict import Status, Verdict, VerdictEvidence
from compliance.verdicts.weights import (
    STATUSES,
    compute_probabilities,
    load_weights,
)

EVIDENCE = 3
"""How many passages a verdict names at most."""
_NEAR = 0.8
"""Passages with at least this share of the best score are evidence too."""
_LANGUAGES_NOTE = (
    "the document is in {found!r} and the rule in {expected!r}: words were compared by shared "
    "concepts only, so this verdict needs a person"
)


def decide_verdicts(
    queries: Iterable[tuple[str, RequirementQuery]],
    document: PreparedDocument,
    *,
    language: str = "en",
) -> tuple[Verdict, ...]:
    """Return the verdict of each requirement, by id; `language` is that of the requirements."""
    return tuple(
        decide_verdict(name, query, document, language=language) for name, query in queries
    )


def decide_verdict(
    name: str,
    query: RequirementQuery,
    document: PreparedDocument,
    *,
    language: str = "en",
) -> Verdict:
    """Return the verdict of one requirement; a note names a document in another language."""
    match = match_passages(query, document)
    features = compute_features(query, document, match)
    weights = load_weights()
    model = weights.topics if query.kind is None else weights.rules
    probabilities = compute_probabilities(features, model)
    best = int(np.argmax(probabilities * np.array(model.thresholds)))
    status = STATUSES[best]
    return Verdict(
        requirement_id=name,
        status=status,
        confidence=round(float(probabilities[best]), 4),
        evidence=() if status is Status.GAP else tuple(select_evidence(document, match)),
        searched=list_searched(document, match) if status is Status.GAP else (),
        note=find_language_note(document, language),
    )


def select_evidence(
    document: PreparedDocument, match: Match, most: int = EVIDENCE
) -> Iterable[VerdictEvidence]:
    """Yield the best passage, and those that are nearly as good."""
    least = _NEAR * float(match.score[match.order[0]])
    for at in match.order[:most]:
        passage = document.passages[at]
        if at == match.order[0] or match.score[at] >= least:
            score = round(float(match.score[at]), 4)
            yield VerdictEvidence(place=passage.place, text=passage.text, score=score)


def select_within_budget(matches: Sequence[Match], budget: int) -> tuple[int, ...]:
    """Return `budget` different passages: the best of every requirement in turn, then the next."""
    chosen: dict[int, None] = {}
    depth = max((len(match.order) for match in matches), default=0)
    for rank in range(depth):
        for match in matches:
            if len(chosen) >= budget:
                return tuple(chosen)
            chosen.setdefault(match.order[rank])
    return tuple(chosen)


def list_searched(document: PreparedDocument, match: Match) -> tuple[TextPlace, ...]:
    """Return the places that were read in vain."""
    return tuple(document.passages[at].place for at in match.order[:BEST])


def find_language_note(document: PreparedDocument, language: str) -> str:
    """Return a note about a document that is not in the language of the requirements, or ""."""
    if document.language == language:
        return ""
    return _LANGUAGES_NOTE.format(found=document.language, expected=language)
