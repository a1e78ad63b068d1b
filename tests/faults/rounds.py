"""One seeded round: a population, its trouble, and what the oracle says when all is over."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.faults.deployment import Deployment
from tests.faults.desk_client import DEADLINE_SECONDS
from tests.faults.evidence import gather_evidence, leftovers
from tests.faults.fault_injector import FaultCounts, FaultInjector
from tests.faults.labels import Plan
from tests.faults.ledger import Evidence, Finding
from tests.faults.load import KINDS, LONGEST_CONVERSATION, MERGE_SHARE, Load, open_clients
from tests.faults.oracle import excusing, findings, lateness
from tests.support.waiting import poll

QUIET_LEASES = 30
"""By then whatever the dead had held is taken over, thrice if need be, on a busy machine too."""


COUNTED = (
    "started", "handed over", "billed", "stored", "refused", "cancelled", "lost", "redelivered",
)  # fmt: skip
CAUSED = {
    "pauses past the lease": "stop",
    "connections cut": "cut",
    "Redis killed": "outage",
    "Redis killed and its last second cut": "power cut",
}


@dataclass(frozen=True, slots=True)
class Round:
    """How large a round is.

    With `kill_every_seconds` a process is killed at each of these intervals, besides `kills`.
    """

    questions: int
    kills: int
    pauses: int = 0
    cuts: int = 0
    outages: int = 0
    power_cuts: int = 0
    deadline_seconds: float = DEADLINE_SECONDS
    workers: int = 8
    at_once: int = 40
    poison: bool = True
    merge_share: float = MERGE_SHARE
    longest_conversation: int = LONGEST_CONVERSATION
    kill_every_seconds: float | None = None
    kinds: Mapping[str, int] = field(default_factory=lambda: KINDS)
    plans: tuple[Plan, ...] = ()
    hiring: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """What a round found and counted; times in seconds.

    `quiet_after` is how long after the last answer something was left.
    """

    seed: int
    seconds: float
    counts: dict[str, int]
    latest_seconds: float
    findings: tuple[Finding, ...]
    missed: tuple[Plan, ...] = ()
    quiet_after: float = 0.0

    @property
    def broken(self) -> list[str]:
        """Every broken promise but lateness, which is measured, and never asserted of a machine."""
        return [str(finding) for finding in self.findings if finding.kind != "late"]


async def hold_round(harness: Deployment, size: Round, seed: int, labels: Sequence[str]) -> Report:
    """Hold one round in an empty app."""
    began, after = time.monotonic(), harness.ledger.path.stat().st_size
    amount = FaultCounts(
        size.kills, size.pauses, size.cuts, size.outages, size.power_cuts, size.plans
    )
    trouble = FaultInjector(
        harness, seed, amount, workers=size.workers, labels=labels, hiring=size.hiring
    )
    dead_before = set(harness.workers.died)
    try:
        quiet_after = await _live_through(harness, size, seed, trouble, after)
    finally:
        killed = {pid: how for pid, how in harness.workers.died.items() if pid not in dead_before}
        await harness.workers.dismiss()
    evidence = await gather_evidence(
        harness.client,
        harness.ledger.path,
        faulty=trouble.faulty | set(killed),
        after=after,
    )
    found, excused = excusing(findings(evidence), evidence, trouble.outages)
    return Report(
        seed=seed,
        seconds=time.monotonic() - began,
        counts={**_counts(evidence, trouble, killed), **excused},
        latest_seconds=_latest(evidence),
        findings=tuple(found),
        missed=tuple(trouble.missed),
        quiet_after=quiet_after,
    )


async def _live_through(
    harness: Deployment, size: Round, seed: int, trouble: FaultInjector, after: int
) -> float:
    """Let people ask and faults come, until everybody has a reply and nothing is left.

    Return how long that took after both had ended.
    """
    progress = asyncio.Queue[int]()
    async with (
        open_clients(harness, size.deadline_seconds) as clients,
        asyncio.TaskGroup() as tasks,
    ):
        people = Load(
            clients,
            seed,
            questions=size.questions,
            at_once=size.at_once,
            poison=size.poison,
            # Whoever submits a message again does not learn what it was merged into.
            merge_share=0.0 if size.cuts + size.outages + size.power_cuts else size.merge_share,
            kinds=size.kinds,
            longest_conversation=size.longest_conversation,
        )
        staffing = tasks.create_task(trouble.keep_staffed())
        # A deadline is kept as long as one process lives: people come when there is one.
        await harness.wait_for_note("working", after=after)
        killing = tasks.create_task(trouble.kill_regularly(size.kill_every_seconds))
        async with asyncio.TaskGroup() as busy:
            spreading = busy.create_task(trouble.spread(progress, size.questions))
            busy.create_task(
                people.live(
                    lambda: progress.put_nowait(1),
                    # Else what is to die at a place might wait for work to lead it there.
                    more=lambda: bool(size.plans) and not spreading.done(),
                )
            )
        killing.cancel()
        began = time.monotonic()
        await _quiet(harness)
        quiet_after = time.monotonic() - began
        staffing.cancel()
    return quiet_after


async def _quiet(harness: Deployment) -> None:
    """Wait until nothing is left, or until nothing more can be hoped for."""

    async def is_quiet() -> bool:
        return not await leftovers(harness.client)

    await poll(is_quiet, patience_seconds=QUIET_LEASES * harness.workers.settings.lease_seconds)


def _counts(evidence: Evidence, trouble: FaultInjector, killed: dict[int, int]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    counts["messages accepted"] = sum(1 for _ in evidence.lines("accepted"))
    counts["processes killed"] = sum(1 for how in killed.values() if how == 9)
    for what, do in CAUSED.items():
        counts[what] = trouble.caused[do]
    for kind in COUNTED:
        counts[kind] = sum(1 for _ in evidence.lines(kind))
    for line in evidence.lines("reported"):
        counts[f"reported {line['outcome']}"] += 1
    for entries in evidence.journals.values():
        for entry in entries:
            if entry.kind == "routed":
                counts["transitions"] += 1
            elif entry.kind == "dead_lettered":
                counts[f"buried as {entry.fields['reason']}"] += 1
    return dict(counts)


def _latest(evidence: Evidence) -> float:
    """Return the latest end of all, against its deadline; negative when all were early."""
    return max(
        (
            lateness(entries, line["deadline_seconds"])
            for line in evidence.lines("accepted")
            if (entries := evidence.journals.get(line["name"]))
        ),
        default=0.0,
    )
