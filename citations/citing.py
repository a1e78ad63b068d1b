"""Keeps the parts of an answer that have a source, and numbers the sources in citation order.

A citation covers more than the sentence that contains it:

| position of the citation                               | it covers                           |
|--------------------------------------------------------|-------------------------------------|
| in a later sentence of the same paragraph              | the sentences before it             |
| in a later item of the same list                       | the items before it                 |
| on a line below a paragraph, a list, a table or code   | the whole block                     |
| in a line with a colon above a list or a table         | the list or the table               |
| in the sentence before code                            | the code                            |

No citation covers a sentence that cites only sources that do not exist.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from citations.claims import (
    Unit,
    UnitKind,
    citations,
    marker,
    only_known,
    split_units,
    with_citations,
    without_citations,
)
from citations.yes_no import is_yes_or_no

_LEADS = (":", "\uff1a")
_WRAPPED = (UnitKind.CODE, UnitKind.TABLE)
_COVERED_BY_A_LEAD = (UnitKind.ITEM, UnitKind.TABLE, UnitKind.CODE)
LONGEST_HEADING = 100
LONGEST_LEAD = 200
"""In characters; a longer heading or lead is treated as a statement."""

FindSource = Callable[[str], int | None]
"""Returns the number of the source that supports a sentence, or None."""
Allows = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Cited:
    """An answer in which every claim has a source.

    `order` contains the original numbers of the sources in the order of first use: the text calls
    the first of them `[1]`. `claims` counts the claims that stay, and `dropped` contains those
    without a source.
    """

    text: str
    order: tuple[int, ...]
    claims: int
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _CitedUnits:
    """The units of an answer, and for each its citations and the index of the unit that has the
    mark.
    """

    units: Sequence[Unit]
    cites: Sequence[tuple[int, ...]]
    marks: Sequence[int | None]


def keep_cited(
    answer: str,
    known: Collection[int],
    may_lead: Allows = lambda lead: True,
    find_source: FindSource = lambda claim: None,
    may_frame: Allows = lambda sentence: False,
) -> Cited:
    """Return the part of `answer` that remains when only `known` sources may be cited.

    A heading or a lead stays if `may_lead` allows it. A sentence without a citation gets the source
    that `find_source` returns; a mere yes or no belongs to the sentence after it. The first and the
    last sentence, and a sentence above a list or code, need no source if `may_frame` allows them.
    """
    written = split_units(answer)
    units = [_clean(unit, known) for unit in written]
    strayed = {
        index
        for index, unit in enumerate(units)
        if not _own(unit) and _own(written[index]) and unit.kind is not UnitKind.CITATION
    }
    draft = _find_sources(_make_draft(units, strayed), strayed, find_source)
    allowed = {
        index
        for index, unit in enumerate(units)
        if unit.text and (not is_lead(unit) or may_lead(unit.text))
    }
    frames = {
        index
        for index, unit in enumerate(units)
        if index not in strayed and is_frame(draft.units, draft.cites, index)
        if may_frame(unit.text)
    }
    return _keep(draft, allowed, frames)


def remove_units(answer: str, indexes: Collection[int]) -> Cited:
    """Return `answer` without the units at these indices of `split_units`."""
    units = split_units(answer)
    everywhere = range(len(units))
    return _keep(_make_draft(units, ()), set(everywhere).difference(indexes), everywhere)


def cite_units(units: Sequence[Unit]) -> tuple[tuple[int, ...], ...]:
    """Return the citations of each unit, including those of a citation that covers it."""
    return tuple(_make_draft(units, ()).cites)


def join_units(units: Sequence[Unit]) -> str:
    """Return the Markdown text of units, with the numbers that they cite as they are."""
    joints = ("", *(_joint(before, unit) for before, unit in pairwise(units)))
    return "".join(joint + unit.text for joint, unit in zip(joints, units, strict=True))


def is_frame(units: Sequence[Unit], cites: Sequence[tuple[int, ...]], index: int) -> bool:
    """Return whether an uncited sentence introduces or closes an answer, a list or code."""
    unit = units[index]
    if unit.kind is not UnitKind.SENTENCE or cites[index] or not unit.text:
        return False
    is_plain = len(unit.text) <= LONGEST_LEAD and "`" not in unit.text
    following = units[index + 1].kind if index + 1 < len(units) else None
    introduces = index == 0 or following in _COVERED_BY_A_LEAD
    return is_plain and (introduces or following is None) and not is_lead(unit)


def is_lead(unit: Unit) -> bool:
    """Return whether a unit only introduces the next one: a heading, or a sentence with a colon.

    A unit that cites, or is longer than a lead, is a statement; so is a sentence with a digit or
    code.
    """
    if unit.kind is UnitKind.HEADING:
        return len(unit.text) <= LONGEST_HEADING
    bare = unit.text.rstrip().rstrip("*_")
    plain = not any(sign.isdigit() or sign == "`" for sign in bare) and len(bare) <= LONGEST_LEAD
    return (
        unit.kind is UnitKind.SENTENCE and bare.endswith(_LEADS) and plain and not citations(bare)
    )


def is_bare_yes_or_no(unit: Unit) -> bool:
    """Return whether a unit is an uncited "Yes." or "No.", which the sentence after it explains."""
    return unit.kind is UnitKind.SENTENCE and not _own(unit) and is_yes_or_no(unit.text)


def _make_draft(units: Sequence[Unit], strayed: Collection[int]) -> _CitedUnits:
    marks: list[int | None] = [index if _own(unit) else None for index, unit in enumerate(units)]
    _cover_upwards(units, marks, strayed)
    _cover_downwards(units, marks, strayed)
    cites = [() if mark is None else _own(units[mark]) for mark in marks]
    return _CitedUnits(units, cites, marks)


def _cover_upwards(
    units: Sequence[Unit], marks: list[int | None], strayed: Collection[int]
) -> None:
    """Give sentences and items the citation that follows in their block or on the next line."""
    mark, block = None, -1
    for index in range(len(units) - 1, -1, -1):
        unit = units[index]
        if unit.kind is UnitKind.CITATION:
            mark, block = index, -1
            continue
        block = unit.block if block < 0 else block
        if unit.block != block or unit.kind is UnitKind.HEADING:
            mark, block = None, unit.block
        if marks[index] is not None:
            mark = None if unit.kind in _WRAPPED else index
        elif mark is not None and index not in strayed:
            marks[index] = mark


def _cover_downwards(
    units: Sequence[Unit], marks: list[int | None], strayed: Collection[int]
) -> None:
    """Give a list, a table or code the citation of the sentence that introduces it."""
    lead: int | None = None
    for index, unit in enumerate(units):
        before = units[index - 1] if index else None
        if unit.kind not in _COVERED_BY_A_LEAD:
            lead = None
            continue
        if before is not None and before.kind is UnitKind.SENTENCE and _own(before):
            lead = index - 1 if unit.kind is UnitKind.CODE or _leads_over(before) else None
        elif before is not None and before.block != unit.block:
            lead = None
        if marks[index] is None and lead is not None and index not in strayed:
            marks[index] = lead


def _leads_over(unit: Unit) -> bool:
    return without_citations(unit.text).rstrip().rstrip("*_.").rstrip().endswith(_LEADS)


def _find_sources(
    draft: _CitedUnits, strayed: Collection[int], find_source: FindSource
) -> _CitedUnits:
    cites = list(draft.cites)
    for index, unit in enumerate(draft.units):
        is_statement = unit.kind in (UnitKind.SENTENCE, UnitKind.ITEM) and unit.text
        if cites[index] or not is_statement or index in strayed or is_lead(unit):
            continue
        if not is_bare_yes_or_no(unit) and (number := find_source(unit.text)) is not None:
            cites[index] = (number,)
    return _CitedUnits(draft.units, cites, draft.marks)


def _own(unit: Unit) -> tuple[int, ...]:
    return () if unit.kind is UnitKind.CODE else citations(unit.text)


def _clean(unit: Unit, known: Collection[int]) -> Unit:
    if unit.kind is UnitKind.CODE:
        return unit
    text = only_known(unit.text, known)
    if unit.kind is UnitKind.HEADING:
        text = only_known(unit.text, ())
    return Unit(unit.kind, text.rstrip() if text.strip() else "", unit.block)


def _keep(draft: _CitedUnits, allowed: Collection[int], uncited: Collection[int]) -> Cited:
    """Return the answer of the allowed units that have a citation, or are among the uncited."""
    kept = _select_kept(draft, allowed, uncited)
    order = tuple(dict.fromkeys(number for index in kept for number in draft.cites[index]))
    shown = {number: index for index, number in enumerate(order, start=1)}
    staying = set(kept)
    states = [index for index, unit in enumerate(draft.units) if _states(unit)]
    return Cited(
        text=_lay_out(draft, kept, shown),
        order=order,
        claims=sum(index in staying and bool(draft.cites[index]) for index in states),
        dropped=tuple(draft.units[index].text for index in states if index not in staying),
    )


def _select_kept(
    draft: _CitedUnits, allowed: Collection[int], uncited: Collection[int]
) -> list[int]:
    """Return the indices that stay; a lead stays with the next unit, a citation with its block."""
    kept: list[int] = []
    leads: list[int] = []
    used: set[int | None] = set()
    for index, unit in enumerate(draft.units):
        if index not in allowed or not unit.text:
            continue
        if unit.kind is UnitKind.CITATION:
            kept += [index] if index in used else []
        elif is_lead(unit) or is_bare_yes_or_no(unit):
            leads = [lead for lead in leads if _outlives(draft.units[lead], unit)] + [index]
        elif _belongs(draft, index, kept, uncited):
            kept += [*leads, index]
            used.add(draft.marks[index])
            leads = []
    return kept


def _outlives(lead: Unit, unit: Unit) -> bool:
    return lead.kind is UnitKind.HEADING and unit.kind is not UnitKind.HEADING


def _belongs(draft: _CitedUnits, index: int, kept: Sequence[int], uncited: Collection[int]) -> bool:
    if not draft.cites[index]:
        return index in uncited
    mark = draft.marks[index]
    follows = mark is not None and mark < index
    # Code and lists below a removed sentence would lack their explanation.
    return not follows or mark in kept


def _states(unit: Unit) -> bool:
    return (
        bool(unit.text)
        and unit.kind is not UnitKind.CITATION
        and not is_lead(unit)
        and not is_bare_yes_or_no(unit)
    )


def _lay_out(draft: _CitedUnits, kept: Sequence[int], shown: dict[int, int]) -> str:
    staying = set(kept)
    numbers = _renumber(draft.units, kept)
    parts: list[str] = []
    for position, index in enumerate(kept):
        unit = draft.units[index]
        if position:
            parts.append(_joint(draft.units[kept[position - 1]], unit))
        text = unit.text if unit.kind is UnitKind.CODE else with_citations(unit.text, shown.get)
        text = text.strip() if unit.kind is UnitKind.CITATION else text
        parts.append(
            _under_number(text, numbers.get(index)) + _missing_mark(draft, index, staying, shown)
        )
    return "".join(parts).strip()


def _missing_mark(
    draft: _CitedUnits, index: int, staying: Collection[int], shown: dict[int, int]
) -> str:
    """Return the citation of a unit whose mark was removed, or never written."""
    if not draft.cites[index] or draft.marks[index] in staying:
        return ""
    marks = "".join(f"[{shown[number]}]" for number in draft.cites[index])
    return f"\n\n{marks}" if draft.units[index].kind in _WRAPPED else f" {marks}"


def _renumber(units: Sequence[Unit], kept: Sequence[int]) -> dict[int, int]:
    """Return the new numbers of a numbered list's items, if some of them were removed."""
    staying = set(kept)
    numbers: dict[int, int] = {}
    blocks: dict[int, list[int]] = {}
    for index, unit in enumerate(units):
        if unit.kind is UnitKind.ITEM and _item_number(unit) is not None:
            blocks.setdefault(unit.block, []).append(index)
    for indexes in blocks.values():
        left = [index for index in indexes if index in staying]
        if len(left) < len(indexes):
            first = _item_number(units[indexes[0]]) or 1
            numbers |= {index: number for number, index in enumerate(left, start=first)}
    return numbers


def _item_number(unit: Unit) -> int | None:
    """Return the number of an item that is not indented, or None."""
    sign = marker(unit.text).rstrip()
    return int(sign[:-1]) if sign[:-1].isdecimal() else None


def _under_number(text: str, number: int | None) -> str:
    if number is None:
        return text
    sign = marker(text)
    return sign.replace(sign.rstrip()[:-1], str(number), 1) + text[len(sign) :]


def _joint(before: Unit, unit: Unit) -> str:
    if before.block != unit.block:
        return "\n\n"
    return "\n" if unit.kind is UnitKind.ITEM else " "
