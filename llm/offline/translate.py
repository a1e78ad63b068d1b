"""Leaves a text as it came: without a model nothing is translated, and the confidence says so."""

from llm.tasks.translate import Inputs, Output


def answer(inputs: Inputs) -> Output:
    """Return the text unchanged, certain when it is English already."""
    return Output(text_eng=inputs.text, confidence=1.0 if inputs.language == "en" else 0.0)
