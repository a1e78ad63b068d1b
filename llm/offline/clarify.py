"""Returns the fixed localized text: the offline model words nothing itself."""

from llm.tasks.clarify import Inputs, Output


def answer(inputs: Inputs) -> Output:
    """Return the fixed text."""
    return Output(text=inputs.fixed_text)
