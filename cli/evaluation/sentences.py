"""Splits an answer into its statements with their sources.

A sentence is covered by its own citations. If it has none, it is covered by the citations that
follow in its paragraph or list or on the line below. A list, a table, or code is also covered by
the citations in the sentence that introduces it. The rules are implemented separately in this
package, because the measurements must not depend on the code that they measure.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from citations.claims import Unit, UnitKind, citations, split_units
from config.errors import TextsError
from config.texts import FixedTexts, load_texts

_LED = (UnitKind.ITEM, UnitKind.TABLE, UnitKind.CODE)
_BARE_WORDS = 2
_FIXED_KEYS = (
    "assumption", "limit_reached", "nearest_pages", "missing_part", "missing_something",
    "attempts_reached", "fault_reached", "also_asked", "left_out", "not_judged", "not_yet_judged",
    "steps_ended",
)  # fmt: skip
_FIXED_VALUES = ("assumption", "missing", "reason")
_VALUE = "\0"
_LEAST_FIXED = 4


@dataclass(frozen=True, slots=True)
class CoveredSentence:
    """A sentence, list item, table, or piece of code, and the numbers of its sources."""

    text: str
    cites: tuple[int, ...]


def split_covered(answer: str, language: str) -> tuple[CoveredSentence, ...]:
    """Return the sentences of an answer that make a statement.

    Headings, introductions with a colon, a mere yes or no, and the desk's fixed texts do not make a
    statement.
    """
    units = split_units(answer)
    fixed = _find_fixed_openings(language)
    return tuple(
        CoveredSentence(unit.text, _find_cover(units, place))
        for place, unit in enumerate(units)
        if _states(unit) and not unit.text.startswith(fixed)
    )


def _states(unit: Unit) -> bool:
    if unit.kind in (UnitKind.CITATION, UnitKind.HEADING) or _is_lead(unit):
        return False
    return bool(citations(unit.text)) or len(unit.text.split()) >= _BARE_WORDS or _is_wide(unit)


def _is_lead(unit: Unit) -> bool:
    """Return whether a sentence ends with a colon and cites nothing, so that it introduces what
    follows.
    """
    bare = unit.text.rstrip().rstrip("*_")
    return unit.kind is UnitKind.SENTENCE and bare.endswith((":", "\uff1a")) and not citations(bare)


def _is_wide(unit: Unit) -> bool:
    """Return whether a single word may be a sentence: in code, in a table, or in a script without
    spaces.
    """
    return unit.kind in (UnitKind.CODE, UnitKind.TABLE) or not unit.text[:1].isascii()


def _find_cover(units: Sequence[Unit], place: int) -> tuple[int, ...]:
    unit = units[place]
    own = () if unit.kind is UnitKind.CODE else citations(unit.text)
    if own:
        return own
    for later in units[place + 1 :]:
        same_block = later.block == unit.block and later.kind is not UnitKind.CODE
        if later.kind is not UnitKind.CITATION and not same_block:
            break
        if cover := citations(later.text):
            return cover
    return _find_lead_cover(units, place)


def _find_lead_cover(units: Sequence[Unit], place: int) -> tuple[int, ...]:
    """Return the citations in the sentence directly above a list, a table, or code."""
    if units[place].kind not in _LED:
        return ()
    for before in reversed(units[:place]):
        if before.kind is UnitKind.SENTENCE:
            return citations(before.text)
        if before.kind is not units[place].kind:
            break
    return ()


@cache
def _find_fixed_openings(language: str) -> tuple[str, ...]:
    """Return the beginnings of the desk's own sentences about an answer, up to their first
    placeholder.
    """
    texts = load_texts()
    openings = (_find_opening(texts, key, language) for key in _FIXED_KEYS)
    return tuple(opening for opening in openings if len(opening) >= _LEAST_FIXED)


def _find_opening(texts: FixedTexts, key: str, language: str) -> str:
    try:
        text = texts.text(key, language, **dict.fromkeys(_FIXED_VALUES, _VALUE))
    except TextsError:
        return ""  # a desk without this text has no such statement
    return text.partition(_VALUE)[0].strip()
