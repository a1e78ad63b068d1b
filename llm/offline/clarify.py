"""Says the fixed localized text: without a model nothing is worded anew."""

from llm.tasks.clarify import Inputs, Output


def answer(inputs: Inputs) -> Output:
    """Return the fixed text."""
    return Output(text=inputs.fixed_text)
