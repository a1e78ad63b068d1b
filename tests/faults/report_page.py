"""Writes the page of a long fault run; every figure comes from that run."""

import json
import os
import platform
import subprocess
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from broker.embedded_redis import find_server
from tests.faults.ledger import Finding
from tests.faults.rounds import Report

REPORT = TypeAdapter(Report)
QUESTIONS, KILLS, PAUSES, OUTAGES = 100_000, 10_000, 1_000, 50
SPARE = 1.02
"""Some that were to be killed end by themselves, when Redis goes away before they work."""
LONG_SECONDS = 300.0
SHORTEST_LONG_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class Goals:
    """How much is to be asked, killed and stopped, in how many rounds."""

    seed: int
    questions: int
    kills: int
    pauses: int
    outages: int
    rounds: int
    workers: int
    long_seconds: float
    page: Path

    @classmethod
    def scale(cls, scale: float, *, seed: int, rounds: int, workers: int, page: Path) -> "Goals":
        """Return a part of the whole; at least one round, and one outage."""
        rounds = max(1, round(rounds * scale))
        return cls(
            seed=seed,
            questions=round(QUESTIONS * scale),
            kills=round(KILLS * scale),
            pauses=round(PAUSES * scale),
            outages=max(2, round(OUTAGES * scale)),
            rounds=rounds,
            workers=workers,
            long_seconds=max(SHORTEST_LONG_SECONDS, LONG_SECONDS * scale),
            page=page,
        )

    @property
    def rounds_in_all(self) -> int:
        """Rounds of kills and pauses, and one for each outage."""
        return self.rounds + self.outages


