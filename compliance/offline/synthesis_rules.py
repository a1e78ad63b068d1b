"""Writes the answer in quotations: the findings one by one, or what the passages say."""

from llm.offline.answering.combining import answer as answer_question
from llm.tasks import respond
from llm.tasks.specialists.synthesis import FindingText, Inputs, Output


def answer(inputs: Inputs) -> Output:
    """Return the findings as a list; without findings, an answer from the passages."""
    if inputs.findings:
        first, *others = map(_cite, inputs.findings)
        return Output(answer="\n".join([first, "", *(f"- {one}" for one in others)]).strip())
    given = answer_question(
        respond.Inputs(
            question=inputs.question,
            language=inputs.language,
            attempt=inputs.attempt,
            sources=tuple(
                respond.PromptSource(
                    number=number,
                    chunk_id=one.id,
                    place=one.place,
                    language=one.language,
                    text=one.text,
                )
                for number, one in enumerate(inputs.sources, start=1)
            ),
        )
    )
    if given.status != "answered":
        return Output(status="insufficient_context", missing=given.missing)
    text = given.answer
    for number, one in enumerate(inputs.sources, start=1):
        text = text.replace(f"[{number}]", f"\\cite{{{one.id}}}")
    return Output(answer=text, missing=given.missing)


def _cite(finding: FindingText) -> str:
    return " ".join((finding.text, "".join(f"\\cite{{{one}}}" for one in finding.sources)))
