"""The values of requirements: units of a rule, and what they demand."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, Field

from compliance.wording.cues import RuleKind

Severity = Literal["mandatory", "recommended", "optional"]


@dataclass(frozen=True, slots=True)
class RuleUnit:
    """A unit of a rule, such as an article or a chunk of an index.

    `unit_id` is unique within the document; `language` is an ISO 639-1 code.
    """

    document_id: str
    unit_id: str
    text: str
    heading_path: tuple[str, ...] = ()
    language: str = "en"


class TextPlace(BaseModel, frozen=True):
    """Where a text stands: the characters from `start` to before `end` of a unit."""

    document_id: str
    unit_id: str
    heading_path: tuple[str, ...] = ()
    start: int = Field(ge=0)
    end: int = Field(ge=0)


class Requirement(BaseModel, frozen=True):
    """One verifiable rule.

    `text` is the unchanged text at `place`; `lead` is the sentence that introduces it when it
    is an item of a list. `condition` is empty for a rule that always applies.
    """

    id: str
    kind: RuleKind
    text: str
    place: TextPlace
    lead: str = ""
    addressee: str = ""
    condition: str = ""
    severity: Severity = "mandatory"
    granularity: Literal["sentence", "item"] = "sentence"

    @property
    def statement(self) -> str:
        """The whole rule: the introduction and the item."""
        return f"{self.lead} {self.text}" if self.lead else self.text


class UnitAccount(BaseModel, frozen=True):
    """What became of one unit: its requirements, or the reason why it has none."""

    unit_id: str
    requirement_ids: tuple[str, ...] = ()
    reason: Literal["", "no obligation", "no text", "no cues for the language"] = ""


class Extraction(BaseModel, frozen=True):
    """The requirements of a rule; `units` has every unit once, in order."""

    requirements: tuple[Requirement, ...]
    units: tuple[UnitAccount, ...]
    notes: tuple[str, ...] = ()
