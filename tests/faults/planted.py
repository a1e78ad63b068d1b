"""`python -m tests.faults.planted [--ways tools] [--questions N]` prints what was found."""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fakeredis import FakeServer

from broker.embedded_redis import Endpoint
from deploy.assembly.ingestion_run import run_ingestion
from deploy.assembly.knowledge import Knowledge, make_embedder, open_index
from knowledge.ingestion_report import PlainReport
from knowledge.search.searcher import LevelSearcher
from manager.evidence_checks import FaultKind
from tests.faults.planting import NamedModel, Planted, plant
from tests.support.app_harness import EXAMPLES, AppHarness, run_app, settings_of

STAGES: dict[str, tuple[str, ...]] = {
    "search": ("search", "augmentation", "response", "quality"),
    "swarm": ("plan", "ledger", "work", "tool", "join", "synthesize", "quality"),
    "specialists": ("extractor", "tool", "join", "synthesis", "quality"),
    "tools": ("reason", "tool", "join", "reflect", "response", "quality"),
}
"""The roles of each way at which faults are planted."""
TASKS = {
    "plan": "plan_swarm",
    "work": "work_on_task",
    "synthesize": "synthesize_findings",
    "reason": "reason",
    "response": "respond",
    "quality": "judge",
}
SWARM_QUESTIONS = (
    "Compare what the webhooks, the REST API and SMPP say about retries",
    "Compare how routing rules and rate limits are configured",
    "What do the documents say about webhooks, and which errors of the REST API should be retried?",
    "Should we use webhooks or poll the REST API for delivery reports?",
)
"""Questions that are divided among workers."""
EVERY_QUESTION = [
    json.loads(line)
    for line in (EXAMPLES / "sms_platform_questions.jsonl").read_text("utf-8").splitlines()
]
QUESTIONS = tuple(
    str(asked["question"])
    for asked in EVERY_QUESTION
    if (asked["expected"], asked["language"]) == ("answered", "en")
)
"""Faults are planted in questions that are answered; every question is asked in a clean run."""


@dataclass
class PlantedCount:
    """How many planted faults were found: at all, and under their name."""

    planted: int = 0
    found: int = 0
    named: int = 0


@dataclass
class PlantedFigures:
    """The counts by way, kind and role; and the clean runs with those that raised an alarm."""

    counts: dict[tuple[str, str, str], PlantedCount] = field(default_factory=dict)
    clean: dict[str, int] = field(default_factory=dict)
    alarms: list[tuple[str, str, Any]] = field(default_factory=list)
    missed: list[tuple[str, str, str, str]] = field(default_factory=list)

    def sum_up(self, way: str = "") -> PlantedCount:
        """Return the counts of a way, or of all."""
        total = PlantedCount()
        for (name, _, _), count in self.counts.items():
            if not way or name == way:
                total.planted += count.planted
                total.found += count.found
                total.named += count.named
        return total


@asynccontextmanager
async def open_desk(
    folder: Path, endpoint: Endpoint, knowledge: Knowledge, way: str
) -> AsyncIterator[tuple[AppHarness, NamedModel]]:
    """Open a desk of a way whose models say which model answered."""
    model = NamedModel()
    settings = settings_of(folder, way=way, search_cache_seconds=0)
    async with run_app(settings, endpoint, knowledge, model) as harness:
        yield harness, model


async def run_clean(
    harness: AppHarness, way: str, questions: Sequence[str], figures: PlantedFigures
) -> None:
    """Ask without a fault; each fault that is reported or journaled is a false alarm."""
    for question in questions:
        driver = harness.driver(expects_faults=True)
        entries = await driver.journal(await driver.say(question))
        faults = [entry.fields["faults"] for entry in entries if entry.fields.get("faults")]
        figures.clean[way] = figures.clean.get(way, 0) + 1
        if faults:
            figures.alarms.append((way, question, faults))


