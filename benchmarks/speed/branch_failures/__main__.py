"""`python -m benchmarks.speed.branch_failures` prints a table of both systems, in one run.

A hundred branches take 0.2 to 2.2 s each and run side by side. In one case a worker raises once at
its first run; in the other the process gets SIGKILL when half of the workers have ended, and
another process starts at once in its place. The seconds are those from the first begin of a worker
to the answer. Needs `requirements/bench.txt`.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.speed.branch_failures.asking import LONGEST_SECONDS
from benchmarks.speed.branch_failures.workers import (
    FAILING,
    HEAD,
    WIDTH,
    BranchFigures,
    WorkerNotes,
)
from benchmarks.speed.harness.server import private_redis

_LOOK_SECONDS = 0.01
_CASES = ("one worker raises", "SIGKILL at the half")


def main() -> None:
    """Print the table."""
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
        start = _starter("refdesk_run", arguments)
        process, before = start(), Counter[int]()
        asking = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.speed.branch_failures.asking", url],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
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
        start = _starter("langgraph_run", arguments)
        process, found = start(), ""
        if case == _CASES[1]:
            before = kill_at_half(process, notes)
        else:
            found, _ = process.communicate(timeout=LONGEST_SECONDS)
            before = notes.count("end")
        needs = "its own process" if retry else "the caller"
        if not retry:
            process = _starter("langgraph_run", [*arguments, "--resume"])()
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
    words = [sys.executable, "-m", f"benchmarks.speed.branch_failures.{module}", *arguments]
    return lambda: subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


if __name__ == "__main__":
    main()
