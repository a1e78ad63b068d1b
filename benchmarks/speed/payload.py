"""What the questions carry: 4 kB of text, 60 kB of passages, or a recorded question."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envelope.payload import CATALOGUE
from envelope.role import Role
from manager.flows.search_flow import SEARCH_FLOW

CONVERSATION = Path(__file__).parent / "conversation.json"
"""Written by `python -m benchmarks.speed.recording`."""
Fields = dict[str, Any]

OUTCOME_WRITES: dict[str, Fields] = {
    Role.LANG.value: {"language": "en", "confidence": 1.0},
    Role.TRANSLATION.value: {"text_eng": "How do I configure routing rules?"},
    Role.ESSENCE.value: {"canonical_question": "How do I configure routing rules?"},
    Role.GUARDRAILS.value: {"within_scope": True},
    Role.SEARCH.value: {"search_quality": "good"},
    Role.RESPONSE.value: {"response": "Open Routing and choose New rule [1]."},
    Role.QUALITY.value: {"quality_score": 0.9, "quality_decision": "approve"},
}
"""What lets a question pass a stage whose outcome depends on what is written."""
ROLES = tuple(stage.name for stage in SEARCH_FLOW.main_path[1:])


def _plain_writes(role: str) -> Fields:
    """Return writes for a stage that passes a question once something is written."""
    names = (attribute.name for attribute in CATALOGUE if Role(role) in attribute.written_by)
    return {next(names): "-"}


IDLE_WRITES = {
    role: OUTCOME_WRITES[role] if role in OUTCOME_WRITES else _plain_writes(role) for role in ROLES
}
"""Just what lets a question pass each stage."""
FOUND_WRITES = {
    **IDLE_WRITES,
    Role.SEARCH.value: {**IDLE_WRITES[Role.SEARCH.value], "search_context": "A passage. " * 5_500},
}
"""As `IDLE_WRITES`, with the passages that a search found: later frames have 60 kB."""
HOPS = 2 * len(ROLES) + 1
"""Every role is followed by the manager, which also comes first."""


@dataclass(frozen=True, slots=True)
class Payload:
    """The user's text, the turns before it, and what each role writes."""

    name: str
    text: str
    history: tuple[Fields, ...]
    writes: Mapping[str, Fields]

    def opening(self, name: str) -> Fields:
        """Return the message that the client of a peer submits."""
        return {"name": name, "step": 0, "text": self.text, "history": list(self.history)}

    def size(self) -> int:
        """Return the bytes of the message once every role has written."""
        message = self.opening("name")
        for writes in self.writes.values():
            message |= writes
        return len(json.dumps(message, ensure_ascii=False).encode())


def payloads() -> dict[str, Payload]:
    """Return the payloads by name."""
    recorded = json.loads(CONVERSATION.read_text("utf-8"))
    return {
        "4 kB": Payload("4 kB", "How do I configure routing rules? " + "x" * 4000, (), IDLE_WRITES),
        "60 kB": Payload("60 kB", "How do I configure routing rules?", (), FOUND_WRITES),
        "conversation": Payload(
            "conversation",
            recorded["text"],
            tuple(recorded["history"]),
            {role: recorded["writes"].get(role, IDLE_WRITES[role]) for role in ROLES},
        ),
    }
