"""Measures the desk on a folder of evaluation data."""

import argparse
import asyncio
from pathlib import Path

from deploy.cli.printing import print_line, say_json
from deploy.errors import CommandError
from deploy.evaluation.suites import SUITES, evaluate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `refdesk evaluate`."""
    parser.add_argument("suite", choices=sorted(SUITES), help="what to measure")
    parser.add_argument("--data", required=True, type=Path, metavar="FOLDER", help="the data")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run(chosen: argparse.Namespace) -> int:
    """Run `refdesk evaluate`."""
    if not chosen.data.is_dir():
        raise CommandError(f"expected a folder at --data, found none at {str(chosen.data)!r}")
    figures = asyncio.run(evaluate(chosen.suite, chosen.data))
    if chosen.json:
        say_json(figures)
        return 0
    for line in _lines(figures):
        print_line(line)
    return 0


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
