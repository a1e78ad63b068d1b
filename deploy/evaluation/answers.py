"""Runs the suite `answers`: every variant on every golden question, then the measures."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from config.settings import Settings
from deploy.assembly.assistant_prompts import TASK_OF_ROLE, load_overriding_prompts, load_prompts
from deploy.assembly.models import make_registry
from deploy.errors import CommandError
from deploy.evaluation.desk_run import (
    OFFLINE,
    KeptPrompt,
    Progress,
    Variant,
    VariantRun,
    open_documents,
    run_variant,
)
from deploy.evaluation.golden import GoldenCase
from deploy.evaluation.judging import find_doubt
from deploy.evaluation.measures import measure_answer
from deploy.evaluation.questions import UnknownFormatError, rows
from deploy.evaluation.summaries import MeasuredVariant, describe_measure, summarize
from envelope.run import OUTSIDE
from llm.port import Model
from llm.prompts import Prompts, Rendered
from llm.tasks import TASKS

_KEPT = TypeAdapter(KeptPrompt)
ANSWERS, PROMPTS, SUMMARY = "answers.jsonl", "prompts.jsonl", "summary.json"


def check_run_folder(folder: Path) -> None:
    """Raise `CommandError` for a folder that is not empty; called before the first question."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandError(f"expected a new or an empty folder at --output, found {str(folder)!r}")


def write_run(
    folder: Path, runs: Sequence[VariantRun], variants: Sequence[MeasuredVariant]
) -> None:
    """Write the figures, every answer, and every prompt once, by its hash."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    summary = json.dumps([summarize(one) for one in variants], ensure_ascii=False, indent=2)
    (folder / SUMMARY).write_text(f"{summary}\n", encoding="utf-8")
    _write_lines(
        folder / ANSWERS,
        (
            {"variant": variant.name, **describe_measure(measure)}
            for variant in variants
            for measure in variant.measures
        ),
    )
    prompts = {prompt.hash: prompt for run in runs for prompt in run.prompts}
    _write_lines(folder / PROMPTS, (asdict(prompt) for prompt in prompts.values()))


def _write_lines(path: Path, values: Iterable[Mapping[str, object]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for value in values:
            file.write(f"{json.dumps(value, ensure_ascii=False)}\n")


async def run_prompt_again(
    settings: Settings, folder: Path, prompt_hash: str, model: str | None
) -> Mapping[str, object]:
    """Send a kept prompt to a model once more, word for word; return what the model answers.

    Without a model, the one that is configured for the prompt's task. Raises `UnknownFormatError`
    for a folder or a hash that is not known, `CommandError` for a prompt that no task has or a
    model that reads none, and the errors of models.
    """
    kept = load_kept_prompt(folder, prompt_hash)
    setting = model if model is not None else settings.model_of(kept.task)
    if kept.task not in TASKS:
        raise CommandError(
            f"expected the prompt of {', '.join(TASKS)}, found that of {kept.task!r}"
        )
    if setting == OFFLINE:
        raise CommandError("expected a model that reads prompts, found offline: add --model NAME")
    task = TASKS[kept.task]
    registry = make_registry(settings, prompts=_OnePrompt(kept, load_prompts()))
    try:
        # The inputs are those from which the kept text was made: nothing reads them again.
        answer = await registry.model(setting).ask(task, task.inputs.model_construct(), OUTSIDE)
    finally:
        await registry.close()
    return {
        "prompt": kept.hash,
        "task": kept.task,
        "model": answer.model,
        "input_tokens": answer.usage.input_tokens,
        "output_tokens": answer.usage.output_tokens,
        "cost_usd": None if answer.cost_usd is None else str(answer.cost_usd),
        "output": answer.output.model_dump(mode="json"),
    }


def load_kept_prompt(folder: Path, prompt_hash: str) -> KeptPrompt:
    """Return the prompt of a run whose hash begins so; raises `UnknownFormatError`."""
    path = folder / PROMPTS
    if not path.is_file():
        raise UnknownFormatError(f"expected {PROMPTS} of a run in {folder}, found no such file")
    found = [
        row for row in rows(path) if prompt_hash and str(row.get("hash")).startswith(prompt_hash)
    ]
    if len(found) != 1:
        raise UnknownFormatError(
            f"expected the hash of one prompt in {path}, found {len(found)} for {prompt_hash!r}"
        )
    try:
        return _KEPT.validate_python(found[0])
    except ValidationError as error:
        raise UnknownFormatError(f"{path}: expected a kept prompt, found {found[0]!r}") from error


class _OnePrompt:
    """Renders one task as a kept text, and what a vendor needs besides it as the product does."""

    def __init__(self, kept: KeptPrompt, others: Prompts) -> None:
        self._kept = kept
        self._others = others

    def render(self, task_name: str, inputs: BaseModel) -> Rendered:
        if task_name == self._kept.task:
            return self._kept
        return self._others.render(task_name, inputs)


DOCUMENTS = "documents"
_CORPUS = ("pages.jsonl", "passages.jsonl", "units.jsonl")


@dataclass(frozen=True, slots=True)
class AnswersPlan:
    """The variants to compare and the questions to ask; by default over the desk's documents."""

    cases: tuple[GoldenCase, ...]
    variants: tuple[Variant, ...]
    documents: tuple[Path, ...] = ()
    judge: str | None = None


