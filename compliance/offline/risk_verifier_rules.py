"""Ranks risks by the kind of the rule, its words, and the status and confidence of the verdict."""

from collections.abc import Iterable, Sequence

from compliance.assessment.risk import rank_risks
from compliance.requirements.requirement import Requirement, TextPlace
from compliance.verdicts.verdict import Status, Verdict
from compliance.wording.cues import RuleKind
from llm.tasks.specialists.material import KnownRequirement, KnownVerdict
from llm.tasks.specialists.risk_verifier import Inputs, Output, RankedRisk

_NOWHERE = TextPlace(document_id="", unit_id="", start=0, end=0)


def answer(inputs: Inputs) -> Output:
    """Return a risk for each violation and gap, the greatest first."""
    risks = rank_risks(restore_requirements(inputs.requirements), restore_verdicts(inputs.verdicts))
    return Output(
        risks=tuple(
            RankedRisk(
                requirement_id=one.requirement_id,
                category=one.category.value,
                severity=one.severity,
                likelihood=one.likelihood,
                reason=one.reason,
                mitigation=one.mitigation,
            )
            for one in risks
        )
    )


def restore_requirements(known: Iterable[KnownRequirement]) -> tuple[Requirement, ...]:
    """Return requirements as the core has them, without their places."""
    return tuple(
        Requirement.model_validate(
            {
                "id": one.id,
                "kind": RuleKind(one.kind),
                "text": one.statement,
                "place": _NOWHERE,
                "addressee": one.addressee,
                "condition": one.condition,
                "severity": one.severity,
            }
        )
        for one in known
    )


def restore_verdicts(known: Sequence[KnownVerdict]) -> tuple[Verdict, ...]:
    """Return verdicts as the core has them, without their evidence."""
    return tuple(
        Verdict(
            requirement_id=one.requirement_id,
            status=Status(one.status),
            confidence=one.confidence,
            note=one.note,
        )
        for one in known
    )
