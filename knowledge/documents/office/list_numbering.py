"""Computes the labels of numbered paragraphs, such as `4.2` or `(a)`, and reads Word's lists."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from knowledge.documents.notation import write_number
from knowledge.documents.office.zipped_xml import (
    find_child,
    find_children,
    get_value,
    is_on,
    to_number,
)
from knowledge.documents.page import LeftOutCounts
from knowledge.documents.symbols import write_bullet

_PLACEHOLDER = re.compile(r"%([1-9])")
_DECIMAL = frozenset({"decimal", "decimalZero"})
_UNKNOWN = "written in digits, because the numbering format is not supported"
_CHINESE = frozenset(
    {"chineseCounting", "chineseCountingThousand", "japaneseCounting", "taiwaneseCounting"}
    | {"taiwaneseCountingThousand", "\u4e00, \u4e8c, \u4e09, ..."}
)
"""The styles of Word and LibreOffice that write the numbers up to 99 alike."""
_IDEOGRAPHS = ("", *"\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d")
_LETTERS = {
    "ganada": "가나다라마바사아자차카타파하",
    "chosung": "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ",
    "aiueoFullWidth": "アイウエオカキクケコサシスセソタチツテトナニヌネノ",
    "irohaFullWidth": "イロハニホヘトチリヌルヲワカヨタレソツネナラム",
    "ideographTraditional": "甲乙丙丁戊己庚辛壬癸",
    "ideographZodiac": "子丑寅卯辰巳午未申酉戌亥",
    "arabicAlpha": "أبتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "arabicAbjad": "أبجدهوزحطيكلمنسعفصقرشتثخذضظغ",
    "hebrew2": "אבגדהוזחטיכלמנסעפצקרשת",
}
_LETTERS |= {f"{', '.join(letters[:3])}, ...": letters for letters in _LETTERS.values()}
"""The letters of the styles of Word and, by the first three, of LibreOffice."""
_HEBREW = frozenset({"hebrew1", "א, י, ק, ..."})
_HEBREW_ONES: Sequence[str] = ("", *"אבגדהוזחט")
_HEBREW_TENS: Sequence[str] = ("", *"יכלמנסעפצ")
_CHICAGO = "*\u2020\u2021\u00a7"
_MOST_MARKS = 40
_MOST_DIGITS = 10
LEVELS = 9
"""Maximum number of levels of a list."""


@dataclass(frozen=True, slots=True)
class Level:
    """The numbering of one list level; `text` contains `%1` for the number of the first level, or
    is the label of a bullet.

    `restart`: paragraphs of the levels before this one restart its numbers. `is_legal`: numbers of
    all levels are written as digits, with the zero of `01` if their style has one.
    `paragraph_style` is the style that uses this level.
    """

    style: str
    text: str
    start: int = 1
    restart: int = LEVELS
    is_legal: bool = False
    paragraph_style: str = ""


class Numbering:
    """The lists of a document, and the number that each has reached."""

    def __init__(self, root: Element | None, left_out: LeftOutCounts) -> None:
        abstract = {
            element.get("abstractNumId", ""): element
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
            list_id = element.get("numId", "")
            self._lists[list_id] = (name, _override(element, levels))
            self._restarts |= {
                (list_id, to_number(override.get("ilvl")))
                for override in element.findall("lvlOverride")
                if override.find("startOverride") is not None
            }
        self._counts: dict[str, list[int | None]] = {}
        self._left_out = left_out

    def find_level(self, list_id: str, paragraph_style: str) -> int | None:
        """Return the level of a list that belongs to a paragraph style, or None."""
        _, levels = self._lists.get(list_id, ("", {}))
        matching = (at for at, level in levels.items() if level.paragraph_style == paragraph_style)
        return next(matching, None) if paragraph_style else None

    def count(self, list_id: str, level: int) -> str | None:
        """Return the label of the next paragraph: `4.2`, `(a)`, that of a bullet, or None."""
        name, levels = self._lists.get(list_id, ("", {}))
        if level not in levels or level >= LEVELS:
            return None
        counts = self._counts.setdefault(name, [None] * LEVELS)
        if (list_id, level) in self._restarts:
            self._restarts.discard((list_id, level))
            counts[level] = None
        return count_item(levels, counts, level, self._left_out) or None


def count_item(
    levels: Mapping[int, Level],
    counts: list[int | None],
    level: int,
    left_out: LeftOutCounts,
    start: int | None = None,
) -> str:
    """Count an item at a 0-based level and return its label, `-` for a bullet.

    `counts` are the numbers that the levels have reached; `start` is a number that the item states.
    """
    definition = levels.get(level, Level("bullet", "-"))
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
        style = levels[shown].style
        if definition.is_legal and style not in _DECIMAL:
            style = "decimal"
        written = write_list_number(counts[shown] or 0, style)
        if written == str(counts[shown]) and style not in _DECIMAL and not style.isdecimal():
            left_out.add("list number", _UNKNOWN, name=style)
        return written

    is_bullet = definition.style == "bullet"
    return definition.text if is_bullet else _PLACEHOLDER.sub(number, definition.text).strip()


def write_list_number(number: int, style: str) -> str:
    """Return a number in a numbering style of Word (ECMA-376 part 1, 17.18.59).

    A style of digits such as `001` states their least number. Numbers for which the style is not
    supported are written as digits.
    """
    if style in _CHINESE and 0 < number < 100:
        tens, ones = divmod(number, 10)
        shown_tens = f"{_IDEOGRAPHS[tens] if tens > 1 else ''}\u5341" if tens else ""
        return f"{shown_tens}{_IDEOGRAPHS[ones]}"
    letters = _LETTERS.get(style, "")
    if 0 < number <= len(letters):
        return letters[number - 1]
    if style in _HEBREW and 0 < number < 100:
        # 15 and 16 avoid the letters of a holy name.
        tens, ones = (0, number) if number in (15, 16) else divmod(number, 10)
        return "ט" + _HEBREW_ONES[ones - 9] if ones > 9 else _HEBREW_TENS[tens] + _HEBREW_ONES[ones]
    if style.startswith(("decimalEnclosedCircle", "\u2460,")) and 0 < number <= 20:
        return chr(ord("\u2460") + number - 1)
    if style == "chicago" and 0 < number <= _MOST_MARKS:
        return _CHICAGO[(number - 1) % len(_CHICAGO)] * ((number - 1) // len(_CHICAGO) + 1)
    return f"{number:0{len(style)}d}" if style.isdecimal() else write_number(number, style)


def _read_style(level: Element) -> str:
    """Return the numbering style of a level, or the first number of a custom one (`001`)."""
    custom = find_child(level, "AlternateContent", "Choice", "numFmt")
    if custom is None:
        return get_value(level, "numFmt") or "decimal"
    first = (custom.get("format", "")).partition(",")[0].strip()
    return first if first.isdecimal() and len(first) <= _MOST_DIGITS else "custom"


def _read_levels(parent: Element) -> dict[int, Level]:
    return {
        to_number(level.get("ilvl")): Level(
            style=_read_style(level),
            text=_read_text(level),
            start=to_number(get_value(level, "start")),
            restart=to_number(get_value(level, "lvlRestart"), LEVELS),
            is_legal=is_on(level, "isLgl"),
            paragraph_style=get_value(level, "pStyle") or "",
        )
        for level in parent.findall("lvl")
        if level.find("lvlText") is not None
    }


def _read_text(level: Element) -> str:
    """Return the text of a label with its placeholders, or the label of a bullet."""
    if is_on(level.find("rPr"), "vanish"):
        return ""
    text = get_value(level, "lvlText") or ""
    typeface = find_child(level, "rPr", "rFonts")
    names = "" if typeface is None else typeface.get("ascii", "")
    return write_bullet(text, names) if _read_style(level) == "bullet" else text


def _override(number: Element, levels: Mapping[int, Level]) -> dict[int, Level]:
    """Return the levels of a list with its overrides."""
    changed = dict(levels)
    for override in number.findall("lvlOverride"):
        changed |= _read_levels(override)
        at = to_number(override.get("ilvl"))
        start = get_value(override, "startOverride")
        if start is not None and at in changed:
            changed[at] = replace(changed[at], start=to_number(start))
    return changed
