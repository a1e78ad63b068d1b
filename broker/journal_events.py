"""The schema of journals: the kinds of events, the schema version, and how events share an entry.

| kind                   | written when                                                          |
|------------------------|-----------------------------------------------------------------------|
| accepted               | the question was accepted; contains the journal's `schema_version`    |
| routed                 | the manager decided: `row`, `stage`, `event`, `result`, `target`      |
| agent_run              | an agent ran: `role`, `status` (`completed`, `gave_up`), `writes`     |
| model_call             | an agent called a model: `task`, `model`, tokens, cost, milliseconds  |
| budget_exhausted       | a budget allowed no further call: `budget`, its `limit`, `used`       |
| draft                  | an agent has written a part of the answer: `draft`, `text`, `sources` |
| retried                | a run failed and is scheduled again: `role`, `reason`                 |
| dead_lettered          | an entry became a dead letter: `role`, `reason`, `error`              |
| memory_failed          | Redis rejected a write to the conversation memory                     |
| finished               | the question ended; contains the complete reply                       |

Kinds, keys, and values that programs compare are slugs; `reason` and `error` are human-readable
text. If one settlement writes several events, they share one stream entry.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from pydantic import JsonValue

JOURNAL_SCHEMA_VERSION = 2
"""The version that this release writes. Journals of version 1 are converted to it when they are
read.
"""
SCHEMA_VERSION_FIELD = "schema_version"
JOURNAL_KINDS = frozenset(
    {
        "accepted", "routed", "agent_run", "model_call", "retried", "dead_lettered",
        "memory_failed", "draft", "finished", "budget_exhausted",
    }
)  # fmt: skip

_KINDS_OF_VERSION_1 = {
    "wrote": "agent_run",
    "buried": "dead_lettered",
}
_ROUTED_KEYS_OF_VERSION_1 = {"after": "stage", "did": "event", "read": "result", "to": "target"}
_ROUTED_EVENTS_OF_VERSION_1 = {
    "done": "completed",
    "needs clarification": "needs_clarification",
    "a command": "command",
    "a question": "question",
    "the user leaves": "exit",
    "within scope": "within_scope",
    "not within scope": "out_of_scope",
    "excellent or good": "sufficient_results",
    "poor: several places compete": "ambiguous_results",
    "poor: nothing is there": "insufficient_results",
    "generation error": "generation_error",
    "approve": "approved",
    "approve below the threshold": "approved_below_threshold",
}
_REASONS_OF_VERSION_1 = {"unwritable": "unencodable", "attempts_spent": "attempts_exhausted"}

EventFields = dict[str, JsonValue]


class JournalEvent(Protocol):
    """An event that a settlement writes to the journal of its question."""

    @property
    def kind(self) -> str:
        """The kind of event: one of `JOURNAL_KINDS`."""
        ...

    def encode(self) -> bytes:
        """Return the fields as JSON; raises `ValueError` for values that JSON cannot represent."""
        ...


@dataclass(slots=True)
class EncodedEvent:
    """An event that is encoded when it is created.

    This is cheaper than keeping its fields until it is sent: hundreds of other questions are
    processed in between, which evicts the fields from the processor's caches (`make bench`,
    questions per second).
    """

    kind: str
    json: bytes

    def encode(self) -> bytes:
        """Return the fields as JSON."""
        return self.json


def upgrade_event(kind: str, fields: EventFields) -> tuple[str, EventFields]:
    """Return kind and fields of an event in the current version of the schema.

    The version is determined for each event, because processes of two releases may write one
    journal while workers are updated. Events of newer versions are returned unchanged.
    """
    if kind == "routed":
        return kind, _upgrade_routed(fields) if "did" in fields else fields
    present = _KINDS_OF_VERSION_1.get(kind)
    if present is None:
        return kind, fields
    if kind == "wrote" and fields.get("status") == "wrote":
        return present, {**fields, "status": "completed"}
    if kind == "buried":
        return present, {**fields, "reason": _find(_REASONS_OF_VERSION_1, fields.get("reason"))}
    return present, fields


def read_schema_version(kind: str, fields: Mapping[str, JsonValue]) -> int | None:
    """Return the schema version in the first event of a journal; None in any other event."""
    if kind != "accepted":
        return None
    version = fields.get(SCHEMA_VERSION_FIELD, 1)
    return version if isinstance(version, int) else None


@lru_cache(64)
def note_fields(index: int) -> tuple[str, str]:
    """Return the names of the two entry fields (kind and JSON) that contain the event at this
    index.
    """
    return (f"k{index + 1}", f"j{index + 1}") if index else ("k", "j")


def _upgrade_routed(fields: EventFields) -> EventFields:
    known = {_ROUTED_KEYS_OF_VERSION_1.get(name, name): value for name, value in fields.items()}
    event = _find(_ROUTED_EVENTS_OF_VERSION_1, known["event"])
    return {**known, "event": event, "row": f"{known.get('stage')}.{event}"}


def _find(names: Mapping[str, str], value: JsonValue) -> JsonValue:
    return names.get(value, value) if isinstance(value, str) else value
