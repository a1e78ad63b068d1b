"""Shows which questions a change to the documents breaks, before it is published."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import add_groups_argument, read_groups
from cli.printing import print_line, say_json
from cli.workflow_commands import write_command
from config.settings import Settings, load_settings
from deploy.errors import CommandError

if TYPE_CHECKING:
    from cli.evaluation.golden import GoldenCase
    from deploy.assembly.checks import CheckRun
    from knowledge.checks import CheckQuestion

EXIT_BROKEN = 11


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk check`."""
    parser.add_argument(
        "sources",
        nargs="*",
        metavar="SOURCE",
        help="proposed documents, as in refdesk ingest: a folder, git:PATH, or the current "
        "state of a configured source (default: all configured sources)",
    )
    parser.add_argument(
        "--questions",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="golden questions, .yaml, .json, .toml or .jsonl; repeatable (default: the questions "
        "of this installation: the most asked, marked and verified ones, and gaps)",
    )
    parser.add_argument(
        "--recorded",
        action="store_true",
        help="add the questions of this installation to those of --questions",
    )
    parser.add_argument(
        "--revision", default="", help="branch, tag or commit to check (default: the files on disk)"
    )
    parser.add_argument(
        "--base",
        metavar="REVISION",
        help="compare with this branch, tag or commit (default: with the index in use)",
    )
    parser.add_argument(
        "--as",
        dest="stands_for",
        default="",
        metavar="SOURCE",
        help="indexed source that the proposed folder replaces (default: the folder itself)",
    )
    add_groups_argument(parser)
    parser.add_argument(
        "--answers",
        action="store_true",
        help="estimate the cost of answering the broken and changed questions before and after the "
        "change; with --yes, generate these answers and judge what the new ones no longer contain",
    )
    parser.add_argument("--yes", action="store_true", help="accept the estimate of --answers")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--github", action="store_true", help="print annotations for GitHub Actions"
    )
    parser.add_argument("--all", action="store_true", help="list unchanged questions, too")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="append a summary for a pull request"
    )
    parser.epilog = (
        f"exit status: 0 no question is broken, {EXIT_BROKEN} some are, 1 error, such as a source "
        "that cannot be read"
    )


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk check`."""
    from cli.check_reports import make_junit, make_markdown
    from worker.process import collect_rarely

    collect_rarely()
    settings = load_settings()
    if chosen.answers and not settings.uses_model:
        raise CommandError("--answers requires a model: set GEN_MODEL")
    for file in filter(None, (chosen.junit, chosen.markdown)):
        if not file.parent.is_dir():
            raise CommandError(f"{file} cannot be written: there is no folder {file.parent}")
    result = asyncio.run(_check(settings, chosen))
    if chosen.junit is not None:
        chosen.junit.write_bytes(make_junit(result))
    if chosen.markdown is not None:
        with chosen.markdown.open("a", encoding="utf-8") as file:
            file.write(make_markdown(result))
    _print(result, chosen)
    if result.result.count("broken"):
        return EXIT_BROKEN
    return 0 if result.is_complete else 1


def read_golden(files: Sequence[Path]) -> "list[CheckQuestion]":
    """Return the questions in golden files; raises `UnknownFormatError`."""
    from cli.evaluation.golden import load_golden_cases

    several = len(files) > 1
    return [
        _make_question(case, f"{file.stem}/" if several else "")
        for file in files
        for case in load_golden_cases(file.parent, file)
    ]


def _make_question(case: "GoldenCase", prefix: str) -> "CheckQuestion":
    from knowledge.checks import CheckQuestion

    return CheckQuestion(
        id=f"{prefix}{case.id}",
        text=case.question,
        origin="golden",
        language=case.language,
        # The facts of an answer are in its context, so files for `evaluate answers` need none.
        facts=(case.facts or case.must_say) if case.expect == "answer" else (),
        pages=case.pages,
        must_be_declined=case.expect == "refuse",
    )


def _report(line: str) -> None:
    sys.stderr.write(f"refdesk: {line}\n")


async def _check(settings: Settings, chosen: argparse.Namespace) -> "CheckRun":
    from cli.commands.ingest import report_on_terminal
    from deploy.assembly.checks import find_proposals, run_check

    ask = None
    if chosen.answers:
        from cli.evaluation.answer_changes import compare_answers

        ask = partial(compare_answers, settings, is_accepted=chosen.yes, report=_report)
    questions = read_golden(chosen.questions)
    proposals = find_proposals(
        settings, chosen.sources, revision=chosen.revision, stands_for=chosen.stands_for
    )
    with report_on_terminal(quiet=chosen.json or chosen.github) as report:
        return await run_check(
            settings, questions, proposals, report, base=chosen.base,
            groups=read_groups(chosen.groups),
            with_records=chosen.recorded or not chosen.questions,
            ask=ask,
        )  # fmt: skip


def _print(result: "CheckRun", chosen: argparse.Namespace) -> None:
    from cli.check_reports import describe_run, make_annotations, make_table, summarize

    if chosen.json:
        say_json(describe_run(result))
        return
    if chosen.github:
        for kind, properties, text in make_annotations(result):
            write_command(sys.stdout, kind, properties, text)
        print_line(summarize(result))
        return
    for line in make_table(result, with_unchanged=chosen.all):
        print_line(line)
