"""Assesses an answer of the tool loop by rules: see `assessment`."""

from llm.offline.planning.assessment import Evidence, assess
from llm.tasks.assess import Inputs, Output


def answer(inputs: Inputs) -> Output:
    """Return the scores of an answer, and the words of the question that no source has."""
    evidence = [Evidence(text=one.text) for one in inputs.sources]
    found = assess(inputs.question, evidence, inputs.answer)
    return Output(
        missing=found.missing,
        completeness=found.completeness,
        accuracy=found.accuracy,
        clarity=found.clarity,
        specificity=found.specificity,
    )
