"""Quotes the result of a calculation that the question asks for."""

from envelope.sources import TOOL_SOURCE
from llm.offline.planning.question_parts import read_question
from llm.tasks.respond import Inputs


def find_calculation(inputs: Inputs) -> str | None:
    """Return the result of the expression in the question with its source, or None."""
    expression = read_question(inputs.question).arithmetic
    if not expression:
        return None
    return next(
        (
            f"{source.text} [{source.number}]"
            for source in inputs.sources
            if source.chunk_id.startswith(TOOL_SOURCE)
            and source.text.startswith(f"{expression} = ")
        ),
        None,
    )
