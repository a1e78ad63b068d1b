"""Turns a checklist that a model wrote into requirements with places in their units.

Code proves what can be proved: the unit exists, the quotation stands in it, every unit is accounted
for. What the law demands is the model's word. Without a model each unit is listed as it stands.
"""

from collections.abc import Iterable, Sequence

from agents.review.requirements.requirement import (
    Extraction,
    Requirement,
    RuleKind,
    RuleUnit,
    TextPlace,
    UnitAccount,
)
from agents.review.stored_results import ExtractedPart
from agents.review.verdicts.passages import find_words
from llm.tasks.specialists.requirement_extractor import ListedRequirement, Output

_LONGEST_REASON = 300
_NO_TEXT = "no text"
UNREAD = "the model did not say what it demands"
"""The reason of a unit that a model has neither listed nor set aside."""


def list_units_as_requirements(units: Iterable[RuleUnit]) -> Extraction:
    """Return every unit with text in its order, as it stands: without a model nobody divides it."""
    own = [one for one in units if one.text.strip()]
    return Extraction(
        requirements=tuple(
            Requirement(
                id=f"REQ-{number:03d}",
                kind=RuleKind.UNIT,
                statement=" ".join(unit.text.split()),
                quotation=unit.text,
                place=_make_place(unit, 0, len(unit.text)),
                severity="unjudged",
                granularity="unit",
            )
            for number, unit in enumerate(own, start=1)
        ),
        units=tuple(
            UnitAccount(unit_id=unit.unit_id, requirement_ids=(f"REQ-{number:03d}",))
            for number, unit in enumerate(own, start=1)
        ),
    )


def list_unaccounted(outputs: Iterable[Output], units: Sequence[RuleUnit]) -> list[RuleUnit]:
    """Return the units with text that no output names."""
    named = set()
    for output in outputs:
        named |= {one.source_section for one in output.checklist}
        named |= {one.source_section for one in output.without}
    return [one for one in units if one.text.strip() and one.unit_id not in named]


def read_listed(outputs: Sequence[Output], units: Sequence[RuleUnit]) -> ExtractedPart:
    """Return the requirements in the order of their units, and the account of every unit.

    An entry that names no unit, or stands twice, is left out, and a note says so.
    """
    listed = [one for output in outputs for one in output.checklist]
    reasons = {one.source_section: one.reason for out in outputs for one in out.without}
    names = {unit.unit_id for unit in units}
    known: list[Requirement] = []
    taken: set[tuple[str, str]] = set()
    unproved = 0
    for unit in units:
        for one in listed:
            key = (unit.unit_id, one.requirement)
            if one.source_section != unit.unit_id or key in taken:
                continue
            taken.add(key)
            span = find_words(unit.text, one.quotation)
            unproved += span is None
            known.append(_make_requirement(one, unit, span, f"REQ-{len(known) + 1:03d}"))
    foreign = sum(one.source_section not in names for one in listed)
    notes = [f"{foreign} entries of the checklist named no unit that was read"] if foreign else []
    if unproved:
        notes.append(
            f"{unproved} quotations of the checklist do not stand in the law as they were given: "
            "the whole unit is shown in their place"
        )
    return ExtractedPart(
        requirements=tuple(known),
        units=tuple(_account(unit, known, reasons) for unit in units),
        notes=tuple(notes),
    )


def _make_requirement(
    one: ListedRequirement, unit: RuleUnit, span: tuple[int, int] | None, name: str
) -> Requirement:
    start, end = (0, len(unit.text)) if span is None else span
    return Requirement(
        id=name,
        kind=RuleKind(one.kind),
        statement=" ".join(one.requirement.split()),
        quotation=unit.text[start:end],
        place=_make_place(unit, start, end),
        addressee=one.addressee,
        condition=one.applicability,
        severity=one.severity,
        granularity=one.granularity,
        wordings=tuple(filter(None, (one.fulfilled_by.strip(), one.broken_by.strip()))),
    )


def _make_place(unit: RuleUnit, start: int, end: int) -> TextPlace:
    return TextPlace(
        document_id=unit.document_id,
        unit_id=unit.unit_id,
        heading_path=unit.heading_path,
        start=start,
        end=end,
    )


def _account(unit: RuleUnit, known: Sequence[Requirement], reasons: dict[str, str]) -> UnitAccount:
    own = tuple(one.id for one in known if one.place.unit_id == unit.unit_id)
    reason = "" if own else reasons.get(unit.unit_id, UNREAD)
    if not unit.text.strip():
        reason = _NO_TEXT
    return UnitAccount(unit_id=unit.unit_id, requirement_ids=own, reason=reason[:_LONGEST_REASON])
