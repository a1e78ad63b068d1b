"""Runs the fault suite for half an hour: `python -m tests.faults`.

Writes the result to `docs/internal/measurements/faults.md`.

Each finished round is written to the progress file immediately. After an interruption the file has
the results so far, and a run with the same arguments continues there.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

from tests.faults.deployment import open_deployment
from tests.faults.label_discovery import discover, ends, find_unpassed
from tests.faults.labels import ROOT, Plan
from tests.faults.ledger import read_notes
from tests.faults.report_page import Goals, Progress, write_page
from tests.faults.rounds import Report, Round, hold_round
from tests.faults.worker_main import BRANCHING_ROLES

POWER_CUT_EVERY = 2
"""Every second outage also loses the last second of the file."""
QUESTIONS_AROUND_AN_OUTAGE = 120
OUTAGE_DEADLINE_SECONDS = 6.0
PAUSING_EVERY = 4
"""Every fourth round, questions wait for an approval; the first such one kills at each claim."""
PAUSING_KINDS = {"ask": 70, "again": 10, "unclear": 5, "flaky": 8, "wait": 7}


def main() -> int:
    """Run until every goal is reached; return 1 if a guarantee was violated."""
    goals, progress = _read_arguments()
    asyncio.run(_run(goals, progress))
    return 1 if progress.findings else 0


async def _run(goals: Goals, progress: Progress) -> None:
    labels = await _labels(progress)
    async with asyncio.TaskGroup() as tasks:
        patient = tasks.create_task(_patient(goals))
        await _rounds(goals, progress, ends(labels), ends(labels, pausing=True))
        progress.long_starts = await patient
    write_page(goals, progress)


async def _rounds(goals: Goals, progress: Progress, plans: list[Plan], claims: list[Plan]) -> None:
    while (number := len(progress.reports)) < goals.rounds_in_all:
        size = _round_of(goals, progress, plans)
        if number < goals.rounds and number % PAUSING_EVERY == PAUSING_EVERY - 1:
            size = _let_pause(size, claims if number == PAUSING_EVERY - 1 else ())
        report = await _one(size, goals.seed + number, [plan.label for plan in plans])
        progress.add(report)
        write_page(goals, progress)
        _say(f"{number + 1}/{goals.rounds_in_all}: {report.seconds:.0f} s, {len(report.findings)}")


async def _patient(goals: Goals) -> int:
    """Return how often a handler that takes many leases is started, with a second worker by."""
    seconds = goals.long_seconds
    with tempfile.TemporaryDirectory(prefix="faults") as folder:
        async with open_deployment(Path(folder)) as harness:
            for _ in range(2):
                await harness.workers.hire(takes_seconds=seconds, limit_seconds=2 * seconds)
            client = harness.make_client(deadline_seconds=3 * seconds)
            await client.ask("long 1", conversation="c1")
            await client.close()
            lines = list(read_notes(harness.ledger.path))
    return sum(line.kind == "started" and line["role"] == "search" for line in lines)


async def _labels(progress: Progress) -> dict[str, bool]:
    with tempfile.TemporaryDirectory(prefix="faults") as folder:
        async with open_deployment(Path(folder)) as harness:
            labels = await discover(harness, seed=1)
    missing = find_unpassed(labels)
    progress.labels = [label for label, innermost in labels.items() if innermost]
    progress.unpassed = [str(place) for place in missing]
    _say(f"{len(progress.labels)} places to die at, {len(missing)} not passed")
    return labels


def _round_of(goals: Goals, progress: Progress, plans: list[Plan]) -> Round:
    """Rounds of kills and pauses first, then outages."""
    number = len(progress.reports)
    if number < goals.rounds:
        share = progress.share(goals)
        size = Round(
            questions=share["messages accepted"],
            kills=max(0, share["processes killed"] - (len(plans) if number == 0 else 0)),
            pauses=share["pauses past the lease"],
            workers=goals.workers,
        )
        return replace(size, plans=tuple(plans), cuts=20) if number == 0 else size
    cut = number % POWER_CUT_EVERY
    return Round(
        questions=QUESTIONS_AROUND_AN_OUTAGE,
        kills=2,
        outages=1 - cut,
        power_cuts=cut,
        workers=4,
        poison=False,
        deadline_seconds=OUTAGE_DEADLINE_SECONDS,
    )


def _let_pause(size: Round, claims: Sequence[Plan]) -> Round:
    """Return a round whose questions wait for an approval, with kills at these places."""
    hiring = {**size.hiring, "pausing": True, "roles": BRANCHING_ROLES}
    kills = max(0, size.kills - len(claims))
    return replace(
        size, hiring=hiring, kinds=PAUSING_KINDS, poison=False, plans=tuple(claims), kills=kills
    )


async def _one(size: Round, seed: int, labels: list[str]) -> Report:
    folder = Path(tempfile.mkdtemp(prefix="faults"))
    async with open_deployment(folder, durable=size.outages + size.power_cuts > 0) as harness:
        report = await hold_round(harness, size, seed, labels)
    if report.findings:
        _say(f"seed {seed}: {len(report.findings)} broken promises; its ledger is in {folder}")
        for finding in report.findings[:20]:
            _say(str(finding)[:300])
    else:
        rmtree(folder)
    return report


def _read_arguments() -> tuple[Goals, Progress]:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    seed = int(os.environ.get("REFDESK_FAULT_SEED", "1"))
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="the fraction of the full suite, such as 0.02"
    )
    parser.add_argument(
        "--rounds", type=int, default=25, help="the number of rounds of kills and pauses"
    )
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--progress", type=Path, default=ROOT / ".faults" / "progress.jsonl")
    parser.add_argument(
        "--page", type=Path, default=ROOT / "docs" / "internal" / "measurements" / "faults.md"
    )
    arguments = parser.parse_args()
    goals = Goals.scale(
        arguments.scale,
        seed=arguments.seed,
        rounds=arguments.rounds,
        workers=arguments.workers,
        page=arguments.page,
    )
    return goals, Progress.read(arguments.progress, goals)


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
