"""The append-only ledger outside Redis: what processes did, also those that were killed since.

A line is written by one `write` on a file opened with O_APPEND, so lines of many processes never
mix, their order is the order of the file, and what was written survives the writer's SIGKILL.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic_core import from_json, to_json

from broker.values import JournalEntry


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


Part = Literal["reported", "ends", "steps", "late", "starts", "bills", "memory", "pauses", "left"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken promise: `lost`, `doubled`, `late`, `illegal`, `overspent` or `left over`.

    `part` says where it was seen, `about` is the message, conversation or key.
    """

    kind: str
    part: Part
    about: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.about} {self.sentence}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known when everything has ended.

    `journals` and `results` (how often a reply stands on the result list) go by message name,
    `histories` (speaker and text of each turn) and `statistics` (questions counted) by
    conversation, `leftovers` and `waiting` (how many, and what it is) by key; `faulty` are
    processes that were killed or stopped.
    """

    ledger: Sequence[Noted]
    journals: Mapping[str, Sequence[JournalEntry]]
    results: Mapping[str, int]
    histories: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    statistics: Mapping[str, int] = field(default_factory=dict)
    leftovers: Mapping[str, int] = field(default_factory=dict)
    waiting: Mapping[str, str] = field(default_factory=dict)
    faulty: frozenset[int] = frozenset()

    def lines(self, kind: str) -> Iterator[Noted]:
        """Yield the lines of one kind, in their order."""
        return (line for line in self.ledger if line.kind == kind)

    def forgotten(self) -> set[str]:
        """Return the messages whose words were forgotten: these have an outcome."""
        accepted = list(self.lines("accepted"))
        conversations = {
            line["conversation"] for line in accepted if line["text"].startswith("forget")
        }
        names = {line["name"] for line in accepted if line["conversation"] in conversations}
        names |= {line["name"] for line in self.lines("cancelled_by_client") if line["forget"]}
        return {name for name in names if not self.journals.get(name)}
