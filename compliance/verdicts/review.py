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
    select_evidence,
)
from compliance.verdicts.matching import Match, RequirementQuery, make_query, match_passages
from compliance.verdicts.opposition import find_opposition, is_plain, list_periods, share_words
from compliance.verdicts.passages import PreparedDocument, Vector
from compliance.verdicts.verdict import Status, Verdict, VerdictEvidence
from compliance.wording.cues import RuleKind

_READ = 4
"""How many of the best passages are compared with a requirement for contradictions."""
_COVERED = 0.7
"""A passage with this share of a requirement's words is about it."""
CONFIDENCE_OF_WORDS = 0.5
"""Words that decide are said to be as likely right as not.

No document that weights were fitted on has clauses as plain as that, so nothing could be estimated.
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
        verdict, finding = review_requirement(rule.id, query, document, language=language)
        verdicts.append(verdict)
        clauses += finding
    note = find_language_note(document, language)
    return ReviewResult(
        verdicts=tuple(verdicts), clauses=tuple(clauses), notes=(note,) if note else ()
    )


def review_requirement(
    name: str, query: RequirementQuery, document: PreparedDocument, *, language: str = "en"
) -> tuple[Verdict, list[ClauseFinding]]:
    """Return the verdict of one requirement and the clauses that contradict it.

    The model of the weights decides where words alone are unclear.
    """
    match = match_passages(query, document)
    findings = list(_find_oppositions(name, query, document, match))
    verdict = decide_verdict(name, query, document, language=language)
    status = _decide_by_words(query, document, verdict, is_opposed=bool(findings))
    if status is None:
        return verdict, findings
    read = tuple(one.evidence for one in findings) or tuple(select_evidence(document, match))
    return verdict.model_copy(
        update={
            "status": status,
            "confidence": CONFIDENCE_OF_WORDS,
            "evidence": read,
            "searched": (),
            "note": "; ".join(filter(None, (*(one.reason for one in findings[:1]), verdict.note))),
        }
    ), findings


def _decide_by_words(
    query: RequirementQuery, document: PreparedDocument, verdict: Verdict, *, is_opposed: bool
) -> Status | None:
    """Return the status that words alone decide; None: the model's verdict stays.

    The model is unsure about plain clauses: one that turns a requirement round violates it, and one
    with the same words is no gap. The name of a topic has too few words to be compared so.
    """
    if is_opposed:
        return Status.VIOLATION
    if query.kind is None or verdict.status is not Status.GAP:
        return None
    is_covered = any(
        is_plain(query, document, at) and share_words(query, document, own) >= _COVERED
        for at, own in enumerate(document.joint_features)
    )
    return Status.COMPLIANT if is_covered else None


def _find_oppositions(
    name: str, query: RequirementQuery, document: PreparedDocument, match: Match
) -> Iterator[ClauseFinding]:
    read = match.order[:_READ]
    shares = {at: share_words(query, document, document.joint_features[at]) for at in read}
    # Where a clause with a period is about the requirement, the period of another one is not.
    is_covered = any(
        shares[at] >= _COVERED and list_periods(document.passages[at].text) for at in read
    )
    for at in read:
        reason = find_opposition(query, document, at)
        if reason and (shares[at] >= _COVERED or not is_covered):
            passage = document.passages[at]
            score = round(float(match.score[at]), 4)
            evidence = VerdictEvidence(place=passage.place, text=passage.text, score=score)
            yield ClauseFinding(requirement_id=name, evidence=evidence, reason=reason)