async def run_planted(
    harness: AppHarness,
    model: NamedModel,
    way: str,
    questions: Sequence[str],
    figures: PlantedFigures,
) -> None:
    """Plant each kind at each role of a way, once a question."""
    for kind in FaultKind:
        for role in STAGES[way]:
            for question in questions:
                planted = Planted(kind, role)
                is_model = kind is FaultKind.WRONG_MODEL
                model.wrong_task = TASKS.get(role, "") if is_model else ""
                model.wrong_calls = 0
                with nullcontext() if is_model else plant(planted):
                    reply = await harness.driver(expects_faults=True).say(question)
                model.wrong_task = ""
                if planted.count or model.wrong_calls:
                    note(figures, way, kind, role, question, reply)


def note(
    figures: PlantedFigures,
    way: str,
    kind: FaultKind,
    role: str,
    question: str,
    reply: dict[str, Any],
) -> None:
    """Count one run with a planted fault."""
    one = figures.counts.setdefault((way, kind.value, role), PlantedCount())
    kinds = {fault["kind"] for fault in reply.get("faults", ())}
    one.planted += 1
    one.found += bool(kinds)
    one.named += kind.value in kinds
    if not kinds:
        figures.missed.append((way, kind.value, role, question))


def format_figures(figures: PlantedFigures) -> list[str]:
    """Return the lines of the report."""
    lines = [f"{'way':<13}{'fault':<17}{'planted at':<15}{'runs':>5}{'found':>7}{'named':>7}"]
    for (way, kind, role), count in sorted(figures.counts.items()):
        counts = f"{count.planted:>5}{count.found:>7}{count.named:>7}"
        lines.append(f"{way:<13}{kind:<17}{role:<15}{counts}")
    lines.append("")
    for way in (*figures.clean, ""):
        total = figures.sum_up(way)
        share = 100 * total.found / total.planted if total.planted else 0.0
        clean = figures.clean.get(way, 0) if way else sum(figures.clean.values())
        alarms = sum(1 for alarm in figures.alarms if not way or alarm[0] == way)
        lines.append(
            f"{way or 'all':<13}{total.found} of {total.planted} found ({share:.1f} %), "
            f"{total.named} under their name; {alarms} false alarms in {clean} clean runs"
        )
    lines += [f"missed: {' '.join(item)}" for item in figures.missed]
    lines += [f"alarm: {way}: {question}: {faults}" for way, question, faults in figures.alarms]
    return lines


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ways", nargs="+", default=list(STAGES), choices=list(STAGES))
    parser.add_argument("--questions", type=int, default=4)
    parser.add_argument("--clean", type=int, default=1, help="clean runs of every question")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="refdesk-planted-") as folder:
        figures = asyncio.run(
            _measure(Path(folder), chosen.ways, QUESTIONS[: chosen.questions], chosen.clean)
        )
    sys.stdout.write("\n".join(format_figures(figures)) + "\n")


async def _measure(
    folder: Path, ways: list[str], questions: tuple[str, ...], clean: int
) -> PlantedFigures:
    settings, figures = settings_of(folder), PlantedFigures()
    await run_ingestion(settings, [EXAMPLES / "sms_platform"], PlainReport(lambda _line: None))
    embedder = make_embedder(settings)
    index = await open_index(settings, embedder)
    knowledge = Knowledge(
        index,
        embedder,
        LevelSearcher(index, embedder),
    )
    for way in ways:
        endpoint = Endpoint(url="", durable=False, played=FakeServer())
        async with open_desk(folder, endpoint, knowledge, way) as (harness, model):
            own = SWARM_QUESTIONS[: len(questions)] if way == "swarm" else questions
            for _ in range(clean):
                every = [*SWARM_QUESTIONS, *(str(asked["question"]) for asked in EVERY_QUESTION)]
                await run_clean(harness, way, every, figures)
            await run_planted(harness, model, way, own, figures)
    await index.close()
    return figures


if __name__ == "__main__":
    main()
