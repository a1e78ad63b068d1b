"""What the long run is to reach, and what it has reached so far."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from tests.faults.finding import Finding
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
