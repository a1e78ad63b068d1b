"""Writes the findings of a review as a list; an answer from passages needs a model."""

from llm.errors import NoModel
from llm.tasks.specialists.synthesis import FindingText, Inputs, Output


def answer(inputs: Inputs) -> Output:
    """Return the findings as a list; raises `NoModel` without findings."""
    if not inputs.findings:
        raise NoModel("expected a model that writes an answer from passages, found none: set one")
    first, *others = map(_cite, inputs.findings)
    return Output(answer="\n".join([first, "", *(f"- {one}" for one in others)]).strip())


def _cite(finding: FindingText) -> str:
    return " ".join((finding.text, "".join(f"\\cite{{{one}}}" for one in finding.sources)))
