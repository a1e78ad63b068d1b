"""Adds no sentences to a report: its parts are composed from the findings."""

from llm.tasks.specialists.report_generator import Inputs, Output


def answer(inputs: Inputs) -> Output:
    """Return nothing to add."""
    return Output()
