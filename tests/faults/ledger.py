"""The append-only ledger outside Redis: what processes did, also those that were killed since.

A line is written by one `write` on a file opened with O_APPEND, so lines of many processes never
mix, their order is the order of the file, and what was written survives the writer's SIGKILL.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json


@dataclass(frozen=True, slots=True)
class Noted:
    """One line: what (`kind`), by which process, at which Unix time, in seconds."""

    kind: str
    pid: int
    at: float
    fields: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]


class Ledger:
    """A ledger to write to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, kind: str, **fields: object) -> None:
        """Append one line."""
        line = to_json([kind, os.getpid(), time.time(), fields])
        os.write(self._file, line + b"\n")

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def read_notes(path: Path, *, after: int = 0) -> Iterator[Noted]:
    """Yield the lines of the ledger from byte `after` on.

    Whoever reads while a line is written may see its first part alone: that line comes later.
    """
    with path.open("rb") as file:
        file.seek(after)
        for line in file:
            if not line.endswith(b"\n"):
                return
            kind, pid, at, fields = from_json(line)
            yield Noted(kind, pid, at, fields)
