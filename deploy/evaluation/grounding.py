"""Measures how far a judge agrees with people: the suite `grounding`.

The folder holds JSON lines with `context`, `response`, `label` and, if any, `question`. People said
`grounded` or `ungrounded`; other labels are left out. A judge calls an answer grounded when it
supports every sentence of it.
"""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.evaluation.judging import (
    JudgedAnswer,
    JudgedClaim,
    JudgedQuestion,
    describe_calls,
    judge_answer,
)
from deploy.evaluation.questions import UnknownFormatError, rows
from deploy.evaluation.sentences import split_covered
from llm.port import Model

Figures = dict[str, Any]
GROUNDED, UNGROUNDED = "grounded", "ungrounded"
AT_ONCE = 8
"""Answers that a judge is asked about at the same time."""


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer, its sources, and whether people found it grounded."""

    source: str
    question: str
    context: str
    response: str
    grounded: bool


@dataclass(frozen=True, slots=True)
class JudgedLabel:
    """The verdicts of people and of a judge about one answer; None where the judge failed."""

    source: str
    grounded: bool
    judged: bool | None


async def measure_judge(judge: Model, data: Path, *, limit: int | None = None) -> Figures:
    """Return how far a judge agrees with people on a folder of labelled answers.

    `limit` takes that many answers, always the same ones. Raises `UnknownFormatError` when the
    folder holds something else.
    """
    answers = _select_sample(load_labelled_answers(data), limit)
    free = asyncio.Semaphore(AT_ONCE)
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(_judge_label(judge, answer, free)) for answer in answers]
    found = [task.result() for task in asked]
    labels = [label for label, _ in found]
    calls = [call for _, judged in found for call in judged.calls]
    return {
        "suite": "grounding",
        "data": data.name,
        "judge": judge.name,
        **compute_agreement(labels),
        "by_file": {
            source: compute_agreement([one for one in labels if one.source == source])
            for source in sorted({label.source for label in labels})
        },
        **describe_calls(calls),
    }


def load_labelled_answers(data: Path) -> list[LabelledAnswer]:
    """Return the answers of a folder that people found grounded or ungrounded."""
    found = [
        LabelledAnswer(
            source=path.stem,
            question=str(row.get("question") or ""),
            context=row["context"],
            response=row["response"],
            grounded=row["label"] == GROUNDED,
        )
        for path in sorted(data.glob("*.jsonl"))
        for row in rows(path)
        if row.get("label") in (GROUNDED, UNGROUNDED)
        and isinstance(row.get("context"), str)
        and isinstance(row.get("response"), str)
    ]
    if not found:
        raise UnknownFormatError(
            f"expected files .jsonl with `context`, `response` and a `label` of {GROUNDED} or "
            f"{UNGROUNDED} in {data}, found no such line"
        )
    return found


def compute_agreement(labels: Sequence[JudgedLabel]) -> Figures:
    """Return agreement, and precision and recall of finding ungrounded answers.

    An answer on which the judge failed counts as a disagreement, and as not found.
    """
    bad = [one for one in labels if not one.grounded]
    good = [one for one in labels if one.grounded]
    caught = sum(one.judged is False for one in bad)
    wronged = sum(one.judged is False for one in good)
    right = caught + sum(one.judged is True for one in good)
    return {
        "answers": len(labels),
        "agreement": _divide(right, len(labels)),
        "precision": _divide(caught, caught + wronged),
        "recall": _divide(caught, len(bad)),
        "grounded": len(good),
        "grounded_called_ungrounded": _divide(wronged, len(good)),
        "ungrounded": len(bad),
        "without_verdict": sum(one.judged is None for one in labels),
    }


async def _judge_label(
    judge: Model, answer: LabelledAnswer, free: asyncio.Semaphore
) -> tuple[JudgedLabel, JudgedAnswer]:
    sentences = [one.text for one in split_covered(answer.response, "en")]
    claims = [JudgedClaim(text, {1: answer.context}) for text in (sentences or [answer.response])]
    question = JudgedQuestion(answer.question, "en", answer.response, claims)
    async with free:
        judged = await judge_answer(judge, question)
    return JudgedLabel(answer.source, answer.grounded, judged.supports_all), judged


def _select_sample(answers: Sequence[LabelledAnswer], limit: int | None) -> list[LabelledAnswer]:
    """Return the answers whose hashes come first, in their own order."""
    if limit is None or limit >= len(answers):
        return list(answers)
    chosen = sorted(range(len(answers)), key=lambda place: _digest(answers[place]))[:limit]
    return [answers[place] for place in sorted(chosen)]


def _digest(answer: LabelledAnswer) -> bytes:
    text = f"{answer.context}\0{answer.response}"
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _divide(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0
