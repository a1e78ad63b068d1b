"""Recordings of the plain way: what a played model wrote for each stage of a conversation.

An output is bound to its conversation, its turn and its stage, not to the bytes of its prompt.
"""

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from tests.support.app_harness import EXAMPLES, ROOT

FOLDER = Path(__file__).parent / "plain"
PROMPTS = ROOT / "config" / "prompts"
DOCUMENTS = (EXAMPLES / "sms_platform", EXAMPLES / "freight_act", Path(__file__).parent / "pages")
DOMAIN = {
    "domain_name": "Help of Ferrywire and the Freight Act",
    "domain_scope": "the SMS platform Ferrywire, and the Freight Act of the Canton of Sellen",
}
STAGES = ("understand", "respond", "judge", "clarify", "translate", "essence", "scope")


class Call(BaseModel):
    """What a stage wrote: an object that travels as JSON, or a text as it stands."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    output: JsonValue

    @property
    def text(self) -> str:
        if isinstance(self.output, str):
            return self.output
        return json.dumps(self.output, ensure_ascii=False)


class Expected(BaseModel):
    """What the person must see and must not see, and how the turn ends."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    outcome: Literal["answered", "clarification", "refused"]
    shown: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    options: int | None = None
    cited: tuple[str, ...] = ()
    """A part of the place of each document that must be among the citations."""


class Turn(BaseModel):
    """What a person says, what the stages wrote for it, and what is expected."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    says: str
    calls: tuple[Call, ...] = ()
    expected: Expected | None = None


class Conversation(BaseModel):
    """The turns of one conversation, and who was played."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    about: str
    played_as: Literal["strong", "mid-size"] = "strong"
    separate_calls: bool = False
    """Whether translation, essence and scope are asked alone."""
    turns: tuple[Turn, ...]

    @property
    def settings(self) -> dict[str, object]:
        return {**DOMAIN, "combine_calls": not self.separate_calls}


def load_conversations() -> list[Conversation]:
    """Return all recordings, in the order of their ids."""
    return [
        Conversation.model_validate_json(path.read_text("utf-8"))
        for path in sorted(FOLDER.glob("*.json"))
    ]