@dataclass
class Progress:
    """The reports of the rounds so far; each is written to a file before the next begins."""

    path: Path
    reports: list[Report] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    unpassed: list[str] = field(default_factory=list)
    long_starts: int = 0

    @classmethod
    def read(cls, path: Path, goals: Goals) -> "Progress":
        """Go on with what a run of the same goals left, or begin again."""
        path.parent.mkdir(parents=True, exist_ok=True)
        head = json.dumps({**asdict(goals), "page": ""})
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        if lines and lines[0] == head:
            return cls(path, [REPORT.validate_json(line) for line in lines[1:]])
        path.write_text(f"{head}\n", "utf-8")
        return cls(path)

    def add(self, report: Report) -> None:
        """Keep a report."""
        self.reports.append(report)
        with self.path.open("ab") as file:
            file.write(REPORT.dump_json(report) + b"\n")

    def share(self, goals: Goals) -> dict[str, int]:
        """Return what the next round has to do, so that all rounds together reach the goals."""
        wanted = {
            "messages accepted": goals.questions,
            "processes killed": round(goals.kills * SPARE),
            "pauses past the lease": goals.pauses,
        }
        left = max(1, goals.rounds - len(self.reports))
        return {what: -(-(goal - self.counts[what]) // left) for what, goal in wanted.items()}

    @property
    def counts(self) -> Counter[str]:
        """Everything counted so far."""
        return sum((Counter(report.counts) for report in self.reports), Counter[str]())

    @property
    def findings(self) -> list[Finding]:
        """Every broken promise so far."""
        return [finding for report in self.reports for finding in report.findings]


KINDS = {
    "lost": "an accepted message without an outcome, or missing conversation memory",
    "doubled": "an outcome, a transition, a start or a memory entry that occurs twice",
    "late": "a message that ended more than 250 ms after its deadline",
    "illegal": "a step that is not in the flow table, or an end without a decision of the manager",
    "overspent": "a hop started by more than three processes, or a call paid twice without a fault",
    "left over": "entries in streams, deadlines, overdue delays, counters or queues at the end",
}
DONE = (
    ("messages accepted", "questions"),
    ("processes killed", "kills"),
    ("pauses past the lease", "pauses"),
)
FIGURES = {
    "transitions": "transitions checked against the flow table",
    "started": "handlers started",
    "handed over": "questions passed directly to a manager in the client's process",
    "redelivered": "restarts of entries that another process had held",
    "refused": "results rejected: the process no longer held the entry, or the question had ended",
    "cancelled": "handlers cancelled because their process lost the entry",
    "billed": "model calls billed",
    "stored": "model answers stored",
    "connections cut": "times that all connections were closed",
}

_OUTAGE_LABELS = {
    "exposed to an outage": "messages exposed to an outage",
    "lost by an outage and reported to its client": "messages lost by an outage and reported to "
    "their client",
}


def write_page(goals: Goals, progress: Progress) -> None:
    """Write the page; a run that is not over says so."""
    goals.page.write_text("\n".join(_lines(goals, progress)) + "\n", "utf-8")


def _lines(goals: Goals, progress: Progress) -> list[str]:
    counts, kinds = progress.counts, Counter(finding.kind for finding in progress.findings)
    return [
        "# Fault injection",
        "",
        "Generated by `make faults` (`python -m tests.faults`); every figure comes from that run.",
        *_state(goals, progress),
        "",
        "Workers, managers and agents run in real processes on a real Redis; agents and models are",
        "scripted. About half of the messages are submitted by clients in these processes, which",
        "pass them directly to the manager there; the others by a client that is never killed. An",
        "oracle checks the journal of every message against the flow table, and against a ledger",
        "that survives the processes that write it. The implementation is in `tests/faults/`.",
        "",
        "## Injected faults",
        "",
        *_table(("fault", "planned", "injected"), _list_done(goals, counts)),
        "",
        "## Results",
        "",
        *_table(("violation", "count", "meaning"), _broken(kinds)),
        "",
        *_findings(progress),
        *_table(("figure", "count"), _figures(counts, progress)),
        "",
        *_long(goals, progress),
        "## Redis killed",
        "",
        "With `appendfsync everysec`, Redis may lose the last second. In half of the outages Redis",
        "was killed; in the other half, its file was also cut to its state one second earlier.",
        "",
        *_table(("figure", "count"), _outages(counts)),
        "",
        "## Where processes were killed",
        "",
        "About half of the kills and pauses hit a process exactly at an `await` of a worker or",
        "manager, before or after the wait; the others come at random moments. The locations:",
        "",
        *(f"- `{label}`" for label in sorted(progress.labels)),
        *(f"- not passed: `{place}`" for place in progress.unpassed),
        "",
        "## Seeds and environment",
        "",
        *_machine(goals, progress),
    ]


def _state(goals: Goals, progress: Progress) -> list[str]:
    done, wanted = len(progress.reports), goals.rounds_in_all
    if done < wanted:
        return ["", f"**This run is not finished: {done} of {wanted} rounds.**"]
    if goals.outages < OUTAGES:
        return ["", "**This was a short run; the column *planned* shows its size.**"]
    return []


def _list_done(goals: Goals, counts: Counter[str]) -> list[tuple[str, ...]]:
    rows = [(what, f"{getattr(goals, goal):,}", f"{counts[what]:,}") for what, goal in DONE]
    redis = counts["Redis killed"] + counts["Redis killed and its last second cut"]
    return [*rows, ("Redis killed and started again", f"{goals.outages:,}", f"{redis:,}")]


def _broken(kinds: Counter[str]) -> list[tuple[str, ...]]:
    return [(kind, f"{kinds[kind]:,}", meaning) for kind, meaning in KINDS.items()]


def _findings(progress: Progress) -> list[str]:
    findings = [
        f"- seed {report.seed}: {str(finding)[:200]}"
        for report in progress.reports
        for finding in report.findings
    ]
    return [*findings[:50], ""] if findings else []


def _figures(counts: Counter[str], progress: Progress) -> list[tuple[str, ...]]:
    labels = {
        name: f"reported to a client: {name.removeprefix('reported ')}"
        for name in counts
        if name.startswith("reported ")
    }
    buried = {name: f"entries {name}" for name in counts if name.startswith("buried")}
    rows = [
        (meaning, f"{counts[name]:,}") for name, meaning in {**labels, **FIGURES, **buried}.items()
    ]
    latest = max((report.latest_seconds for report in progress.reports), default=0.0)
    quiet = max((report.quiet_after for report in progress.reports), default=0.0)
    return [
        *rows,
        ("latest end, relative to its deadline", f"{latest:+.3f} s"),
        ("longest time until nothing was left after the last answer", f"{quiet:.1f} s"),
    ]


def _long(goals: Goals, progress: Progress) -> list[str]:
    if not progress.long_starts:
        return []
    seconds, leases = goals.long_seconds, goals.long_seconds / 1.5
    return [
        f"A handler that ran for {seconds:.0f} s ({leases:.0f} lease periods) was started "
        f"{progress.long_starts} time(s).",
        "",
    ]


def _outages(counts: Counter[str]) -> list[tuple[str, ...]]:
    names = [
        "Redis killed",
        "Redis killed and its last second cut",
        "exposed to an outage",
        "lost by an outage and reported to its client",
        *sorted(name for name in counts if name.startswith("excused")),
    ]
    return [(_OUTAGE_LABELS.get(name, name), f"{counts[name]:,}") for name in names]


def _machine(goals: Goals, progress: Progress) -> list[str]:
    seconds = sum(report.seconds for report in progress.reports)
    broken = [str(report.seed) for report in progress.reports if report.findings]
    server = subprocess.run([str(find_server()), "--version"], capture_output=True, check=True)
    version = server.stdout.decode().split("v=")[-1].split()[0]
    return [
        f"- seeds {goals.seed} to {goals.seed + len(progress.reports) - 1}, one for each round; "
        f"seeds with violations: {', '.join(broken) or 'none'}",
        f"- {seconds / 60:.1f} minutes, written on {time.strftime('%Y-%m-%d')}",
        f"- {os.cpu_count()} cores, {platform.system()} {platform.release().partition('-')[0]}, "
        f"Python {platform.python_version()}, Redis {version}",
        f"- {goals.workers} concurrent worker processes, each with a manager; leases of 1.5 s",
    ]


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [
        f"| {' | '.join(head)} |",
        f"|{'---|' * len(head)}",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
