"""Reviews a document against requirements, in both directions.

From the law to the document, every requirement gets a verdict. From the document to the law, every
clause that obliges, forbids or permits is compared with the requirement that it concerns most: a
clause that contradicts one is a finding even if another passage fulfils the requirement.
"""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel

from compliance.requirements.requirement import Requirement
from compliance.verdicts.deciding import (
    decide_verdict,
    find_language_note,
    list_searched,
    select_evidence,
)
from compliance.verdicts.matching import Match, RequirementQuery, make_query, match_passages
from compliance.verdicts.opposition import find_opposition, share_words
from compliance.verdicts.passages import PreparedDocument, Vector
from compliance.verdicts.verdict import Status, Verdict, VerdictEvidence
from compliance.wording.cues import RuleKind

_READ = 4
"""How many of the best passages are compared with a requirement for contradictions."""
_COVERED, _UNCOVERED = 0.7, 0.4
"""Shares of a requirement's words: above, a passage is about it; below, none is."""

CONFIDENCES = {Status.COMPLIANT: 0.67, Status.VIOLATION: 0.5, Status.GAP: 0.79}
"""How often words alone were right about the documents that weights were fitted on.

A contradiction by words was too rare there to be estimated: it is said to be as likely as not.
"""


class ClauseFinding(BaseModel, frozen=True):
    """A clause of the document that contradicts a requirement."""

    requirement_id: str
    evidence: VerdictEvidence
    reason: str


class ReviewResult(BaseModel, frozen=True):
    """Verdicts in the order of the requirements, and the clauses that contradict one."""

    verdicts: tuple[Verdict, ...]
    clauses: tuple[ClauseFinding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def violations(self) -> tuple[Verdict, ...]:
        """The verdicts of violated requirements."""
        return tuple(one for one in self.verdicts if one.status is Status.VIOLATION)

    @property
    def gaps(self) -> tuple[Verdict, ...]:
        """The verdicts of requirements that no passage fulfils."""
        return tuple(one for one in self.verdicts if one.status is Status.GAP)


def review_document(
    requirements: Sequence[Requirement],
    document: PreparedDocument,
    *,
    language: str = "en",
    vectors: Mapping[str, Vector] | None = None,
) -> ReviewResult:
    """Return the verdicts of all requirements but definitions; `vectors` has those of statements.

    `language` is that of the requirements.
    """
    known = {} if vectors is None else vectors
    rules = [one for one in requirements if one.kind is not RuleKind.DEFINITION]
    verdicts: list[Verdict] = []
    clauses: list[ClauseFinding] = []
    for rule in rules:
        query = make_query(rule.statement, language, known.get(rule.statement))
        verdict, finding = _review(rule, query, document, language)
        verdicts.append(verdict)
        clauses += finding
    note = find_language_note(document, language)
    return ReviewResult(
        verdicts=tuple(verdicts), clauses=tuple(clauses), notes=(note,) if note else ()
    )


def _review(
    rule: Requirement, query: RequirementQuery, document: PreparedDocument, language: str
) -> tuple[Verdict, list[ClauseFinding]]:
    match = match_passages(query, document)
    findings = list(_find_oppositions(rule, query, document, match))
    verdict = decide_verdict(rule.id, query, document, language=language)
    if verdict.is_calibrated:
        return verdict, findings
    share = max(share_words(query, document, own) for own in document.joint_features)
    status = _decide_by_words(share, bool(findings))
    if status is None or (status is verdict.status and not findings):
        return verdict, findings
    read = tuple(one.evidence for one in findings) or tuple(select_evidence(document, match))
    return verdict.model_copy(
        update={
            "status": status,
            "confidence": CONFIDENCES[status],
            "evidence": () if status is Status.GAP else read,
            "searched": list_searched(document, match) if status is Status.GAP else (),
            "note": "; ".join(filter(None, (*(one.reason for one in findings[:1]), verdict.note))),
        }
    ), findings


def _decide_by_words(share: float, is_opposed: bool) -> Status | None:
    """Return the status that words alone decide; None: they are unclear.

    The general model is unsure about a single requirement: a passage with the same words, one that
    turns them round, and their absence are clearer than it.
    """
    if is_opposed:
        return Status.VIOLATION
    if share >= _COVERED:
        return Status.COMPLIANT
    return Status.GAP if share < _UNCOVERED else None


def _find_oppositions(
    rule: Requirement, query: RequirementQuery, document: PreparedDocument, match: Match
) -> Iterator[ClauseFinding]:
    for at in match.order[:_READ]:
        reason = find_opposition(query, document, at)
        if reason:
            passage = document.passages[at]
            score = round(float(match.score[at]), 4)
            evidence = VerdictEvidence(place=passage.place, text=passage.text, score=score)
            yield ClauseFinding(requirement_id=rule.id, evidence=evidence, reason=reason)
