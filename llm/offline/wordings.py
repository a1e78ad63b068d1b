"""The rules know no other wordings of a search: they invent no passages."""

from llm.tasks.retrieval.hyde_expansion import Inputs, Output


def answer(_inputs: Inputs) -> Output:
    """Return no wordings: the search is made as it was asked for."""
    return Output()
