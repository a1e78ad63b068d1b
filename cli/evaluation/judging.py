"""Uses a model to judge whether sources support the sentences of an answer."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from envelope.run import OUTSIDE
from llm.errors import ModelError
from llm.port import Model, ModelCall, record_calls
from llm.tasks.search import JUDGE, JudgedSource, JudgeInputs, PromptPassage

LONGEST_TEXT = 24_000
"""Maximum number of characters of a source that a judge receives."""


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim to judge, and the texts that should support it, by source number."""

    text: str
    evidence: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class ClaimOpinion:
    """A judge's verdict on one claim; `supported` is None if there is no verdict."""

    supported: bool | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A judge's verdicts on each claim, in order, and its model calls."""

    opinions: tuple[ClaimOpinion, ...]
    calls: tuple[ModelCall, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """An answer to judge claim by claim."""

    text: str
    language: str
    answer: str
    claims: Sequence[JudgedClaim] = ()


async def judge_answer(model: Model, question: JudgedQuestion) -> JudgedAnswer:
    """Return a judge's verdict on every claim; if the judge fails, no verdicts are returned."""
    if not question.claims:
        return JudgedAnswer(())
    inputs = await asyncio.to_thread(_make_inputs, question)
    with record_calls() as calls:
        try:
            output = (await model.ask(JUDGE, inputs, OUTSIDE)).output
        except ModelError as error:
            problem = f"{type(error).__name__}: {error}"
            return JudgedAnswer(
                (ClaimOpinion(None, problem),) * len(question.claims), tuple(calls), problem
            )
    verdicts = {verdict.passage: verdict for verdict in output.verdicts}
    opinions = tuple(
        ClaimOpinion(verdicts[number].supported, verdicts[number].reason)
        if number in verdicts
        else ClaimOpinion(None, "the judge gave no verdict")
        for number in range(1, len(question.claims) + 1)
    )
    return JudgedAnswer(opinions, tuple(calls))


def describe_calls(calls: Sequence[ModelCall]) -> dict[str, Any]:
    """Return the tokens, duration, and cost of a judge's calls; an unknown cost is None."""
    costs = [call.cost_usd for call in calls]
    known = [cost for cost in costs if cost is not None]
    return {
        "calls": len(calls),
        "input_tokens": sum(call.usage.input_tokens for call in calls),
        "output_tokens": sum(call.usage.output_tokens for call in calls),
        "cost_usd": str(sum(known, Decimal(0))) if len(known) == len(costs) else None,
    }


def _make_inputs(question: JudgedQuestion) -> JudgeInputs:
    sources = {number: text for claim in question.claims for number, text in claim.evidence.items()}
    return JudgeInputs(
        question=question.text,
        language=question.language,
        language_name=question.language,
        answer=question.answer,
        passages=tuple(
            PromptPassage(number=number, text=claim.text, note=_name_sources(claim))
            for number, claim in enumerate(question.claims, start=1)
        ),
        sources=tuple(
            JudgedSource(number=number, place=f"source {number}", text=text[:LONGEST_TEXT])
            for number, text in sources.items()
        ),
    )


def _name_sources(claim: JudgedClaim) -> str:
    numbers = ", ".join(map(str, claim.evidence))
    return f"it cites source {numbers}" if numbers else "it cites nothing"
