"""Writes what a run asked and got into a folder, so that a bad answer can be looked at again."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from deploy.errors import CommandError
from deploy.evaluation.answers.desk_run import VariantRun
from deploy.evaluation.answers.summaries import MeasuredVariant, describe_measure, summarize

ANSWERS, PROMPTS, SUMMARY = "answers.jsonl", "prompts.jsonl", "summary.json"


def check_run_folder(folder: Path) -> None:
    """Raise `CommandError` for a folder that holds something; called before anything is asked."""
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
