"""Runs the suite `answers`: asks every variant every golden question, and measures the answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cli.evaluation.desk_run import Progress, Variant, VariantRun, open_documents, run_variant
from cli.evaluation.golden import GoldenCase
from cli.evaluation.measures import measure_answer
from cli.evaluation.summaries import MeasuredVariant
from config.settings import Settings
from deploy.assembly.assistant_prompts import TASK_OF_ROLE, load_overriding_prompts
from deploy.assembly.models import make_registry
from llm.port import Model

DOCUMENTS = "documents"
_CORPUS = ("pages.jsonl", "passages.jsonl", "units.jsonl")


@dataclass(frozen=True, slots=True)
class AnswersPlan:
    """The variants to compare and the questions to ask; by default, the desk's own documents are
    used.
    """

    cases: tuple[GoldenCase, ...]
    variants: tuple[Variant, ...]
    documents: tuple[Path, ...] = ()
    judge: str | None = None


def find_documents(data: Path, named: Sequence[Path]) -> tuple[Path, ...]:
    """Return the documents for a run: those named or, if there are none, those in its folder."""
    if named:
        return tuple(named)
    if (data / DOCUMENTS).is_dir():
        return (data / DOCUMENTS,)
    return tuple(data / name for name in _CORPUS if (data / name).is_file())


async def run_answers(
    settings: Settings, plan: AnswersPlan, report: Progress
) -> tuple[MeasuredVariant, ...]:
    """Return the measures of every variant.

    Raises `CommandError` if there are no documents or if prompts cannot be used, and model errors
    for a wrong name or key, before any question is asked.
    """
    await _check_plan(settings, plan)
    async with open_documents(settings, plan.documents) as knowledge:
        runs = tuple(
            [
                await run_variant(settings, knowledge, variant, plan.cases, report)
                for variant in plan.variants
            ]
        )
    registry = make_registry(settings)
    try:
        judge = registry.model(plan.judge) if plan.judge is not None else None
        return tuple([await _measure(run, judge, report) for run in runs])
    finally:
        await registry.close()


async def _check_plan(settings: Settings, plan: AnswersPlan) -> None:
    """Load every model and prompt once, so that a mistake is reported at the start of a long
    run.
    """
    for variant in plan.variants:
        load_overriding_prompts(variant.prompts)
    registry = make_registry(settings)
    try:
        for variant in plan.variants:
            own = settings.model_copy(update=variant.changes)
            for task in TASK_OF_ROLE.values():
                registry.model(own.model_of(task))
        if plan.judge is not None:
            registry.model(plan.judge)
    finally:
        await registry.close()


async def _measure(run: VariantRun, judge: Model | None, report: Progress) -> MeasuredVariant:
    measures = []
    for number, asked in enumerate(run.asked, start=1):
        if judge is not None:
            report(f"{run.variant.name}: judged {number} of {len(run.asked)}")
        measures.append(await measure_answer(asked, judge))
    return MeasuredVariant(run.variant.name, tuple(measures))