@dataclass(frozen=True, slots=True)
class AnswersResult:
    """The replies and the measures of every variant, and notes on doubtful figures."""

    runs: tuple[VariantRun, ...]
    variants: tuple[MeasuredVariant, ...]
    notes: tuple[str, ...]


def find_documents(data: Path, named: Sequence[Path]) -> tuple[Path, ...]:
    """Return the documents of a run: those named, else those of its folder, if it has any."""
    if named:
        return tuple(named)
    if (data / DOCUMENTS).is_dir():
        return (data / DOCUMENTS,)
    return tuple(data / name for name in _CORPUS if (data / name).is_file())


async def run_answers(settings: Settings, plan: AnswersPlan, report: Progress) -> AnswersResult:
    """Return replies and measures of every variant.

    Raises `CommandError` without documents or for prompts that cannot be used, and errors of models
    for a name or a key that is wrong: before anything is asked.
    """
    await _check_plan(settings, plan)
    async with open_documents(settings, plan.documents) as knowledge:
        runs = tuple(
            [
                await run_variant(settings, knowledge, variant, plan.cases, report)
                for variant in plan.variants
            ]
        )
    doubt = find_doubt(settings.refdesk_data, plan.judge) if plan.judge is not None else ""
    registry = make_registry(settings)
    try:
        judge = registry.model(plan.judge) if plan.judge is not None else None
        variants = tuple([await _measure(run, judge, report, believed=not doubt) for run in runs])
    finally:
        await registry.close()
    return AnswersResult(runs, variants, _make_notes(plan, doubt))


async def _check_plan(settings: Settings, plan: AnswersPlan) -> None:
    """Load every model and prompt once, so that a mistake shows at the start of a long run."""
    for variant in plan.variants:
        load_overriding_prompts(variant.prompts)
    registry = make_registry(settings)
    try:
        for variant in plan.variants:
            own = variant.apply(settings)
            for task in TASK_OF_ROLE.values():
                registry.model(own.model_of(task))
        if plan.judge is not None:
            registry.model(plan.judge)
    finally:
        await registry.close()


async def _measure(
    run: VariantRun, judge: Model | None, report: Progress, *, believed: bool
) -> MeasuredVariant:
    measures = []
    for number, asked in enumerate(run.asked, start=1):
        if judge is not None:
            report(f"{run.variant.name}: judged {number} of {len(run.asked)}")
        measures.append(await measure_answer(asked, judge, believed=believed))
    return MeasuredVariant(run.variant.name, tuple(measures))


def _make_notes(plan: AnswersPlan, doubt: str) -> tuple[str, ...]:
    if not doubt:
        return ()
    return (
        f"{doubt}: its verdicts are shown, but do not count in the figures; measure it with: "
        f"refdesk evaluate grounding --data FOLDER --judge {plan.judge}",
    )
