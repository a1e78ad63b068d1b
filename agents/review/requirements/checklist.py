"""Reads and writes checklists: the JSON form of requirements, as people and models write it.

`{"target_law": "...", "checklist": [{"id": "REQ-001", "requirement": "...",
"source_section": "...", "severity": "mandatory", "applicability": "..."}]}`
"""

import json
from collections.abc import Sequence

from pydantic import BaseModel, Field, ValidationError

from agents.review.errors import ChecklistError
from agents.review.requirements.requirement import Requirement, Severity

LARGEST = 20_000_000
"""Characters of a checklist."""


class ChecklistItem(BaseModel, frozen=True):
    """One requirement of a checklist."""

    id: str = Field(min_length=1, max_length=200)
    requirement: str = Field(min_length=1, max_length=20_000)
    source_section: str = Field(default="", max_length=2_000)
    severity: Severity = "mandatory"
    applicability: str = Field(default="", max_length=5_000)


class Checklist(BaseModel, frozen=True):
    """The requirements of one law; ids are unique."""

    target_law: str = Field(min_length=1, max_length=2_000)
    checklist: tuple[ChecklistItem, ...]


def parse_checklist(text: str) -> Checklist:
    """Return the checklist of a JSON text; raises `ChecklistError`."""
    if len(text) > LARGEST:
        raise ChecklistError(f"expected at most {LARGEST:,} characters, found {len(text):,}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ChecklistError(
            f"expected a checklist as JSON, found {text[:40]!r}: {error}"
        ) from None
    if not isinstance(value, dict):
        raise ChecklistError(f"expected an object with a checklist, found {type(value).__name__}")
    try:
        found = Checklist.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the checklist"
        raise ChecklistError(f"expected {where} of a checklist: {first['msg']}") from None
    _check_ids([item.id for item in found.checklist])
    return found


def make_checklist(requirements: Sequence[Requirement], target_law: str) -> Checklist:
    """Return requirements as a checklist; definitions are no obligations, and are left out."""
    return Checklist(
        target_law=target_law,
        checklist=tuple(
            ChecklistItem(
                id=one.id,
                requirement=one.statement,
                source_section=" > ".join(one.place.heading_path or (one.place.unit_id,)),
                severity=one.severity,
                applicability="; ".join(filter(None, (one.addressee, one.condition))),
            )
            for one in requirements
            if one.kind != "definition"
        ),
    )


def _check_ids(names: Sequence[str]) -> None:
    if not names:
        raise ChecklistError("expected requirements in the checklist, found none")
    twice = sorted({name for name in names if names.count(name) > 1}) if len(names) < 5_000 else []
    if twice or len(set(names)) != len(names):
        raise ChecklistError(f"expected different ids, found some twice: {', '.join(twice[:5])}")
