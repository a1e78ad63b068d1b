"""One round of twenty swarms at once, while one of two pods is killed at regular intervals."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.faults.deployment import Deployment
from tests.faults.ledger import read_notes
from tests.faults.rounds import Report, Round, hold_round
from tests.faults.scripted_agents import SwarmScript
from tests.faults.worker_main import BRANCHING_ROLES

SWARMS, WORKERS, PODS = 20, 8, 2
DEADLINE_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class SwarmReport:
    """What the oracle says, and how many workers of each answered swarm have completed.

    `left` is the number of swarms that another message ended before all had completed.
    """

    report: Report
    completed: Sequence[int]
    left: int


async def hold_swarms(
    harness: Deployment,
    seed: int,
    *,
    kill_every_seconds: float,
    takes_seconds: float,
    leaves: bool = False,
) -> SwarmReport:
    """Ask all questions at once; each worker takes `takes_seconds`.

    With `leaves` some of them are of one conversation, and each is about something else than the
    one before it.
    """
    after = harness.ledger.path.stat().st_size
    script = SwarmScript(workers=WORKERS, takes_seconds=takes_seconds)
    size = Round(
        questions=SWARMS,
        kills=0,
        kinds={"leave" if leaves else "ask": 100},
        poison=False,
        workers=PODS,
        at_once=SWARMS,
        merge_share=0.0,
        longest_conversation=2 if leaves else 1,
        kill_every_seconds=kill_every_seconds,
        deadline_seconds=DEADLINE_SECONDS,
        hiring={"swarm": script, "roles": BRANCHING_ROLES},
    )
    report = await hold_round(harness, size, seed, labels=())
    lines = read_notes(harness.ledger.path, after=after)
    ended = [line for line in lines if line.kind == "reported"]
    completed = [item["tasks_completed"] for item in ended if item["outcome"] == "answered"]
    superseded = sum(item["outcome"] == "superseded" for item in ended)
    return SwarmReport(report, completed, superseded + sum(item < WORKERS for item in completed))
