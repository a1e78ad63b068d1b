"""The styles of an OpenDocument file, and the numbers of its list items and headings."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from xml.etree.ElementTree import Element

from knowledge.documents.notation import Script, Span
from knowledge.documents.office.list_numbering import LEVELS, Level, count_item
from knowledge.documents.office.zipped_xml import count, find_child, to_number
from knowledge.documents.page import LeftOutCounts
from knowledge.documents.symbols import write_bullet

_OUTLINE = "#outline"
"""The name of the list of headings, which is numbered throughout the document."""
_DATA_STYLES = frozenset(
    f"{kind}-style"
    for kind in ("number", "currency", "percentage", "date", "time", "boolean", "text")
)
_DEEPEST_STYLE = 12


@dataclass(frozen=True, slots=True)
class ColouredSpan(Span):
    """Text with its typeface, its colour (`#ffffff`) and the colour behind it; empty if unknown."""

    text: str = ""
    colour: str = ""
    background: str = ""
    typeface: str = ""

    def is_invisible(self) -> bool:
        """Return whether text has the colour of its background; spaces still part words."""
        return bool(self.text.strip() and self.colour) and self.colour == self.background


PLAIN = ColouredSpan()


class Styles:
    """The properties of styles by family and name; a style inherits those of its parent.

    `levels` are those of lists by the names of their styles.
    """

    def __init__(self, parts: Iterable[Element]) -> None:
        self._styles: dict[tuple[str, str], Element] = {}
        self.levels: dict[str, dict[int, Level]] = {}
        self._formats: dict[str | None, Element] = {}
        # Each of thousands of cells asks for the same few.
        self.find = cache(self._find)
        self.find_span = cache(self._find_span)
        self._faces: dict[str | None, str] = {}
        for part in parts:
            self._faces |= {
                face.get("name"): face.get("font-family", "").strip("'")
                for face in part.iter("font-face")
            }
            for style in part.iter("style"):
                self._styles[style.get("family", ""), style.get("name", "")] = style
            for styles in part:
                self._formats |= {
                    child.get("name"): child for child in styles if child.tag in _DATA_STYLES
                }
            for style in part.iter("list-style"):
                self.levels[style.get("name", "")] = self._read_levels(style)
            for style in part.iter("outline-style"):
                self.levels[_OUTLINE] = self._read_levels(style)

    def _find(self, family: str, name: str | None, attribute: str) -> str | None:
        """Return an attribute of a style or of its properties, or None if it is not set."""
        stated = (
            value
            for style in self._chain(family, name or "")
            for element in (style, *style)
            if (value := element.get(attribute)) is not None
        )
        return next(stated, None)

    def hides(self, family: str, name: str | None) -> bool:
        """Return whether a style hides text, a table, or a slide."""
        is_hidden = self.find(family, name, "display") in ("none", "false")
        return is_hidden or self.find(family, name, "visibility") == "hidden"

    def hides_value(self, name: str | None) -> bool:
        """Return whether the number format of a cell style shows no value."""
        data_style = self._formats.get(self.find("table-cell", name, "data-style-name"))
        return data_style is not None and all(
            part.tag in ("text", "map", "text-properties") for part in data_style
        )

    def _find_span(self, family: str, name: str | None, outer: ColouredSpan) -> ColouredSpan:
        """Return a span without text in the typeface of a style, inside of another typeface."""
        lines = (self.find(family, name, f"text-line-through-{kind}") for kind in ("style", "type"))
        line = next(filter(None, lines), None)
        position = (self.find(family, name, "text-position") or "").partition(" ")[0]
        script = outer.script
        if position == "super" or position.rstrip("%").isdecimal():
            script = Script.RAISED if position != "0%" else Script.LINE
        elif position == "sub" or position.startswith("-"):
            script = Script.LOWERED
        return replace(
            outer,
            text="",
            script=script,
            is_struck=line != "none" if line else outer.is_struck,
            colour=self.find_colour(family, name, "color") or outer.colour,
            typeface=self._name_typeface(self.find(family, name, "font-name")) or outer.typeface,
            background=self.find_colour(family, name, "background-color") or outer.background,
        )

    def find_colour(self, family: str, name: str | None, attribute: str) -> str:
        """Return a colour such as `#ffffff`, or an empty text if a style states none."""
        stated = (self.find(family, name, attribute) or "").lower()
        return stated if stated.startswith("#") else ""

    def find_fill(self, name: str | None, *families: str) -> str | None:
        """Return the colour of a shape or a slide: empty for none, None if it is not known."""
        for family in families:
            fill = self.find(family, name, "fill")
            if fill == "solid" and self.find(family, name, "opacity") in (None, "100%"):
                return self.find_colour(family, name, "fill-color") or None
            if fill is not None:
                return "" if fill == "none" else None
        return None

    def has_conditions(self, name: str | None) -> bool:
        """Return whether the appearance of cells in a style depends on conditions."""
        return self.find("table-cell", name, "apply-style-name") is not None

    def is_caption(self, name: str) -> bool:
        """Return whether a paragraph of a style is the caption of a figure."""
        return "Caption" in self._names(name)

    def is_code(self, name: str) -> bool:
        """Return whether a paragraph of a style is preformatted."""
        names = self._names(name)
        return any("Preformatted" in part or part == "Source_20_Code" for part in names)

    def count_tab_stops(self, name: str) -> int:
        """Return the number of tab stops of paragraphs in a style."""
        stated = (
            stops for style in self._chain("paragraph", name) for stops in style.iter("tab-stops")
        )
        return len(next(stated, ()))

    def _name_typeface(self, name: str | None) -> str:
        return self._faces.get(name, name or "")

    def _names(self, name: str) -> list[str]:
        chain = self._chain("paragraph", name)
        return [name, *(style.get("parent-style-name", "") for style in chain)]

    def _chain(self, family: str, name: str) -> list[Element]:
        chain: list[Element] = []
        while (style := self._styles.get((family, name))) is not None:
            if len(chain) == _DEEPEST_STYLE:
                break
            chain.append(style)
            name = style.get("parent-style-name", "")
        return chain

    def _read_levels(self, style: Element) -> dict[int, Level]:
        """Return the levels of a list by their 0-based number; one without numbers is a bullet."""
        elements = {count(element, "level"): element for element in style}
        levels: dict[int, Level] = {}
        for at, element in elements.items():
            above = range(max(1, at - count(element, "display-levels") + 1), at)
            numbers = [place for place in above if elements.get(place, element).get("num-format")]
            number = ".".join(f"%{place}" for place in (*numbers, at))
            before, after = (element.get(f"num-{name}", "") for name in ("prefix", "suffix"))
            kind = element.get("num-format") or "bullet"
            if element.get("num-letter-sync") == "true":
                kind = {"a": "lowerLetter", "A": "upperLetter"}.get(kind, kind)
            start = to_number(element.get("start-value"), 1)
            text = f"{before}{number}{after}"
            if kind == "bullet":
                typeface = find_child(element, "text-properties")
                name = None if typeface is None else typeface.get("font-name")
                text = write_bullet(element.get("bullet-char", ""), self._name_typeface(name))
            levels[at - 1] = Level(kind, text, start)
        return levels


class ListNumbers:
    """Counts the items of the lists in which the current paragraph is."""

    def __init__(self, styles: Styles, left_out: LeftOutCounts) -> None:
        self._styles = styles
        self._left_out = left_out
        self._open: list[_List] = []
        self._counted: dict[str | None, list[int | None]] = {}

    @property
    def depth(self) -> int:
        """The number of lists around the current paragraph."""
        return len(self._open)

    @property
    def is_in_cell(self) -> bool:
        """Whether the innermost list is in a cell of a table."""
        return bool(self._open) and self._open[-1].is_in_cell

    @contextmanager
    def suspend(self) -> Iterator[None]:
        """Read what belongs to no list, such as a note."""
        lists, self._open = self._open, []
        yield
        self._open = lists

    @contextmanager
    def open(self, element: Element, *, is_in_cell: bool) -> Iterator[bool]:
        """Read the items of a list; False if it is too deep to be counted."""
        outer = self._open[-1] if self._open else None
        style = element.get("style-name") or (outer.style if outer is not None else "")
        goes_on = element.get("continue-numbering") == "true"
        if outer is not None:
            counts = outer.counts
            if outer.has_list and not goes_on:
                counts[self.depth :] = [None] * (LEVELS - self.depth)
            outer.has_list = True
        else:
            name = style if goes_on else element.get("continue-list")
            counts = list(self._counted.get(name, ())) or [None] * LEVELS
        if self.depth >= LEVELS:
            yield False
            return
        self._open.append(_List(style, counts, is_in_cell=is_in_cell or self.is_in_cell))
        yield True
        self._open.pop()
        if outer is None:
            self._counted |= {element.get("id") or style: counts, style: counts}

    def begin_item(self, item: Element) -> None:
        """Begin an item, or a header, of the innermost list."""
        start = to_number(item.get("start-value"), -1)
        is_header = item.tag == "list-header"
        self._open[-1] = replace(
            self._open[-1],
            label="  " if is_header else _read_number(item),
            is_begun=is_header,
            has_list=False,
            start=None if start < 0 else start,
        )

    def take_label(self, style: str) -> str:
        """Return the label of the next paragraph of the open item; further ones are indented."""
        current = self._open[-1]
        if current.is_begun:
            return " " * len(current.label)
        current.is_begun = True
        name = current.style or self._styles.find("paragraph", style, "list-style-name") or ""
        levels = self._styles.levels.get(name, {})
        label = count_item(levels, current.counts, self.depth - 1, self._left_out, current.start)
        current.label = current.label or label
        return current.label

    def label_heading(self, element: Element, style: str) -> str:
        """Return the number of a heading, from its list or from the numbering of chapters."""
        if element.get("is-list-header") == "true":
            return ""
        if self._open:
            return self.take_label(style)
        if self._styles.find("paragraph", style, "list-style-name") == "":
            return _read_number(element)
        level = min(count(element, "outline-level"), LEVELS) - 1
        counts = self._counted.setdefault(_OUTLINE, [None] * LEVELS)
        levels = self._styles.levels.get(_OUTLINE, {})
        return _read_number(element) or count_item(levels, counts, level, self._left_out)


@dataclass(slots=True)
class _List:
    """An open list: its style, the numbers of all its levels, and the label of its open item.

    `is_begun`: the open item has a label, which its further paragraphs do not repeat. `has_list`:
    the open item contains a list. `is_in_cell`: the list is in a cell of a table, where a number
    may be the only content.
    """

    style: str
    counts: list[int | None]
    label: str = ""
    is_begun: bool = False
    has_list: bool = False
    is_in_cell: bool = False
    start: int | None = None


def _read_number(element: Element) -> str:
    """Return the label that the file states for an item or a heading; mostly it states none."""
    return " ".join((element.findtext("number") or "").split())
