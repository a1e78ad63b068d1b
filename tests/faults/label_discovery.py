"""Finds the labels that an app passes on good and bad days."""

import ast
import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.faults.deployment import Deployment
from tests.faults.fault_injector import PHASES
from tests.faults.labels import ROOT, Plan
from tests.faults.ledger import read_notes
from tests.faults.load import KINDS
from tests.faults.rounds import Round, hold_round
from tests.faults.worker_main import BRANCHING_ROLES

PACKAGES = ("worker", "manager")
Waiting = ast.Await | ast.AsyncWith | ast.AsyncFor


@dataclass(frozen=True, slots=True)
class AwaitPoint:
    """One `await`, `async with` or `async for`, from its first line to its last."""

    file: str
    function: str
    first: int
    last: int

    def has(self, label: str) -> bool:
        """Whether a label names this place."""
        file, function, line = label.split(":")
        return (file, function) == (self.file, self.function) and (
            self.first <= int(line) <= self.last
        )

    def __str__(self) -> str:
        return f"{self.file}:{self.function}:{self.first}"


def places() -> list[AwaitPoint]:
    """Return every place, in the order of the files and lines."""
    files = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
    return [place for file in files for place in _of(file)]


def _of(file: Path) -> Iterator[AwaitPoint]:
    name = str(file.relative_to(ROOT))
    for function in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(function, ast.AsyncFunctionDef):
            for node in _own(function):
                last = node.end_lineno if isinstance(node, ast.Await) else _head(node)
                yield AwaitPoint(name, function.name, node.lineno, last or node.lineno)


def _own(function: ast.AsyncFunctionDef) -> Iterator[Waiting]:
    """Yield what waits in a function, but not in functions inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, Waiting) and not _is_a_limit(node):
            yield node
        if not isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef | ast.Lambda):
            waiting = [*ast.iter_child_nodes(node), *waiting]


def _head(node: ast.AsyncWith | ast.AsyncFor) -> int:
    """Return the last line before the body of a block."""
    return max(node.lineno, node.body[0].lineno - 1)


def _is_a_limit(node: Waiting) -> bool:
    """Whether it is `async with asyncio.timeout(...)`, which never waits itself."""
    return isinstance(node, ast.AsyncWith) and all(
        isinstance(item.context_expr, ast.Call)
        and ast.unparse(item.context_expr.func) == "asyncio.timeout"
        for item in node.items
    )


PAUSES = "manager/pauses.py:"
ELSEWHERE = {
    "worker/metrics.py": "answers who scrapes, and holds no entry",
    "worker/health.py": "beats for the probes, and holds no entry",
    "worker/drafts.py": "shows a draft and settles nothing; see tests/desk/test_killed_drafts.py",
    "worker/budgets.py": "reserves under a name that a repeated run has too, and holds no entry; "
    "see tests/desk/test_budgets.py",
    "worker/isolation.py": "runs in a process of its own, with tests of its own",
}
"""Files whose waiting places this suite leaves to others, and why."""


async def discover(harness: Deployment, seed: int) -> dict[str, bool]:
    """Return each label, and whether it is ever the innermost of its chain."""
    hiring = {"discovers": True, "slots": 2}
    # A message that erases what its person chose is rare elsewhere.
    kinds = {**KINDS, "forget": 10}
    busy = Round(questions=70, kills=4, pauses=1, cuts=30, workers=3, kinds=kinds, hiring=hiring)
    await hold_round(harness, busy, seed, labels=())
    pausing = {**hiring, "pausing": True, "roles": BRANCHING_ROLES}
    waits = Round(questions=12, kills=0, workers=2, poison=False, kinds={"ask": 1}, hiring=pausing)
    await hold_round(harness, waits, seed, labels=())
    await _one_is_sent_home(harness)
    lines = [line for line in read_notes(harness.ledger.path) if line.kind == "label"]
    innermost = {line["label"] for line in lines if line["innermost"]}
    return {line["label"]: line["label"] in innermost for line in lines}


def ends(labels: Mapping[str, bool], *, pausing: bool = False) -> list[Plan]:
    """Return a plan for each way to die at each label, in a fixed order.

    Only workers whose questions pause pass the labels of pauses.
    """
    inner = sorted(
        label
        for label, innermost in labels.items()
        if innermost and label.startswith(PAUSES) is pausing
    )
    return [Plan(label, phase) for label in inner for phase in PHASES]


def find_unpassed(labels: Iterable[str]) -> list[AwaitPoint]:
    """Return the places of worker and manager that no label names."""
    known = list(labels)
    return [
        place
        for place in places()
        if place.file not in ELSEWHERE and not any(place.has(label) for label in known)
    ]


async def _one_is_sent_home(harness: Deployment) -> None:
    """Let a process end with work in hand that will not end in time."""
    client, pid = (
        harness.make_client(),
        await harness.workers.hire(discovers=True, grace_seconds=0.05),
    )
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(client.ask("slow 1000", conversation="c1000"))
        await harness.wait_for_note("started", pid=pid, role="search")
        harness.workers.end(pid)
        await harness.workers.until(lambda: pid in harness.workers.died)
        await client.cancel("slow 1000", conversation="c1000")
    await client.close()
    # What it handed back was cancelled, but would keep the next one busy for a minute.
    await harness.client.flushall()
    await harness.broker.prepare(BRANCHING_ROLES)
