"""Runs one of the long runs: `python -m benchmarks.speed.endurance overload --minutes 10`."""

import argparse
import asyncio
import shlex
import sys

from benchmarks.speed.endurance import overload, restarts
from benchmarks.speed.endurance.results import RunResult


def main(words: list[str]) -> int:
    """Run, print table and JSON, and return 1 when a goal was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.endurance")
    runs = parser.add_subparsers(dest="run", required=True)
    over = runs.add_parser("overload", help="a load of three times the capacity")
    over.add_argument("--minutes", type=float, default=10.0)
    over.add_argument("--ease-minutes", type=float, default=2.0)
    over.add_argument("--seed", type=int, default=1)
    over.add_argument(
        "--slower", type=float, default=1.0, help="the factor by which handlers are slower"
    )
    roll = runs.add_parser("rolling", help="a rolling restart of all workers at half load")
    roll.add_argument("--seconds", type=float, default=20.0)
    roll.add_argument("--rounds", type=int, default=3)
    roll.add_argument("--seed", type=int, default=1)
    kill = runs.add_parser(
        "poison", help="occasional messages that kill the worker that processes them"
    )
    kill.add_argument("--seconds", type=float, default=120.0)
    kill.add_argument("--every", type=float, default=30.0)
    kill.add_argument("--seed", type=int, default=1)
    for run in runs.choices.values():
        run.add_argument(
            "--write",
            action="store_true",
            help="write the results to docs/measurements/endurance.md",
        )
    wanted = parser.parse_args(words)
    result = asyncio.run(_run(wanted))
    print(result.text())
    print(result.json())
    if wanted.write:
        result.write(f"python -m benchmarks.speed.endurance {shlex.join(words)}")
    return 0 if result.met else 1


async def _run(wanted: argparse.Namespace) -> RunResult:
    match wanted.run:
        case "overload":
            return await overload.run(_overload(wanted))
        case "poison":
            return await restarts.run_poison(
                restarts.Poison(wanted.seconds, wanted.every, seed=wanted.seed)
            )
        case _:
            return await restarts.run_rolling(
                restarts.Rolling(wanted.seconds, wanted.rounds, wanted.seed)
            )


def _overload(wanted: argparse.Namespace) -> overload.Overload:
    return overload.Overload(
        60 * wanted.minutes, 60 * wanted.ease_minutes, seed=wanted.seed, slower=wanted.slower
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
