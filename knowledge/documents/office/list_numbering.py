"""Computes the labels of numbered paragraphs, such as `4.2` or `(a)`, and reads Word's lists."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from knowledge.documents.notation import write_number
from knowledge.documents.office.zipped_xml import (
    find_child,
    find_children,
    get_attribute,
    get_value,
    is_on,
    to_number,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_PLACEHOLDER = re.compile(r"%([1-9])")
LEVELS = 9
"""Maximum number of levels of a list."""


@dataclass(frozen=True, slots=True)
class Level:
    """The numbering of one list level; `text` contains `%1` for the number of the first level.

    `restart`: paragraphs of the levels before this one restart its numbers. `is_legal`: numbers of
    all levels are written as digits. `paragraph_style` is the style that uses this level.
    """

    style: str
    text: str
    start: int = 1
    restart: int = LEVELS
    is_legal: bool = False
    paragraph_style: str = ""


class Numbering:
    """The lists of a document, and the number that each has reached."""

    def __init__(self, root: "Element | None") -> None:
        abstract = {
            get_attribute(element, "abstractNumId") or "": element
            for element in find_children(root, "abstractNum")
        }
        defined = {
            link: name
            for name, element in abstract.items()
            if (link := get_value(element, "styleLink")) is not None
        }
        self._lists: dict[str, tuple[str, Mapping[int, Level]]] = {}
        self._restarts: set[tuple[str, int]] = set()
        for element in find_children(root, "num"):
            name = get_value(element, "abstractNumId") or ""
            # A list may only name the style that defines it.
            name = defined.get(get_value(abstract.get(name), "numStyleLink") or "", name)
            levels = _read_levels(abstract[name]) if name in abstract else {}
            list_id = get_attribute(element, "numId") or ""
            self._lists[list_id] = (name, _override(element, levels))
            self._restarts |= {
                (list_id, to_number(get_attribute(override, "ilvl")))
                for override in find_children(element, "lvlOverride")
                if find_child(override, "startOverride") is not None
            }
        self._counts: dict[str, list[int | None]] = {}

    def find_level(self, list_id: str, paragraph_style: str) -> int | None:
        """Return the level of a list that belongs to a paragraph style, or None."""
        _, levels = self._lists.get(list_id, ("", {}))
        matching = (at for at, level in levels.items() if level.paragraph_style == paragraph_style)
        return next(matching, None) if paragraph_style else None

    def count(self, list_id: str, level: int) -> str | None:
        """Return the label of the next paragraph: `4.2`, `(a)`, `-` for a bullet, or None."""
        name, levels = self._lists.get(list_id, ("", {}))
        if level not in levels or level >= LEVELS:
            return None
        counts = self._counts.setdefault(name, [None] * LEVELS)
        if (list_id, level) in self._restarts:
            self._restarts.discard((list_id, level))
            counts[level] = None
        return count_item(levels, counts, level) or None


def count_item(
    levels: Mapping[int, Level], counts: list[int | None], level: int, start: int | None = None
) -> str:
    """Count an item at a 0-based level and return its label, `-` for a bullet.

    `counts` are the numbers that the levels have reached; `start` is a number that the item states.
    """
    definition = levels.get(level, Level("bullet", ""))
    for at, other in levels.items():
        if at < level and counts[at] is None:
            counts[at] = other.start
        elif level < min(at, other.restart) and at < LEVELS:
            counts[at] = None
    before = counts[level]
    following = definition.start if before is None else before + 1
    counts[level] = following if start is None else start

    def number(placeholder: re.Match[str]) -> str:
        shown = int(placeholder[1]) - 1
        if shown not in levels or levels[shown].style == "bullet":
            return ""
        style = "decimal" if definition.is_legal else levels[shown].style
        return write_number(counts[shown] or 0, style)

    is_bullet = definition.style == "bullet"
    return "-" if is_bullet else _PLACEHOLDER.sub(number, definition.text).strip()


def _read_levels(parent: "Element") -> dict[int, Level]:
    return {
        to_number(get_attribute(level, "ilvl")): Level(
            style=get_value(level, "numFmt") or "decimal",
            text=get_value(level, "lvlText") or "",
            start=to_number(get_value(level, "start")),
            restart=to_number(get_value(level, "lvlRestart"), LEVELS),
            is_legal=is_on(level, "isLgl"),
            paragraph_style=get_value(level, "pStyle") or "",
        )
        for level in find_children(parent, "lvl")
        if find_child(level, "lvlText") is not None
    }


def _override(number: "Element", levels: Mapping[int, Level]) -> dict[int, Level]:
    """Return the levels of a list with its overrides."""
    changed = dict(levels)
    for override in find_children(number, "lvlOverride"):
        changed |= _read_levels(override)
        at = to_number(get_attribute(override, "ilvl"))
        start = get_value(override, "startOverride")
        if start is not None and at in changed:
            changed[at] = replace(changed[at], start=to_number(start))
    return changed
