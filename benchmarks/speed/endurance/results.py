"""The result of a long run: its figures, its goals, and its section of the endurance page."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PAGE = Path(__file__).parents[3] / "docs" / "measurements" / "endurance.md"
HEAD = """# Endurance

Written by `python -m benchmarks.speed.endurance RUN --write`; do not edit. The figures are those of
the last such run of each.
"""


@dataclass(frozen=True, slots=True)
class Check:
    """A goal: a figure, and what it must be."""

    name: str
    found: float
    must_be: Literal["at most", "at least"]
    goal: float

    @property
    def met(self) -> bool:
        """Whether the goal was reached."""
        return self.found <= self.goal if self.must_be == "at most" else self.found >= self.goal

    @property
    def line(self) -> str:
        """The goal as a row of a table."""
        word = "met" if self.met else "MISSED"
        return f"| {self.name} | {self.found:.3f} | {self.must_be} {self.goal:g} | {word} |"


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run."""

    name: str
    figures: Mapping[str, object]
    checks: Sequence[Check]

    @property
    def met(self) -> bool:
        """Whether every goal was reached."""
        return all(check.met for check in self.checks)

    def text(self) -> str:
        """Return the run as two tables."""
        rows = "\n".join(f"| {name} | {_format(value)} |" for name, value in self.figures.items())
        goals = "\n".join(check.line for check in self.checks)
        return (
            f"## {self.name}\n\n| goal | found | must be | |\n|---|---|---|---|\n{goals}\n\n"
            f"| figure | |\n|---|---|\n{rows}\n"
        )

    def json(self) -> str:
        """Return the run as one line for programs."""
        checks = {check.name: check.found for check in self.checks}
        return json.dumps({"run": self.name, "met": self.met, **checks, **self.figures})

    def write(self, command: str) -> None:
        """Put the run into the page, in the place of the one before."""
        page = PAGE.read_text("utf-8") if PAGE.exists() else HEAD
        text = f"{self.text()}\n`{command}`\n"
        section = re.compile(rf"## {re.escape(self.name)}\n.*?(?=\n## |\Z)", re.DOTALL)
        if section.search(page):
            page = section.sub(lambda _: text, page)
        else:
            page = f"{page.rstrip()}\n\n{text}"
        PAGE.write_text(page, "utf-8")


def _format(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def share_below(values: Sequence[float], share: float) -> float:
    """Return the value that this share of them does not exceed; 0 without any."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
