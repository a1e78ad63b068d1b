"""Answers by rules: a calculation, a comparison, a summary, or quotations for each question."""

import re
from collections.abc import Sequence

from llm.offline import respond
from llm.offline.answering.calculations import find_calculation
from llm.offline.answering.comparisons import find_comparison
from llm.offline.answering.summaries import find_summary
from llm.offline.dialogue.subjects import split_subject
from llm.offline.planning.question_parts import read_question, split_aspects
from llm.tasks.respond import Inputs, Output

_CONFIDENCE = 0.9
_BETWEEN = "\n\n"
_CITATION = re.compile(r"(?:\[\d{1,4}\] ?){1,9}")
"""A line of citations, which belongs to the table above it."""


def answer(inputs: Inputs) -> Output:
    """Return an answer that quotes the sources, or that they do not answer."""
    computed = find_calculation(inputs) or find_comparison(inputs) or find_summary(inputs)
    if computed is not None:
        return Output(status="answered", answer=computed, confidence=_CONFIDENCE)
    # A question before this one is its subject, and is not asked once more.
    _, subject = split_subject(inputs.question)
    separate = () if subject else split_aspects(read_question(inputs.question))
    return _answer_each(inputs, separate) if len(separate) > 1 else respond.answer(inputs)


def _answer_each(inputs: Inputs, questions: tuple[str, ...]) -> Output:
    """Return the answers of all questions in their order; the others are named as missing."""
    outputs = [respond.answer(inputs.model_copy(update={"question": one})) for one in questions]
    answered = [one for one in outputs if one.status == "answered"]
    if not answered:
        return respond.answer(inputs)
    pairs = zip(questions, outputs, strict=True)
    return Output(
        status="answered",
        answer=_join([one.answer for one in answered]),
        confidence=min(one.confidence for one in answered),
        missing=" ".join(question for question, one in pairs if one.status != "answered"),
    )


def _join(answers: Sequence[str]) -> str:
    """Return answers one after another, each paragraph with its citation once."""
    found: list[str] = []
    for paragraph in (one for answer in answers for one in answer.split(_BETWEEN)):
        if found and _CITATION.fullmatch(paragraph):
            found[-1] += f"{_BETWEEN}{paragraph}"
        else:
            found.append(paragraph)
    return _BETWEEN.join(dict.fromkeys(found))
