"""Measures Refdesk on a folder of evaluation data."""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deploy.cli.arguments import format_sentence
from deploy.cli.printing import print_line, say_json
from deploy.errors import CommandError

if TYPE_CHECKING:
    from config.settings import Settings
    from deploy.evaluation.desk_run import Variant

PURPOSES = {
    "retrieval": "measure whether searches find the right pages",
    "answers": "measure answers to golden questions; see docs/evaluation.md",
    "grounding": "measure how often a judge agrees with people",
    "prompt": "send a prompt again that `answers --output` stored",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk evaluate`."""
    suites = parser.add_subparsers(dest="suite", metavar="SUITE", required=True)
    for name in PURPOSES:
        suite = suites.add_parser(
            name, help=PURPOSES[name], description=format_sentence(PURPOSES[name])
        )
        suite.add_argument(
            "--data", required=True, type=Path, metavar="FOLDER", help="the evaluation data"
        )
        suite.add_argument("--json", action="store_true", help="print the figures as JSON")
        if name == "answers":
            _add_answers_arguments(suite)
        if name == "grounding":
            _add_grounding_arguments(suite)
        if name == "prompt":
            suite.add_argument(
                "--hash", required=True, help="hash of the prompt, as the page shows it"
            )
            suite.add_argument("--model", metavar="NAME", help="the model (default: as configured)")


def _add_answers_arguments(suite: argparse.ArgumentParser) -> None:
    suite.add_argument(
        "--questions",
        type=Path,
        metavar="FILE",
        help="golden questions (default: golden* of --data)",
    )
    suite.add_argument(
        "--only", action="append", metavar="ID", help="ask only this question; repeatable"
    )
    suite.add_argument(
        "--documents", type=Path, action="append", metavar="PATH",
        help="documents to use (default: those of --data, else the ingested ones); repeatable",
    )  # fmt: skip
    suite.add_argument(
        "--model", action="append", metavar="NAME",
        help="model for every task (default: as configured); repeat it to compare models",
    )  # fmt: skip
    suite.add_argument(
        "--prompts", type=Path, action="append", metavar="FOLDER",
        help="prompts that replace the default ones; repeat it to compare folders",
    )  # fmt: skip
    suite.add_argument("--judge", metavar="NAME", help="model that judges every sentence")
    suite.add_argument("--page", type=Path, metavar="FILE", help="write a report, .html or .md")
    suite.add_argument(
        "--output", type=Path, metavar="FOLDER", help="store answers and prompts in a new folder"
    )


def _add_grounding_arguments(suite: argparse.ArgumentParser) -> None:
    suite.add_argument("--judge", required=True, metavar="NAME", help="the model that judges")
    suite.add_argument("--limit", type=int, metavar="N", help="judge only N answers")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk evaluate`."""
    if not chosen.data.is_dir():
        raise CommandError(f"expected a folder at --data, found none at {str(chosen.data)!r}")
    if chosen.suite == "answers":
        return _run_answers(chosen)
    if chosen.suite == "grounding":
        figures: object = asyncio.run(_measure_judge(chosen))
    elif chosen.suite == "prompt":
        figures = _run_prompt(chosen)
    else:
        figures = asyncio.run(_measure_retrieval(chosen.data))
    if chosen.json:
        say_json(figures)
        return 0
    for line in _lines(figures):
        print_line(line)
    return 0


def _run_answers(chosen: argparse.Namespace) -> int:
    from config.settings import load_settings
    from deploy.cli.comparison_page import check_page_path, make_page, make_table_lines
    from deploy.evaluation.answers import (
        AnswersPlan,
        check_run_folder,
        find_documents,
        run_answers,
        write_run,
    )
    from deploy.evaluation.golden import load_golden_cases, select_cases
    from deploy.evaluation.summaries import describe_measure, summarize

    settings = load_settings()
    plan = AnswersPlan(
        cases=select_cases(load_golden_cases(chosen.data, chosen.questions), chosen.only or ()),
        variants=_make_variants(chosen, settings),
        documents=find_documents(chosen.data, chosen.documents or ()),
        judge=chosen.judge,
    )
    if chosen.page is not None:
        check_page_path(chosen.page)
    if chosen.output is not None:
        check_run_folder(chosen.output)
    result = asyncio.run(run_answers(settings, plan, _report_progress))
    for note in result.notes:
        _report_progress(f"warning: {note}")
    if chosen.output is not None:
        write_run(chosen.output, result.runs, result.variants)
    if chosen.page is not None:
        chosen.page.write_text(make_page(chosen.page, result.variants, result.notes), "utf-8")
    if chosen.json:
        say_json(
            [
                {**summarize(one), "notes": list(result.notes),
                 "answers": [describe_measure(measure) for measure in one.worst_first]}
                for one in result.variants
            ]
        )  # fmt: skip
        return 0
    for line in make_table_lines(result.variants):
        print_line(line)
    return 0


async def _measure_retrieval(data: Path) -> object:
    from deploy.evaluation.retrieval import evaluate

    return await evaluate(data)


def _run_prompt(chosen: argparse.Namespace) -> Mapping[str, object]:
    from config.settings import load_settings
    from deploy.evaluation.answers import run_prompt_again

    return asyncio.run(run_prompt_again(load_settings(), chosen.data, chosen.hash, chosen.model))


def _make_variants(chosen: argparse.Namespace, settings: "Settings") -> "tuple[Variant, ...]":
    """Return each model with the product's prompts and with each folder of prompts."""
    from deploy.evaluation.desk_run import Variant

    models: list[str | None] = [*dict.fromkeys(chosen.model or ())] or [None]
    folders: list[Path] = [*dict.fromkeys(chosen.prompts or ())]
    if folders and all((model or settings.gen_model) == "offline" for model in models):
        raise CommandError(
            "--prompts needs a model, found only offline, which uses no prompts: add --model NAME"
        )
    variants = []
    for model in models:
        variants.append(Variant(model))
        if (model or settings.gen_model) != "offline":
            variants += [Variant(model, folder) for folder in folders]
    return tuple(variants)


async def _measure_judge(chosen: argparse.Namespace) -> Mapping[str, Any]:
    from config.settings import load_settings
    from deploy.assembly.models import make_registry
    from deploy.evaluation.judging import (
        JudgeRecord,
        find_doubt,
        measure_judge,
        prompt_version,
        store_judge_record,
    )

    if chosen.limit is not None and chosen.limit < 1:
        raise CommandError(f"expected at least 1 at --limit, found {chosen.limit}")
    settings = load_settings()
    registry = make_registry(settings)
    try:
        found = await measure_judge(registry.model(chosen.judge), chosen.data, limit=chosen.limit)
    finally:
        await registry.close()
    record = JudgeRecord(
        judge=chosen.judge,
        data=found["data"],
        answers=found["answers"],
        agreement=found["agreement"],
        precision=found["precision"],
        recall=found["recall"],
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        prompt=prompt_version(),
    )
    stored = store_judge_record(settings.refdesk_data, record)
    doubt = find_doubt(settings.refdesk_data, chosen.judge)
    return {**found, "believed": not doubt, "doubt": doubt or "none", "stored": str(stored)}


def _report_progress(line: str) -> None:
    sys.stderr.write(f"refdesk: {line}\n")
    sys.stderr.flush()


def _lines(figures: object, indent: int = 0) -> list[str]:
    if not isinstance(figures, dict):
        return [f"{'':>{indent}}{figures}"]
    width = max((len(str(name)) for name in figures), default=0)
    lines: list[str] = []
    for name, value in figures.items():
        if isinstance(value, dict):
            lines += [f"{'':>{indent}}{name}", *_lines(value, indent + 2)]
        else:
            shown = f"{value:.4f}" if isinstance(value, float) else str(value)
            lines.append(f"{'':>{indent}}{name!s:<{width}}  {shown}")
    return lines
