"""Keeps of an answer what it can show a source for, numbered as the reader meets the sources."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from citations.claims import Unit, UnitKind, citations, only_known, split_units, with_citations

_LEADS = (":", "\uff1a")
LONGEST_HEADING = 100
LONGEST_LEAD = 200
"""In characters; what is longer states something."""


@dataclass(frozen=True, slots=True)
class Cited:
    """An answer in which every claim has a source.

    `order` holds the sources' numbers as they were given, in the order of first use: the text calls
    the first of them `[1]`. `dropped` are the claims that had no source.
    """

    text: str
    order: tuple[int, ...]
    claims: int
    dropped: tuple[str, ...] = ()


def keep_cited(
    answer: str, known: Collection[int], may_lead: Callable[[str], bool] = lambda lead: True
) -> Cited:
    """Return what is left of `answer` when only `known` sources may be cited.

    Of headings and leads stays what `may_lead`: nobody checks them afterwards.
    """
    units = [_clean(unit, known) for unit in split_units(answer)]
    kept = _select_kept([unit for unit in units if not is_lead(unit) or may_lead(unit.text)])
    order = tuple(dict.fromkeys(n for unit in kept for n in _cites(unit)))
    shown = {number: place for place, number in enumerate(order, start=1)}
    claims = [unit for unit in kept if _states(unit)]
    staying = {id(unit) for unit in kept}
    return Cited(
        text=_laid_out(kept, shown),
        order=order,
        claims=len(claims),
        dropped=tuple(unit.text for unit in units if _states(unit) and id(unit) not in staying),
    )


def is_lead(unit: Unit) -> bool:
    """Tell whether a unit only leads over to what follows: a heading, or a sentence with a colon.

    What cites, or is longer than a lead, states something; a sentence also that holds a number or
    code.
    """
    if unit.kind is UnitKind.HEADING:
        return len(unit.text) <= LONGEST_HEADING
    bare = unit.text.rstrip().rstrip("*_")
    plain = not any(sign.isdigit() or sign == "`" for sign in bare) and len(bare) <= LONGEST_LEAD
    return (
        unit.kind is UnitKind.SENTENCE and bare.endswith(_LEADS) and plain and not citations(bare)
    )


def evidence_of(units: list[Unit], place: int) -> tuple[int, ...]:
    """Return what the unit at `place` cites; code and tables also by the line after or before."""
    unit = units[place]
    own = _cites(unit)
    if own or unit.kind not in (UnitKind.CODE, UnitKind.TABLE):
        return own
    if place + 1 < len(units) and units[place + 1].kind is UnitKind.CITATION:
        return citations(units[place + 1].text)
    return _cites(units[place - 1]) if place and unit.kind is UnitKind.CODE else ()


def _clean(unit: Unit, known: Collection[int]) -> Unit:
    if unit.kind is UnitKind.CODE:
        return unit
    text = only_known(unit.text, known)
    if unit.kind is UnitKind.HEADING:
        text = only_known(unit.text, ())
    return Unit(unit.kind, text.rstrip() if text.strip() else "", unit.block)


def _select_kept(units: list[Unit]) -> list[Unit]:
    kept: list[Unit] = []
    leads: list[Unit] = []
    for place, unit in enumerate(units):
        if not unit.text:
            continue
        if is_lead(unit):
            leads = [lead for lead in leads if lead.kind is UnitKind.HEADING is not unit.kind] + [
                unit
            ]
        elif _belongs(units, place, kept):
            kept += [*leads, unit]
            leads = []
    return kept


def _belongs(units: list[Unit], place: int, kept: list[Unit]) -> bool:
    unit = units[place]
    if unit.kind is UnitKind.CITATION:
        return bool(kept) and place > 0 and kept[-1] is units[place - 1]
    if _cites(unit):
        return True
    if not evidence_of(units, place):
        return False
    follows = place + 1 < len(units) and units[place + 1].kind is UnitKind.CITATION
    return follows or (bool(kept) and kept[-1] is units[place - 1])


def _cites(unit: Unit) -> tuple[int, ...]:
    return () if unit.kind is UnitKind.CODE else citations(unit.text)


def _states(unit: Unit) -> bool:
    return bool(unit.text) and unit.kind is not UnitKind.CITATION and not is_lead(unit)


def _laid_out(units: list[Unit], shown: dict[int, int]) -> str:
    parts: list[str] = []
    for place, unit in enumerate(units):
        if place:
            parts.append(_joint(units[place - 1], unit))
        text = unit.text if unit.kind is UnitKind.CODE else with_citations(unit.text, shown.get)
        parts.append(text.strip() if unit.kind is UnitKind.CITATION else text)
    return "".join(parts).strip()


def _joint(before: Unit, unit: Unit) -> str:
    if before.block != unit.block:
        return "\n\n"
    return "\n" if unit.kind is UnitKind.ITEM else " "
