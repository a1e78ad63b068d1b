"""Answers by rules: a calculation, a comparison of versions, or quotations for each question."""

from llm.offline import respond
from llm.offline.answering.calculations import find_calculation
from llm.offline.answering.comparisons import find_comparison
from llm.offline.dialogue.several_questions import split_questions
from llm.offline.dialogue.subjects import split_subject
from llm.tasks.respond import Inputs, Output

_CONFIDENCE = 0.9


def answer(inputs: Inputs) -> Output:
    """Return an answer that quotes the sources, or that they do not answer."""
    computed = find_calculation(inputs) or find_comparison(inputs)
    if computed is not None:
        return Output(status="answered", answer=computed, confidence=_CONFIDENCE)
    # A question before this one is its subject, and is not asked once more.
    _, subject = split_subject(inputs.question)
    separate = () if subject else split_questions(inputs.question)
    return _answer_each(inputs, separate) if separate else respond.answer(inputs)


def _answer_each(inputs: Inputs, questions: tuple[str, ...]) -> Output:
    """Return the answers of all questions in their order; the others are named as missing."""
    outputs = [respond.answer(inputs.model_copy(update={"question": one})) for one in questions]
    answered = [one for one in outputs if one.status == "answered"]
    if not answered:
        return respond.answer(inputs)
    pairs = zip(questions, outputs, strict=True)
    return Output(
        status="answered",
        answer="\n\n".join(dict.fromkeys(one.answer for one in answered)),
        confidence=min(one.confidence for one in answered),
        missing=" ".join(question for question, one in pairs if one.status != "answered"),
    )
