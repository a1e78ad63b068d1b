"""Decides about the scope without a model: by attacks, small talk and coverage."""

from llm.attacks.injection import attack_in
from llm.offline.dialogue.subjects import names_no_subject
from llm.offline.planning.review_planning import plan_review
from llm.offline.words import is_small_talk
from llm.tasks.scope import Inputs, Output, Strictness

ACCEPTED_COVERAGE: dict[Strictness, float] = {"low": 0.25, "medium": 0.5, "high": 0.7}
"""The least coverage within scope; the score is calibrated so that about 95 % of real questions
have at least 0.5."""

CERTAIN_COVERAGE = 0.98
"""The least coverage at which a question is within scope without a model call: of questions about
other subjects, fewer than 1 in 100 have it (`docs/evaluation.md`)."""
_OPEN = 0.5
LEAST_COVERAGE = 0.1


def answer(inputs: Inputs) -> Output:
    """Return the verdict; only questions about the documents are within scope."""
    attack = ", ".join(inputs.signs) or attack_in(inputs.text or inputs.question)
    if attack is not None:
        return Output(
            verdict="outside",
            confidence=0.95,
            analysis=f"an attempt to change how the desk works ({attack})",
        )
    if is_small_talk(inputs.question):
        return Output(verdict="outside", confidence=0.95, analysis="small talk")
    if inputs.reviews_documents and plan_review(inputs.question) is not None:
        return Output(
            verdict="within",
            confidence=ACCEPTED_COVERAGE["medium"],
            analysis="it asks for a review; whoever does it knows which documents there are",
        )
    if _is_open(inputs):
        return Output(
            verdict="within",
            confidence=inputs.coverage,
            analysis="it names no subject to judge; the search asks which one is meant",
        )
    return _by_coverage(inputs)


def _is_open(inputs: Inputs) -> bool:
    """Return whether the question names no subject but the documents may cover it."""
    subjectless = not inputs.related and names_no_subject(inputs.question)
    return subjectless and inputs.coverage >= LEAST_COVERAGE


def _by_coverage(inputs: Inputs) -> Output:
    least = ACCEPTED_COVERAGE[inputs.strictness]
    found = f"the documents cover it with {inputs.coverage:.2f}, {least:.2f} is asked for"
    if inputs.coverage >= least:
        return Output(verdict="within", confidence=inputs.coverage, analysis=found)
    if inputs.ambiguity > _OPEN:
        return Output(
            verdict="unclear", confidence=1 - inputs.coverage, analysis=f"{found}; it is vague"
        )
    return Output(verdict="outside", confidence=1 - inputs.coverage, analysis=found)
