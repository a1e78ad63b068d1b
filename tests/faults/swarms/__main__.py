"""Twenty swarms on two pods, one killed every five seconds: `python -m tests.faults.swarms`.

Prints a line for each round; returns 1 if a worker was lost, counted twice, or late.
"""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.faults.deployment import open_deployment
from tests.faults.swarms.swarm_round import WORKERS, SwarmReport, hold_swarms


def main() -> int:
    """Hold the rounds; return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.swarms", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kill-every", type=float, default=5.0, metavar="SECONDS")
    parser.add_argument("--takes", type=float, default=3.0, metavar="SECONDS", help="of a worker")
    arguments = parser.parse_args()
    seeds = range(arguments.seed, arguments.seed + arguments.rounds)
    held = [asyncio.run(_hold(seed, arguments.kill_every, arguments.takes)) for seed in seeds]
    return 1 if any(_find_broken(one) for one in held) else 0


async def _hold(seed: int, kill_every_seconds: float, takes_seconds: float) -> SwarmReport:
    with tempfile.TemporaryDirectory(prefix="f") as folder:
        async with open_deployment(Path(folder)) as harness:
            held = await hold_swarms(
                harness, seed, kill_every_seconds=kill_every_seconds, takes_seconds=takes_seconds
            )
    counts = held.report.counts
    sys.stdout.write(
        f"seed {seed}: {counts['messages accepted']} swarms, {len(held.completed)} answered, "
        f"{counts.get('reported superseded', 0)} cancelled by the person, "
        f"{sum(held.completed)} of {len(held.completed) * WORKERS} workers completed, "
        f"{counts['processes killed']} processes killed, {held.report.seconds:.0f} s, "
        f"latest {held.report.latest_seconds:.0f} s after its deadline, broken: "
        f"{dict(Counter(one.kind for one in held.report.findings)) or 'nothing'}\n"
    )
    for finding in held.report.findings:
        sys.stdout.write(f"{finding}\n")
    sys.stdout.flush()
    return held


def _find_broken(held: SwarmReport) -> bool:
    return bool(held.report.findings) or set(held.completed) != {WORKERS}


if __name__ == "__main__":
    sys.exit(main())
