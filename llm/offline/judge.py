"""Judges nothing: whether a source supports a sentence is decided by a model, never by rules."""

from llm.tasks.judge import Inputs, Output


def answer(inputs: Inputs) -> Output:
    """Return an output that says that no claim was read."""
    return Output(
        claims_read=0, completeness=0, accuracy=0, language_matches=True, decision="approve"
    )
