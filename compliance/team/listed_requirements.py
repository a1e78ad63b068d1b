"""Turns a checklist that a model or the rules wrote into requirements with places in their units.

A requirement belongs to a unit that was read; its words are looked for there. What names no unit,
or stands twice, is left out and counted in a note.
"""

from collections.abc import Sequence

from compliance.requirements.requirement import Requirement, RuleUnit, TextPlace, UnitAccount
from compliance.team.stored_results import ExtractedPart
from compliance.wording.cues import RuleKind, list_languages
from llm.tasks.specialists.requirement_extractor import ListedRequirement

_FALLBACK_NOTE = (
    "the words for duties in {language!r} are not known: {count} units in it were read with the "
    "English ones, so requirements can be missing"
)


def read_listed(
    listed: Sequence[ListedRequirement], units: Sequence[RuleUnit], *, by_rules: bool = False
) -> ExtractedPart:
    """Return the requirements in the order of their units, and the account of every unit.

    `by_rules`: the list was made by cues, which some languages do not have; a note says so.
    """
    by_name = {unit.unit_id: unit for unit in units}
    known: list[Requirement] = []
    taken: set[tuple[str, int, int, str]] = set()
    dropped = 0
    for unit in units:
        for one in listed:
            if one.source_section != unit.unit_id:
                continue
            place = _find_place(one.requirement, unit)
            key = (unit.unit_id, place.start, place.end, one.requirement)
            if key in taken:
                dropped += 1
                continue
            taken.add(key)
            known.append(_make_requirement(one, place, f"REQ-{len(known) + 1:03d}"))
    foreign = sum(one.source_section not in by_name for one in listed)
    notes = [f"{foreign} entries of the checklist named no unit that was read"] if foreign else []
    notes += [f"{dropped} entries of the checklist were doubled"] if dropped else []
    if by_rules:
        notes += _describe_languages(units)
    return ExtractedPart(
        requirements=tuple(known),
        units=tuple(_account(unit, known, by_rules=by_rules) for unit in units),
        notes=tuple(notes),
    )


def _make_requirement(one: ListedRequirement, place: TextPlace, name: str) -> Requirement:
    return Requirement(
        id=name,
        kind=RuleKind(one.kind),
        text=one.requirement,
        place=place,
        lead=one.lead,
        addressee=one.addressee,
        condition=one.applicability,
        severity=one.severity,
        granularity="item" if one.lead else "sentence",
    )


def _find_place(text: str, unit: RuleUnit) -> TextPlace:
    """Return the place of a text in a unit; the whole unit if it is not there word for word."""
    start = unit.text.find(text)
    span = (start, start + len(text)) if start >= 0 else (0, len(unit.text))
    return TextPlace(
        document_id=unit.document_id,
        unit_id=unit.unit_id,
        heading_path=unit.heading_path,
        start=span[0],
        end=span[1],
    )


def _account(unit: RuleUnit, known: Sequence[Requirement], *, by_rules: bool) -> UnitAccount:
    own = tuple(one.id for one in known if one.place.unit_id == unit.unit_id)
    if own:
        return UnitAccount(unit_id=unit.unit_id, requirement_ids=own)
    if not unit.text.strip():
        return UnitAccount(unit_id=unit.unit_id, reason="no text")
    is_foreign = by_rules and unit.language not in list_languages()
    reason = "no cues for the language" if is_foreign else "no obligation"
    return UnitAccount.model_validate({"unit_id": unit.unit_id, "reason": reason})


def _describe_languages(units: Sequence[RuleUnit]) -> list[str]:
    languages = [one.language for one in units if one.language not in list_languages()]
    return [
        _FALLBACK_NOTE.format(language=one, count=languages.count(one))
        for one in dict.fromkeys(languages)
    ]
