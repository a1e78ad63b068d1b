"""Stores the answers and the prompts of a run in a folder, and repeats a stored prompt."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from config.settings import Settings
from deploy.assembly.assistant_prompts import load_prompts
from deploy.assembly.models import make_registry
from deploy.errors import CommandError
from deploy.evaluation.desk_run import OFFLINE, KeptPrompt, VariantRun
from deploy.evaluation.questions import UnknownFormatError, rows
from deploy.evaluation.summaries import MeasuredVariant, describe_measure, summarize
from envelope.run import OUTSIDE
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
