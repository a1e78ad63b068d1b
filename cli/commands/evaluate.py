"""Evaluates Refdesk on a folder of evaluation data."""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import add_action
from cli.printing import print_line, say_json
from deploy.errors import CommandError

if TYPE_CHECKING:
    from cli.evaluation.desk_run import Variant
    from config.settings import Settings

PURPOSES = {
    "retrieval": "measure whether searches find the right pages",
    "answers": "measure answers to golden questions; see docs/evaluation.md",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk evaluate`."""
    suites = parser.add_subparsers(dest="suite", metavar="SUITE", required=True)
    for name in PURPOSES:
        suite = add_action(suites, name, PURPOSES[name])
        suite.add_argument(
            "--data",
            required=True,
            type=Path,
            metavar="FOLDER",
            help="folder with the evaluation data",
        )
        suite.add_argument("--json", action="store_true", help="print the figures as JSON")
        if name == "answers":
            _add_answers_arguments(suite)


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk evaluate`."""
    if not chosen.data.is_dir():
        raise CommandError(f"the folder of --data does not exist: {str(chosen.data)!r}")
    if chosen.suite == "answers":
        return _run_answers(chosen)
    figures = asyncio.run(_measure_retrieval(chosen.data))
    if chosen.json:
        say_json(figures)
        return 0
    for line in _lines(figures):
        print_line(line)
    return 0


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
        help="model for every task (default: the configured models); repeatable, to compare models",
    )  # fmt: skip
    suite.add_argument(
        "--prompts", type=Path, action="append", metavar="FOLDER",
        help="folder of prompts that replace the default prompts; repeatable, to compare folders",
    )  # fmt: skip
    suite.add_argument("--judge", metavar="NAME", help="model that judges every sentence")
    suite.add_argument(
        "--page", type=Path, metavar="FILE", help="write the results to an .html file"
    )


def _run_answers(chosen: argparse.Namespace) -> int:
    from cli.comparison_page import check_page_path, make_page, make_table_lines
    from cli.evaluation.answers import AnswersPlan, find_documents, run_answers
    from cli.evaluation.golden import load_golden_cases, select_cases
    from cli.evaluation.summaries import describe_measure, summarize
    from config.settings import load_settings

    settings = load_settings()
    plan = AnswersPlan(
        cases=select_cases(load_golden_cases(chosen.data, chosen.questions), chosen.only or ()),
        variants=_make_variants(chosen, settings),
        documents=find_documents(chosen.data, chosen.documents or ()),
        judge=chosen.judge,
    )
    if chosen.page is not None:
        check_page_path(chosen.page)
    variants = asyncio.run(run_answers(settings, plan, _report_progress))
    if chosen.page is not None:
        chosen.page.write_text(make_page(variants), "utf-8")
    if chosen.json:
        say_json(
            [
                {
                    **summarize(variant),
                    "answers": [describe_measure(each) for each in variant.worst_first],
                }
                for variant in variants
            ]
        )
        return 0
    for line in make_table_lines(variants):
        print_line(line)
    return 0


async def _measure_retrieval(data: Path) -> object:
    from cli.evaluation.retrieval import evaluate

    return await evaluate(data)


def _make_variants(chosen: argparse.Namespace, settings: "Settings") -> "tuple[Variant, ...]":
    """Return, for each model, a variant with the built-in prompts, and a variant with each folder
    of prompts.

    Raises `CommandError` if there are folders of prompts but no model that uses prompts.
    """
    from cli.evaluation.desk_run import Variant

    models: list[str | None] = [*dict.fromkeys(chosen.model or ())] or [None]
    folders: list[Path] = [*dict.fromkeys(chosen.prompts or ())]
    if folders and all((model or settings.gen_model) == "offline" for model in models):
        raise CommandError(
            "--prompts requires a model, because without a model no prompts are used; add "
            "--model NAME"
        )
    variants = []
    for model in models:
        variants.append(Variant(model))
        if (model or settings.gen_model) != "offline":
            variants += [Variant(model, folder) for folder in folders]
    return tuple(variants)


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
