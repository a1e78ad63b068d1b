"""`python -m benchmarks.speed.branch_failures` prints a table of both systems, in one run.

A hundred branches take 0.2 to 2.2 s each and run side by side. In one case a worker raises once at
its first run; in the other the process gets SIGKILL when half of the workers have ended, and
another process starts at once in its place. The seconds are those from the first begin of a worker
to the answer. Needs `requirements/bench.txt`.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from agents.agent import Agent
from benchmarks.speed.branches import Shape, make_flow
from benchmarks.speed.redis_server import private_redis
from benchmarks.speed.refdesk_flow import PLACES, IdleAgent, NoTexts
from broker.lease_renewer import LeaseRenewal
from broker.redis_broker import RedisBroker
from broker.transport.connect import connect
from envelope.outcome import HopOutcome, Wrote
from envelope.role import Role
from gateway.desk import Desk, Message
from manager.machine import Limits
from manager.manager import Manager
from memory.conversation import RedisMemory
from worker.agent_handler import AgentHandler
from worker.port import SilentMeter
from worker.process import WorkerProcess, WorkerSpec

WIDTH = 100
FIRST_SECONDS, STEP_SECONDS = 0.2, 0.02
FAILING = 40


class FailedOnceError(RuntimeError):
    """The failure of one worker, at its first run."""


@dataclass(frozen=True, slots=True)
class WorkerNotes:
    """Lines `begin NUMBER` and `end NUMBER`, written by all processes of one run."""

    file: Path

    async def work(self, number: int, *, fails_once: bool) -> None:
        """Do the work of a worker: wait; the failing one raises at its first run."""
        self.note("begin", number)
        await asyncio.sleep(FIRST_SECONDS + STEP_SECONDS * number)
        if fails_once and number == FAILING and self.count("begin")[number] == 1:
            raise FailedOnceError(f"worker {number} fails once")
        self.note("end", number)

    def note(self, what: str, number: int) -> None:
        """Append a line at once."""
        line = f"{what} {number} {time.time():.4f}\n".encode()
        handle = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)

    def find_first(self) -> float:
        """Return when the first worker began, in Unix seconds."""
        return float(self.file.read_text("ascii").split(maxsplit=3)[2])

    def count(self, what: str) -> Counter[int]:
        """Return how often each worker began or ended."""
        text = self.file.read_text("ascii") if self.file.exists() else ""
        lines = (line.split() for line in text.splitlines())
        return Counter(int(words[1]) for words in lines if words[0] == what)


@dataclass(frozen=True, slots=True)
class BranchFigures:
    """What one run found.

    `again` are workers that had ended and were run again, `cut` those that had begun, had not ended
    and were run again (without the failing one). `results` are those in the answer.
    """

    system: str
    case: str
    seconds: float
    again: int
    cut: int
    results: int
    needs: str

    def format(self) -> str:
        """Return the row of the table."""
        return (
            f"| {self.system:<24} | {self.case:<20} | {self.again:>9} | {self.cut:>7} "
            f"| {self.results:>7} | {self.seconds:>8.2f} | {self.needs} |"
        )


HEAD = (
    "| system                   | case                 | ended, again | cut off, again "
    "| results | seconds | who goes on |\n|---|---|---|---|---|---|---|"
)


LONGEST_SECONDS = 120.0


async def ask(url: str) -> str:
    """Ask one question, and return its outcome."""
    broker = RedisBroker(connect(url))
    desk = Desk(
        broker.producer,
        broker.replies,
        tenant="bench",
        assistant="bench",
        channel="bench",
        deadline_seconds=LONGEST_SECONDS,
        words=lambda _key, language: language,
    )
    reply = await desk.ask(Message("how", "one", "one"))
    await broker.close()
    return str(reply["outcome"])


LEASE_SECONDS = 15.0
"""The default of the product."""


class Reads(BaseModel, frozen=True):
    """The call, whose key has the number of the worker."""

    tool_call: dict[str, Any]


class Writes(BaseModel, frozen=True):
    """The result of the worker, with its record."""

    multi_tool_results: dict[str, Any]
    tool_executions: tuple[dict[str, Any], ...]


class TimedAgent(Agent[Reads, Writes]):
    """Works as the numbered worker of its call."""

    role = Role.TOOL
    reads = Reads
    writes = Writes

    def __init__(self, notes: WorkerNotes, *, fails: bool) -> None:
        self._notes = notes
        self._fails = fails

    async def work(self, reads: Reads) -> HopOutcome[Writes]:
        """Wait, and return the number."""
        name = str(reads.tool_call["call_id"])
        await self._notes.work(int(name.rpartition("_")[2]), fails_once=self._fails)
        done = ({"call_id": name},)
        return Wrote(Writes(multi_tool_results={name: "result"}, tool_executions=done))


async def work_until_killed(folder: Path, url: str, *, fails: bool) -> None:
    """Run one worker process of Refdesk."""

    def open_broker() -> RedisBroker:
        return RedisBroker(connect(url), lease_seconds=LEASE_SECONDS)

    manager = Manager(
        {"assistant": make_flow(Shape("100 branches", 1, WIDTH))},
        RedisMemory(connect(url), shards=1),
        NoTexts(),
        limits=Limits(research=0, process_count=10_000, parallel_tools=WIDTH),
        quality_threshold=0.7,
    )
    agents: tuple[Agent[Any, Any], ...] = (
        IdleAgent(Role.LANG, {"language": "en"}),
        TimedAgent(WorkerNotes(folder / "notes"), fails=fails),
    )
    specs = [WorkerSpec(manager, 4 * PLACES)]
    for agent in agents:
        handler = AgentHandler(agent, limit_seconds=30)
        specs.append(WorkerSpec(handler, 2 * PLACES))
    renewal = LeaseRenewal(open_broker, lease_seconds=LEASE_SECONDS)
    process = WorkerProcess(open_broker(), specs, renewal=renewal, meter=SilentMeter())
    async with process.running():
        await asyncio.Event().wait()


OWN = "benchmarks.speed.branch_failures"
LANGGRAPH = "benchmarks.speed.systems.langgraph_branches"
_LOOK_SECONDS = 0.01
_CASES = ("one worker raises", "SIGKILL at the half")


def main() -> None:
    """Print the table, or be one of the processes that this starts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed.branch_failures")
    parts = parser.add_subparsers(dest="part")
    parts.add_parser("ask").add_argument("url")
    working = parts.add_parser("work")
    working.add_argument("folder", type=Path)
    working.add_argument("url")
    working.add_argument("--fails", action="store_true")
    chosen = parser.parse_args()
    match chosen.part:
        case "ask":
            print_line(asyncio.run(ask(chosen.url)))
        case "work":
            asyncio.run(work_until_killed(chosen.folder, chosen.url, fails=chosen.fails))
        case _:
            print_table()


