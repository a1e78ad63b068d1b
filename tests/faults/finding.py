"""What is known of a run, and what a broken promise is."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from broker.values import JournalEntry
from tests.faults.ledger import Noted

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
