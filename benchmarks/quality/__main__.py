"""Prints the figures of a suite on a folder of evaluation data.

`python -m benchmarks.quality SUITE --data FOLDER`. Owners measure their own documents and questions
with `refdesk evaluate`.
"""

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.quality import compliance, context, gaps, language, readers
from benchmarks.quality.multistep import DEFAULT_K, evaluate_multistep

Evaluate = Callable[[Path], Awaitable[Mapping[str, Any]]]
SUITES: Mapping[str, tuple[str, Evaluate]] = {
    "compliance": (
        "whether the right clause is among those shown for a requirement", compliance.evaluate,
    ),
    "context": ("whether the context of an answer has the section that answers", context.evaluate),
    "gaps": ("whether gaps name the pages that are missing", gaps.evaluate),
    "language": ("language detection", language.evaluate),
}  # fmt: skip
_WAYS = ("search", "tools", "swarm")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the requested measurement."""
    chosen = _parser().parse_args(arguments)
    print(json.dumps(asyncio.run(_evaluate(chosen)), indent=1, ensure_ascii=False))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality")
    suites = parser.add_subparsers(dest="suite", metavar="SUITE", required=True)
    for name, (purpose, _) in SUITES.items():
        _add_data(suites.add_parser(name, help=purpose))
    multistep = suites.add_parser(
        "multistep", help="what each way finds for questions of several steps"
    )
    _add_data(multistep)
    multistep.add_argument("--way", choices=_WAYS, default="tools", help="(default: tools)")
    multistep.add_argument(
        "--k", type=int, metavar="N", default=DEFAULT_K,
        help=f"documents shown in total, over all steps (default: {DEFAULT_K})",
    )  # fmt: skip
    _add_readers(
        suites.add_parser("readers", help="what readers of documents keep of files, by format")
    )
    return parser


def _add_readers(suite: argparse.ArgumentParser) -> None:
    _add_data(suite)
    suite.add_argument(
        "--python", metavar="PATH", help="a Python that has markitdown and kreuzberg, to compare"
    )
    suite.add_argument("--by-file", action="store_true", help="print the figures of each file")


def _add_data(suite: argparse.ArgumentParser) -> None:
    suite.add_argument(
        "--data", required=True, type=Path, metavar="FOLDER", help="the evaluation data"
    )


async def _evaluate(chosen: argparse.Namespace) -> object:
    if chosen.suite == "multistep":
        return await evaluate_multistep(chosen.data, chosen.way, k=chosen.k)
    if chosen.suite == "readers":
        return readers.evaluate(chosen.data, chosen.python, by_file=chosen.by_file)
    _, evaluate = SUITES[chosen.suite]
    return await evaluate(chosen.data)


if __name__ == "__main__":
    main()
