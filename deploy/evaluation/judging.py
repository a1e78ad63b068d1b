"""Asks a model whether sources support sentences, or compares their words."""

import asyncio
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