def print_table() -> None:
    """Run every case on both systems."""
    print_line(HEAD)
    for case in _CASES:
        print_line(run_refdesk(case).format())
        for durability in ("async", "sync"):
            print_line(run_langgraph(case, durability).format())
    print_line(run_langgraph(_CASES[0], "async", retry=True).format())
    print_line(f"load of the machine (1, 5, 15 minutes): {os.getloadavg()}")


def print_line(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run_refdesk(case: str) -> BranchFigures:
    """Run a case on Refdesk: a supervisor starts another process, nobody asks again."""
    with tempfile.TemporaryDirectory(prefix="refdesk-bench-") as name, private_redis() as url:
        folder = Path(name)
        notes = WorkerNotes(folder / "notes")
        arguments = [str(folder), url, *(["--fails"] if case == _CASES[0] else [])]
        start = _starter(OWN, ["work", *arguments])
        process, before = start(), Counter[int]()
        asking = subprocess.Popen(
            [sys.executable, "-m", OWN, "ask", url], stdout=subprocess.PIPE, text=True
        )
        if case == _CASES[1]:
            before = kill_at_half(process, notes)
            process = start()
        answer, _ = asking.communicate(timeout=LONGEST_SECONDS)
        seconds = time.time() - notes.find_first()
        process.send_signal(signal.SIGKILL)
        process.wait()
        results = len(notes.count("end"))
        if answer.strip() != "answered":
            raise RuntimeError(f"expected an answer, found {answer!r}")
        needs = "its own process" if case == _CASES[0] else "another process"
        return compare("refdesk", case, notes, before, seconds, results, needs)


def run_langgraph(case: str, durability: str, *, retry: bool = False) -> BranchFigures:
    """Run a case on LangGraph: the caller resumes the thread after the failure."""
    with tempfile.TemporaryDirectory(prefix="refdesk-bench-") as name:
        folder = Path(name)
        notes = WorkerNotes(folder / "notes")
        fails = ["--fails"] if case == _CASES[0] else []
        arguments = [str(folder), "--durability", durability, *fails]
        arguments += ["--retry"] if retry else []
        start = _starter(LANGGRAPH, arguments)
        process, found = start(), ""
        if case == _CASES[1]:
            before = kill_at_half(process, notes)
        else:
            found, _ = process.communicate(timeout=LONGEST_SECONDS)
            before = notes.count("end")
        needs = "its own process" if retry else "the caller"
        if not retry:
            process = _starter(LANGGRAPH, [*arguments, "--resume"])()
            found, _ = process.communicate(timeout=LONGEST_SECONDS)
        seconds = time.time() - notes.find_first()
        label = f"langgraph, {durability}" + (", retries" if retry else "")
        return compare(label, case, notes, before, seconds, int(found or 0), needs)


def kill_at_half(process: "subprocess.Popen[str]", notes: WorkerNotes) -> "Counter[int]":
    """Kill a process when half of the workers have ended; return those."""
    wait_for(lambda: len(notes.count("end")) >= WIDTH // 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return notes.count("end")


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    until = time.monotonic() + LONGEST_SECONDS
    while not is_so():
        if time.monotonic() > until:
            raise TimeoutError("expected the workers to go on, found them waiting")
        time.sleep(_LOOK_SECONDS)


def compare(
    system: str,
    case: str,
    notes: WorkerNotes,
    before: "Counter[int]",
    seconds: float,
    results: int,
    needs: str,
) -> BranchFigures:
    """Return the figures of a run; `before` are the workers that had ended at the failure."""
    begun, ended = notes.count("begin"), notes.count("end")
    again = {number for number, times in ended.items() if times > 1}
    again |= {number for number in before if begun[number] > 1}
    again -= {FAILING} if case == _CASES[0] else set()
    cut = {number for number, times in begun.items() if times > 1} - again
    cut -= {FAILING} if case == _CASES[0] else set()
    return BranchFigures(system, case, seconds, len(again), len(cut), results, needs)


def _starter(module: str, arguments: list[str]) -> "Callable[[], subprocess.Popen[str]]":
    words = [sys.executable, "-m", module, *arguments]
    return lambda: subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


if __name__ == "__main__":
    main()
