"""Shows a review in the terminal while it runs: who works, and how many requirements are judged.

On a terminal one line changes; elsewhere a line is added for each part of the work that has ended.
"""

import re
import sys
from collections.abc import Callable

from broker.values import Fields, JournalEntry
from citations.links import plain_line
from deploy.cli.markdown_tables import columns
from deploy.cli.printing import WIDTH

ERASE_LINE = "\r\x1b[2K"
_JUDGED = re.compile(r"\w{1,20}-(\d{1,6})(?: - \w{1,20}-(\d{1,6}))?")


def write_progress(text: str) -> None:
    """Write to standard error without buffering."""
    sys.stderr.write(text)
    sys.stderr.flush()


class ReviewProgress:
    """Follows the journal of a review; `is_terminal`: one line is written over and over."""

    def __init__(self, write: Callable[[str], None], *, is_terminal: bool) -> None:
        self._write = write
        self._is_terminal = is_terminal
        self._labels: dict[str, str] = {}
        self._running: list[str] = []
        self._known: dict[str, int] = {}
        self._judged: dict[str, int] = {}
        self._shown = ""

    def read(self, entry: JournalEntry) -> None:
        """Show what an entry of the journal says about the work."""
        if entry.kind != "routed":
            return
        self._end(entry.fields)
        self._begin(entry.fields)
        self._draw()

    def end(self) -> None:
        """Erase the line that changes."""
        if self._is_terminal and self._shown:
            self._write(ERASE_LINE)

    def _begin(self, fields: Fields) -> None:
        begun, plan = fields.get("branches"), fields.get("plan")
        names = [str(one) for one in begun] if isinstance(begun, list) else []
        labels = [plain_line(str(one)) for one in plan] if isinstance(plan, list) else []
        for name, label in zip(names, labels, strict=False):
            if name in self._labels:
                continue
            self._labels[name] = label
            # A part that is tried once more has the same requirements.
            if count := _count_requirements(label):
                self._known[label] = count
            elif label:
                self._running.append(label)

    def _end(self, fields: Fields) -> None:
        if fields.get("target") != "return":
            return
        label = self._labels.get(str(fields.get("branch")), "")
        if count := _count_requirements(label):
            self._judged[label] = count
        if label in self._running:
            self._running.remove(label)
        if label and not self._is_terminal:
            done = f"judged {label} ({self._state})" if count else f"done: {label}"
            self._write(f"{_cut(done)}\n")

    @property
    def _state(self) -> str:
        judged, known = sum(self._judged.values()), sum(self._known.values())
        return f"{judged} of {known} requirements"

    def _draw(self) -> None:
        if not self._is_terminal:
            return
        parts = [", ".join(self._running)] if self._running else []
        parts = [self._state, *parts] if self._known else parts
        line = _cut(f"… {'; '.join(parts)}") if parts else "…"
        if line != self._shown:
            self._write(f"{ERASE_LINE}{line}")
            self._shown = line


def _count_requirements(label: str) -> int:
    """Return how many requirements a part judges, such as `REQ-003 - REQ-010`; 0: it is no such."""
    found = _JUDGED.fullmatch(label)
    if found is None:
        return 0
    first, last = int(found[1]), int(found[2] or found[1])
    return max(0, last - first + 1)


def _cut(line: str) -> str:
    while columns(line) >= WIDTH:
        line = f"{line[:-2]}…"
    return line
