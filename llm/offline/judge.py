"""Judges each claim without a model, by the share of its words in the cited text.

`SUPPORTED` separates grounded and invented answers best over three public data sets. A claim with a
number, a name, an identifier or a negation that the cited text lacks always fails. Words of
different languages cannot be compared; then only numbers and identifiers are.
"""

from llm.answer_checks.facts import find_differences
from llm.offline.quoting.extracts import subject_terms
from llm.offline.support import foreign_facts, support
from llm.offline.words import content_words
from llm.tasks.judge import Claim, ClaimVerdict, Inputs, Output

SUPPORTED = 0.6
COMPLETE = 0.2
_UNKNOWN = 0.5
_MAY_RESEARCH = 2
_MISSING = 4


def answer(inputs: Inputs) -> Output:
    """Return a verdict for each claim, and how completely the answer covers the question."""
    verdicts = tuple(
        _verdict(claim, inputs.question, foreign=inputs.foreign) for claim in inputs.claims
    )
    completeness, missing = _completeness(inputs)
    failed = [verdict for verdict in verdicts if not verdict.supported]
    if failed or not verdicts:
        return _output(verdicts, completeness, "regenerate", ())
    if completeness < COMPLETE and inputs.attempt < _MAY_RESEARCH:
        return _output(verdicts, completeness, "research", missing)
    return _output(verdicts, completeness, "approve", missing)


def _output(
    verdicts: tuple[ClaimVerdict, ...], completeness: float, decision: str, missing: tuple[str, ...]
) -> Output:
    return Output.model_validate(
        {
            "verdicts": verdicts,
            "completeness": completeness,
            "language_matches": True,
            "decision": decision,
            "missing": missing,
            "analysis": f"{sum(v.supported for v in verdicts)} of {len(verdicts)} claims "
            f"stand in what they cite; {completeness:.2f} of the question is met",
        }
    )


def _verdict(claim: Claim, question: str, *, foreign: bool) -> ClaimVerdict:
    facts = (
        foreign_facts(claim.text, claim.evidence)
        if foreign
        else find_differences(claim.text, claim.evidence, question)
    )
    score = support(claim.text, claim.evidence)
    if facts:
        return ClaimVerdict(
            number=claim.number,
            supported=False,
            support=min(score, SUPPORTED / 2),
            reason=f"not in the cited text: {', '.join(facts[:_MISSING])}",
        )
    if foreign and score < SUPPORTED:
        return ClaimVerdict(
            number=claim.number,
            supported=True,
            support=_UNKNOWN,
            reason="in another language than the source: only numbers and names were compared",
        )
    supported = score >= SUPPORTED
    reason = "" if supported else f"{score:.2f} of its words stand in the cited text"
    return ClaimVerdict(number=claim.number, supported=supported, support=score, reason=reason)


def _completeness(inputs: Inputs) -> tuple[float, tuple[str, ...]]:
    asked = subject_terms(inputs.question)
    if not asked or inputs.foreign:
        return _UNKNOWN, ()
    covered = subject_terms(inputs.answer)
    for claim in inputs.claims:
        covered |= subject_terms(claim.evidence)
    absent = (w for w in content_words(inputs.question) if not covered & subject_terms(w))
    missing = tuple(dict.fromkeys(absent))[:_MISSING]
    return len(asked & covered) / len(asked), missing
