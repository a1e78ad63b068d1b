"""One round of twenty swarms at once, while one of two pods is killed at regular intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.faults.deployment import Deployment
from tests.faults.ledger import read_notes
from tests.faults.rounds import Report, Round, hold_round
from tests.faults.swarms.scripted_work import SwarmScript
from tests.faults.worker_main import BRANCHING_ROLES

SWARMS, WORKERS, PODS = 20, 8, 2
DEADLINE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class SwarmReport:
    """What the oracle says, and how many workers of each answered swarm have completed."""

    report: Report
    completed: Sequence[int]


async def hold_swarms(
    harness: Deployment, seed: int, *, kill_every_seconds: float, takes_seconds: float
) -> SwarmReport:
    """Ask all questions at once; each worker takes `takes_seconds`."""
    after = harness.ledger.path.stat().st_size
    script = SwarmScript(workers=WORKERS, takes_seconds=takes_seconds)
    size = Round(
        questions=SWARMS,
        kills=0,
        kinds={"ask": 100},
        poison=False,
        workers=PODS,
        at_once=SWARMS,
        merge_share=0.0,
        longest_conversation=1,
        kill_every_seconds=kill_every_seconds,
        deadline_seconds=DEADLINE_SECONDS,
        hiring={"swarm": script, "roles": BRANCHING_ROLES},
    )
    report = await hold_round(harness, size, seed, labels=())
    lines = read_notes(harness.ledger.path, after=after)
    answered = [one for one in lines if one.kind == "reported" and one["outcome"] == "answered"]
    return SwarmReport(report, [one["tasks_completed"] for one in answered])
