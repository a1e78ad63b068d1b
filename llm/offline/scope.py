"""Decides scope without a model: attacks, small talk, and what the documents cover."""

from llm.offline.essence import names_no_subject
from llm.offline.injection import attack_in
from llm.offline.words import is_small_talk
from llm.tasks.scope import Inputs, Output, Strictness

ACCEPTED_COVERAGE: dict[Strictness, float] = {"low": 0.25, "medium": 0.5, "high": 0.7}
"""The least coverage that is within scope: the calibrated score is made so that at 0.5 about 95 %
of real questions pass."""


def answer(inputs: Inputs) -> Output:
    """Return the verdict: what is no question about the documents is outside."""
    attack = attack_in(inputs.text or inputs.question)
    if attack is not None:
        return Output(
            verdict="outside",
            confidence=0.95,
            analysis=f"an attempt to change how the desk works ({attack})",
        )
    if is_small_talk(inputs.question):
        return Output(verdict="outside", confidence=0.95, analysis="small talk")
    if not inputs.related and names_no_subject(inputs.question):
        return Output(
            verdict="within",
            confidence=0.5,
            analysis="it names no subject to judge; the search asks which one is meant",
        )
    return _by_coverage(inputs)


def _by_coverage(inputs: Inputs) -> Output:
    least = ACCEPTED_COVERAGE[inputs.strictness]
    found = f"the documents cover it with {inputs.coverage:.2f}, {least:.2f} is asked for"
    if inputs.coverage >= least:
        return Output(verdict="within", confidence=inputs.coverage, analysis=found)
    return Output(verdict="outside", confidence=1 - inputs.coverage, analysis=found)
