"""A hundred workers that take staggered times and note in a file when each begins and ends."""

import asyncio
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

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
