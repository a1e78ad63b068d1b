"""Extracts the requirements of a rule: what it obliges, forbids, permits and defines.

Every sentence with a cue becomes a requirement, and so does every item of a list that a sentence
with a cue introduces. Every unit is accounted for.
"""

from collections.abc import Iterable, Iterator, Sequence

from compliance.requirements.addressees import find_addressee, find_condition
from compliance.requirements.requirement import (
    Extraction,
    Requirement,
    RuleUnit,
    Severity,
    TextPlace,
    UnitAccount,
)
from compliance.requirements.segments import RuleSegment, split_segments
from compliance.wording.cues import Cue, RuleKind, find_rule_cue, list_languages, split_words

_RECOMMENDING = frozenset({"should", "ought", "soll", "sollen", "sollte", "sollten"})
_FALLBACK_NOTE = (
    "the words for duties in {language!r} are not known: {count} units in it were read with the "
    "English ones, so requirements can be missing"
)


def extract_requirements(units: Iterable[RuleUnit], *, prefix: str = "REQ") -> Extraction:
    """Return the requirements of units in order, numbered `REQ-001`, and an account of each unit.

    Units of a language without cues are read with the English ones, and a note says so.
    """
    requirements: list[Requirement] = []
    accounts: list[UnitAccount] = []
    unknown: dict[str, int] = {}
    for unit in units:
        own = extract_from_unit(unit, first=len(requirements) + 1, prefix=prefix)
        requirements += own
        is_known = unit.language in list_languages()
        if not is_known:
            unknown[unit.language] = unknown.get(unit.language, 0) + 1
        accounts.append(_account(unit, own, is_known))
    notes = tuple(
        _FALLBACK_NOTE.format(language=language, count=count) for language, count in unknown.items()
    )
    return Extraction(requirements=tuple(requirements), units=tuple(accounts), notes=notes)


def extract_from_unit(
    unit: RuleUnit, *, first: int = 1, prefix: str = "REQ"
) -> tuple[Requirement, ...]:
    """Return the requirements of one unit, numbered from `first`."""
    drafts = list(_list_drafts(unit))
    return tuple(
        _make_requirement(unit, segment, lead, cue, f"{prefix}-{number:03d}")
        for number, (segment, lead, cue) in enumerate(drafts, start=first)
    )


def _list_drafts(unit: RuleUnit) -> Iterator[tuple[RuleSegment, RuleSegment | None, Cue]]:
    """Yield each segment that is a rule, its lead, and the cue (of the lead where it has none).

    A lead that introduces items is a rule only through them.
    """
    segments = split_segments(unit.text)
    leads = {segment.lead for segment in segments if segment.lead is not None}
    for segment in segments:
        own = find_rule_cue(split_words(unit.text[segment.start : segment.end]), unit.language)
        lead = None if segment.lead is None else RuleSegment(*segment.lead)
        if lead is not None:
            text = unit.text[lead.start : lead.end]
            inherited = find_rule_cue(split_words(text), unit.language)
            cue = own if inherited is None else inherited
        else:
            cue = own
        is_introduction = (segment.start, segment.end) in leads
        if cue is not None and not is_introduction:
            yield segment, lead, cue


def _make_requirement(
    unit: RuleUnit, segment: RuleSegment, lead: RuleSegment | None, cue: Cue, name: str
) -> Requirement:
    text = unit.text[segment.start : segment.end]
    introduction = "" if lead is None else unit.text[lead.start : lead.end]
    inherits = bool(introduction) and find_rule_cue(split_words(introduction), unit.language) == cue
    ruling = introduction if inherits else text
    return Requirement(
        id=name,
        kind=RuleKind(cue.group),
        text=text,
        place=TextPlace(
            document_id=unit.document_id,
            unit_id=unit.unit_id,
            heading_path=unit.heading_path,
            start=segment.start,
            end=segment.end,
        ),
        lead=introduction,
        addressee=find_addressee(ruling, cue, unit.language),
        condition=find_condition((introduction, text), unit.language),
        severity=_find_severity(ruling, cue),
        granularity="sentence" if lead is None else "item",
    )


def _find_severity(text: str, cue: Cue) -> Severity:
    if cue.group == RuleKind.PERMISSION:
        return "optional"
    words = text[cue.start : cue.end].lower().split()
    return "recommended" if words and words[0] in _RECOMMENDING else "mandatory"


def _account(unit: RuleUnit, own: Sequence[Requirement], is_known: bool) -> UnitAccount:
    if own:
        return UnitAccount(unit_id=unit.unit_id, requirement_ids=tuple(one.id for one in own))
    if not unit.text.strip():
        return UnitAccount(unit_id=unit.unit_id, reason="no text")
    reason = "no obligation" if is_known else "no cues for the language"
    return UnitAccount.model_validate({"unit_id": unit.unit_id, "reason": reason})
