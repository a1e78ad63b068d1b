"""Counts the numbers that Word writes before headings, clauses and items."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from knowledge.documents.office.zipped_xml import (
    find_child,
    find_children,
    get_attribute,
    get_value,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_PLACEHOLDER = re.compile(r"%([1-9])")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
          (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
_LARGEST_ROMAN = 4000
_LEVELS = 9


@dataclass(frozen=True, slots=True)
class Level:
    """How one level of a list is numbered; `text` has `%1` for the number of the first level."""

    style: str
    text: str
    start: int


class Numbering:
    """The lists of a document, and how far each of them has counted."""

    def __init__(self, root: "Element | None") -> None:
        abstract = {
            get_attribute(found, "abstractNumId"): _read_levels(found)
            for found in find_children(root, "abstractNum")
        }
        self._lists: dict[str, tuple[str, Mapping[int, Level]]] = {}
        for found in find_children(root, "num"):
            name = get_value(found, "abstractNumId") or ""
            levels = dict(abstract.get(name, {}))
            own = ""
            for override in find_children(found, "lvlOverride"):
                start = get_value(override, "startOverride")
                level = _to_number(get_attribute(override, "ilvl"))
                if start is not None and level in levels:
                    before = levels[level]
                    levels[level] = Level(before.style, before.text, _to_number(start))
                    own = f"#{get_attribute(found, 'numId')}"
            self._lists[get_attribute(found, "numId") or ""] = (name + own, levels)
        self._counts: dict[str, list[int | None]] = {}

    def count(self, list_id: str, level: int) -> str | None:
        """Return the label of the next paragraph: `4.2`, `(a)`, `-` for a bullet, or None."""
        name, levels = self._lists.get(list_id, ("", {}))
        found = levels.get(level)
        if found is None or not 0 <= level < _LEVELS:
            return None
        if found.style == "bullet":
            return "-"
        counts = self._counts.setdefault(name, [None] * _LEVELS)
        before = counts[level]
        counts[level] = found.start if before is None else before + 1
        counts[level + 1 :] = [None] * (_LEVELS - level - 1)

        def number(placeholder: re.Match[str]) -> str:
            shown = int(placeholder[1]) - 1
            if shown not in levels:
                return ""
            value = counts[shown]
            return _write_number(levels[shown].start if value is None else value, levels[shown])

        return _PLACEHOLDER.sub(number, found.text).strip() or None


def _read_levels(abstract: "Element") -> dict[int, Level]:
    return {
        _to_number(get_attribute(level, "ilvl")): Level(
            style=get_value(level, "numFmt") or "decimal",
            text=get_value(level, "lvlText") or "",
            start=_to_number(get_value(level, "start") or "1"),
        )
        for level in find_children(abstract, "lvl")
        if find_child(level, "lvlText") is not None
    }


def _write_number(number: int, level: Level) -> str:
    if level.style in ("lowerLetter", "upperLetter") and number > 0:
        letter = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 10)
        return letter if level.style == "lowerLetter" else letter.upper()
    if level.style in ("lowerRoman", "upperRoman") and 0 < number < _LARGEST_ROMAN:
        roman = _write_roman(number)
        return roman if level.style == "lowerRoman" else roman.upper()
    if level.style == "none":
        return ""
    return f"{number:02d}" if level.style == "decimalZero" else str(number)


def _write_roman(number: int) -> str:
    written = ""
    for value, sign in _ROMAN:
        written += sign * (number // value)
        number %= value
    return written


def _to_number(text: str | None) -> int:
    return int(text) if text is not None and text.isdecimal() and len(text) < 7 else 0
