"""The units of a law, their requirements, and the checklist of these requirements."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

Severity = Literal["mandatory", "recommended", "optional", "unjudged"]


class ReviewError(Exception):
    """The root of the review errors; the message is human-readable."""


class ReportFormatError(ReviewError):
    """Raised for an invalid stored report; the message states what was expected."""


class RuleKind(StrEnum):
    """The type of a rule; `UNIT` is a whole unit of a law that no model has read."""

    DUTY = "duty"
    BAN = "ban"
    PERMISSION = "permission"
    DEFINITION = "definition"
    UNIT = "unit"


@dataclass(frozen=True, slots=True)
class RuleUnit:
    """A unit of a document, such as an article or a clause.

    `unit_id` is unique within the document; `language` is an ISO 639-1 code.
    """

    document_id: str
    unit_id: str
    text: str
    heading_path: tuple[str, ...] = ()
    language: str = "en"


class TextPlace(BaseModel, frozen=True):
    """The location of a text: the characters of a unit from `start` up to, but excluding, `end`."""

    document_id: str
    unit_id: str
    heading_path: tuple[str, ...] = ()
    start: int = Field(ge=0)
    end: int = Field(ge=0)

    def name(self, title: str) -> str:
        """Return the headings that name the location, or the title of the document without any."""
        return name_headings([part for part in self.heading_path if part != title]) or title


class Requirement(BaseModel, frozen=True):
    """One verifiable rule.

    `quotation` is the unchanged text at `place`; `statement` is the rule in one sentence in the
    reader's language, or the text of a whole unit if no model has read it. `wordings` contains two
    sentences written by a model in the style of a document: one that fulfils the rule and one that
    violates it.
    """

    id: str
    kind: RuleKind
    statement: str
    quotation: str
    place: TextPlace
    addressee: str = ""
    condition: str = ""
    severity: Severity = "mandatory"
    granularity: Literal["sentence", "item", "unit"] = "sentence"
    wordings: tuple[str, ...] = ()

    @property
    def is_definition(self) -> bool:
        """Whether it defines a term, so that a document can neither fulfil nor violate it."""
        return self.kind is RuleKind.DEFINITION


class UnitAccount(BaseModel, frozen=True):
    """The result for one unit: its requirements, or the reason why it has none."""

    unit_id: str
    requirement_ids: tuple[str, ...] = ()
    reason: str = ""


class Extraction(BaseModel, frozen=True):
    """The requirements of a rule; `units` contains every unit that was read exactly once, in
    order.
    """

    requirements: tuple[Requirement, ...]
    units: tuple[UnitAccount, ...]
    notes: tuple[str, ...] = ()

    @property
    def rules(self) -> tuple[Requirement, ...]:
        """The requirements that a document can fulfil: all except definitions."""
        return tuple(
            requirement for requirement in self.requirements if not requirement.is_definition
        )


class ChecklistItem(BaseModel, frozen=True):
    """One requirement of a checklist."""

    id: str = Field(min_length=1, max_length=200)
    requirement: str = Field(min_length=1, max_length=20_000)
    source_section: str = Field(default="", max_length=2_000)
    severity: Severity = "mandatory"
    applicability: str = Field(default="", max_length=5_000)


class Checklist(BaseModel, frozen=True):
    """The requirements of one law."""

    target_law: str = Field(min_length=1, max_length=2_000)
    checklist: tuple[ChecklistItem, ...]


@cache
def load_tables(name: str) -> Mapping[str, Mapping[str, str]]:
    """Return the tables of a TOML file beside this module."""
    tables: dict[str, dict[str, str]] = tomllib.loads(
        Path(__file__).with_name(name).read_text("utf-8")
    )
    return tables


def name_headings(path: Sequence[str]) -> str:
    """Return the last numbered heading, which is that of an article, and the headings below it.

    If no heading has a number, returns the last heading; if there are no headings, an empty string.
    """
    numbered = [at for at, part in enumerate(path) if any(sign.isdigit() for sign in part)]
    return " > ".join(path[numbered[-1] if numbered else -1 :])


def make_checklist(requirements: Sequence[Requirement], target_law: str) -> Checklist:
    """Return requirements as a checklist. Definitions are omitted, because they are not
    obligations.
    """
    return Checklist(
        target_law=target_law,
        checklist=tuple(
            ChecklistItem(
                id=requirement.id,
                requirement=requirement.statement,
                source_section=" > ".join(
                    requirement.place.heading_path or (requirement.place.unit_id,)
                ),
                severity=requirement.severity,
                applicability="; ".join(
                    filter(None, (requirement.addressee, requirement.condition))
                ),
            )
            for requirement in requirements
            if requirement.kind != "definition"
        ),
    )
