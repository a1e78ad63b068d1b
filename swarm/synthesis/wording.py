"""The fixed texts of a report in the language of its reader."""

from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel

NO_DISSENT, NO_AGREEMENT = "report_no_dissent", "report_no_agreement"
NO_PERSONA = "report_persona"
BY_WORDS, UNCHECKED = "report_by_words", "report_unchecked"
NOTES = frozenset({NO_DISSENT, NO_AGREEMENT, NO_PERSONA, BY_WORDS, UNCHECKED})
"""The fixed texts below an answer: what no source says, and its reader has to know."""


class Say(Protocol):
    """Returns a fixed text in the language of the answer."""

    def __call__(self, key: str, **values: str) -> str: ...


@dataclass(frozen=True, slots=True)
class ReportWording:
    """How a report is worded; `persona` is the voice that the request asks for."""

    say: Say
    persona: str = ""

    def name(self, key: str, name: str, known: frozenset[str]) -> str:
        """Return the translated name of something of ours; other names stay as they are."""
        return self.say(f"{key}_{name}") if name in known else name


class ReportNote(BaseModel, frozen=True, extra="forbid"):
    """One of `NOTES`, with its value."""

    key: str
    value: str = ""
