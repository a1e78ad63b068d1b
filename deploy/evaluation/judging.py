"""Asks a model whether sources support sentences, and measures how far it agrees with people.

The folder holds JSON lines with `context`, `response`, `label` and, if any, `question`. People said
`grounded` or `ungrounded`; other labels are left out. A judge calls an answer grounded when it
supports every sentence of it.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from pydantic import TypeAdapter, ValidationError

from citations.facts import KnownNumbers
from citations.marking import remove_marks
from deploy.assembly.assistant_prompts import load_prompts
from deploy.assembly.data_folder import protect_data_folder
from deploy.evaluation.questions import UnknownFormatError, rows
from deploy.evaluation.sentences import split_covered
from envelope.run import OUTSIDE
from knowledge.index.terms import terms
from llm.errors import ModelError
from llm.port import Model, ModelCall, record_calls
from llm.tasks.search import JUDGE, JudgedSource, JudgeInputs, Passage

LONGEST_TEXT = 24_000
"""The most characters of a source that a judge receives."""
ENOUGH_WORDS = 0.6
"""The share of a sentence's words that its source has to hold; a measure, which decides nothing."""


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim to judge, and the texts that should support it, by number."""

    text: str
    evidence: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class ClaimOpinion:
    """The verdict of a judge about one claim; `supported` is None without a verdict."""

    supported: bool | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """The verdicts of a judge about each claim, in order, and its model calls."""

    opinions: tuple[ClaimOpinion, ...]
    calls: tuple[ModelCall, ...] = ()
    error: str = ""

    @property
    def supports_all(self) -> bool | None:
        """Whether every claim is supported; None where a verdict is missing."""
        found = [opinion.supported for opinion in self.opinions]
        if False in found:
            return False
        return None if None in found or not found else True


@dataclass(frozen=True, slots=True)
class JudgedQuestion:
    """An answer to judge claim by claim."""

    text: str
    language: str
    answer: str
    claims: Sequence[JudgedClaim] = ()


async def judge_answer(model: Model, question: JudgedQuestion) -> JudgedAnswer:
    """Return a judge's verdict on every claim; a judge that fails gives none."""
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


def compare_words(claim: JudgedClaim, language: str, *, foreign: bool = False) -> ClaimOpinion:
    """Return whether the sources of a claim hold its numbers and most of its words.

    Words of different languages cannot be compared; then only numbers are.
    """
    text = "\n".join(claim.evidence.values())
    said = remove_marks(claim.text)
    if missing := KnownNumbers([text]).find_unknown(said):
        return ClaimOpinion(False, f"not in the cited text: {', '.join(missing[:4])}")
    words = frozenset(terms(said, language))
    share = len(words.intersection(terms(text, language))) / max(1, len(words))
    if foreign or share >= ENOUGH_WORDS:
        return ClaimOpinion(True)
    return ClaimOpinion(False, f"{share:.2f} of its words are in the cited text")


def describe_calls(calls: Sequence[ModelCall]) -> dict[str, Any]:
    """Return tokens, duration and cost of a judge's calls; None for an unknown cost."""
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
        answer=question.answer,
        passages=tuple(
            Passage(number=number, text=claim.text, note=_name_sources(claim))
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


FOLDER = "evaluation"
FILE = "judges.json"
LEAST_AGREEMENT = 0.8
"""Below this share of agreement with people, a judge is not trusted."""
LEAST_ANSWERS = 100
"""A measurement on fewer answers than this is not sufficient."""


@dataclass(frozen=True, slots=True)
class JudgeRecord:
    """One measurement of a judge; `prompt` is the hash of the prompt that it was asked with."""

    judge: str
    data: str
    answers: int
    agreement: float
    precision: float
    recall: float
    measured_at: str
    prompt: str


_RECORDS = TypeAdapter(dict[str, JudgeRecord])


def prompt_version() -> str:
    """Return the hash of the judge's prompt file."""
    return load_prompts().content_hash("judge")


def load_judge_records(data_folder: Path) -> Mapping[str, JudgeRecord]:
    """Return the last measurement of each judge; a file that cannot be read counts as none."""
    try:
        text = (data_folder / FOLDER / FILE).read_bytes()
        return _RECORDS.validate_json(text)
    except (OSError, ValidationError):
        return {}


def store_judge_record(data_folder: Path, record: JudgeRecord) -> Path:
    """Store a measurement instead of an earlier one of the same judge; return the file."""
    protect_data_folder(data_folder)
    folder = data_folder / FOLDER
    folder.mkdir(exist_ok=True, mode=0o700)
    known = {**load_judge_records(data_folder), record.judge: record}
    written = {name: asdict(one) for name, one in sorted(known.items())}
    with NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
        json.dump(written, file, ensure_ascii=False, indent=2)
    # Replaced atomically: a concurrent reader sees the old file or the new one.
    os.replace(file.name, folder / FILE)
    return folder / FILE


def find_doubt(data_folder: Path, judge: str) -> str:
    """Return why a judge is not to be trusted; empty for a trusted one."""
    record = load_judge_records(data_folder).get(judge)
    if record is None:
        return f"the judge {judge} has not been measured against people"
    if record.prompt != prompt_version():
        return f"the prompt of the judge {judge} has changed since it was measured"
    if record.answers < LEAST_ANSWERS:
        return (
            f"the judge {judge} was measured on {record.answers} answers only, "
            f"expected at least {LEAST_ANSWERS}"
        )
    if record.agreement < LEAST_AGREEMENT:
        return (
            f"the judge {judge} agrees with people on {record.agreement:.2f} of "
            f"{record.answers} answers, expected at least {LEAST_AGREEMENT}"
        )
    return ""


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
