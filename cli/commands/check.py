"""Shows which questions a change of the documents breaks, before it is published."""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.arguments import add_groups_argument, read_groups
from cli.printing import print_line, say_json
from config.settings import Settings, load_settings

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
        help="the proposed documents, as in refdesk ingest: a folder, git:PATH, a configured "
        "source as it is now (default: all configured sources)",
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
        "--revision", default="", help="branch, tag or commit that is proposed (default: the files)"
    )
    parser.add_argument(
        "--base",
        metavar="REVISION",
        help="compare with this branch, tag or commit (default: with the index in use)",
    )
    parser.add_argument("--folder", default="", help="folder of the repository, such as docs")
    parser.add_argument(
        "--as",
        dest="stands_for",
        default="",
        metavar="SOURCE",
        help="the source of the index that the proposed folder replaces (default: itself)",
    )
    add_groups_argument(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--github", action="store_true", help="print annotations for GitHub Actions"
    )
    parser.add_argument("--all", action="store_true", help="list unchanged questions, too")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    parser.add_argument(
        "--markdown", type=Path, metavar="FILE", help="append a summary for a pull request"
    )
    parser.epilog = f"exit status: 0 no question is broken, {EXIT_BROKEN} some are, 1 error"


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk check`."""
    from cli.check_reports import make_junit, make_markdown

    settings = load_settings()
    result = asyncio.run(_check(settings, chosen))
    if chosen.junit is not None:
        chosen.junit.write_bytes(make_junit(result))
    if chosen.markdown is not None:
        with chosen.markdown.open("a", encoding="utf-8") as file:
            file.write(make_markdown(result))
    _print(result, chosen)
    return EXIT_BROKEN if result.result.count("broken") else 0


def read_golden(files: Sequence[Path]) -> "list[CheckQuestion]":
    """Return the questions of golden files; raises `UnknownFormatError`."""
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
        # An answer says what its context says: files for `evaluate answers` need no facts.
        facts=(case.facts or case.must_say) if case.expect == "answer" else (),
        pages=case.pages,
        must_be_declined=case.expect == "refuse",
    )


async def _check(settings: Settings, chosen: argparse.Namespace) -> "CheckRun":
    from cli.commands.ingest import report_on_terminal
    from deploy.assembly.checks import find_proposals, run_check

    questions = read_golden(chosen.questions)
    proposals = find_proposals(
        settings, chosen.sources, revision=chosen.revision, folder=chosen.folder,
        stands_for=chosen.stands_for,
    )  # fmt: skip
    with report_on_terminal(quiet=chosen.json or chosen.github) as report:
        return await run_check(
            settings, questions, proposals, report, base=chosen.base,
            groups=read_groups(chosen.groups),
            with_records=chosen.recorded or not chosen.questions,
        )  # fmt: skip


def _print(result: "CheckRun", chosen: argparse.Namespace) -> None:
    from cli.check_reports import describe_run, make_annotations, make_table, summarize

    if chosen.json:
        say_json(describe_run(result))
        return
    if chosen.github:
        for line in make_annotations(result):
            print_line(line)
        print_line(summarize(result))
        return
    for line in make_table(result, with_unchanged=chosen.all):
        print_line(line)
