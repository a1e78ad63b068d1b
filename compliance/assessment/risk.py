"""Ranks the risks of verdicts: category, severity, likelihood, and what would lessen them.

A rule: severity follows from the kind of the rule and its words, likelihood from the status and
the confidence of the verdict.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from pydantic import BaseModel, Field

from compliance.requirements.requirement import Requirement
from compliance.verdicts.verdict import Status, Verdict
from compliance.wording.cues import RuleKind
from compliance.wording.thesaurus import list_concepts


class RiskCategory(StrEnum):
    """The kind of damage."""

    LEGAL = "Legal"
    FINANCIAL = "Financial"
    OPERATIONAL = "Operational"
    COMPLIANCE = "Compliance"
    REPUTATIONAL = "Reputational"


class Risk(BaseModel, frozen=True):
    """One risk; severity and likelihood 1 to 5, `score` their product."""

    requirement_id: str
    category: RiskCategory
    severity: int = Field(ge=1, le=5)
    likelihood: int = Field(ge=1, le=5)
    reason: str
    mitigation: str

    @property
    def score(self) -> int:
        """The product of severity and likelihood, 1 to 25."""
        return self.severity * self.likelihood


_CATEGORIES: Mapping[RiskCategory, frozenset[str]] = {
    RiskCategory.FINANCIAL: frozenset({"@fee", "@liability"}),
    RiskCategory.REPUTATIONAL: frozenset({"@breach", "@disclose", "@public", "@child"}),
    RiskCategory.OPERATIONAL: frozenset(
        {"@encrypt", "@return", "@retain", "@terminate", "@destroy"}
    ),
    RiskCategory.LEGAL: frozenset({"@compelled", "@litigation", "@licence", "@consent", "@lawful"}),
}
_GRAVE = frozenset(
    {"@breach", "@child", "@personal", "@confidential", "@thirdcountry", "@liability"}
)


def rank_risks(
    requirements: Iterable[Requirement], verdicts: Iterable[Verdict]
) -> tuple[Risk, ...]:
    """Return a risk for each violation and gap, the greatest first; a permission has no gap."""
    by_id = {one.id: one for one in requirements}
    found = [
        _assess(by_id[verdict.requirement_id], verdict)
        for verdict in verdicts
        if verdict.status is not Status.COMPLIANT and verdict.requirement_id in by_id
    ]
    return tuple(sorted(found, key=lambda risk: (-risk.score, risk.requirement_id)))


def _assess(requirement: Requirement, verdict: Verdict) -> Risk:
    concepts = list_concepts(requirement.statement)
    severity = 3 + (requirement.kind is RuleKind.BAN) + bool(concepts & _GRAVE)
    severity -= {"mandatory": 0, "recommended": 1, "optional": 2}[requirement.severity]
    likelihood = 4 if verdict.status is Status.VIOLATION else 3
    likelihood += 1 if verdict.confidence >= 0.8 else -1 if verdict.confidence < 0.5 else 0
    if verdict.status is Status.VIOLATION:
        reason = verdict.note or "the document says the opposite of the requirement"
        mitigation = "change the clause that was read so that it agrees with the rule"
    else:
        reason = "no passage of the document fulfils the requirement"
        mitigation = "add a clause that fulfils the rule"
    return Risk(
        requirement_id=requirement.id,
        category=_choose_category(concepts),
        severity=max(1, min(5, severity)),
        likelihood=max(1, min(5, likelihood)),
        reason=reason,
        mitigation=mitigation,
    )


def _choose_category(concepts: frozenset[str]) -> RiskCategory:
    shared = {category: len(concepts & own) for category, own in _CATEGORIES.items()}
    best = max(shared, key=lambda category: shared[category])
    return best if shared[best] else RiskCategory.COMPLIANCE
