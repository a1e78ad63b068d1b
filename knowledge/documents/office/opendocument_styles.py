"""The styles of an OpenDocument file: typefaces, colours, hidden content, levels of lists."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from knowledge.documents.notation import Script, Span
from knowledge.documents.office.list_numbering import Level
from knowledge.documents.office.zipped_xml import count, to_number

OUTLINE = "#outline"
"""The name of the list of headings, which is numbered throughout the document."""
_DATA_STYLES = frozenset(
    f"{kind}-style"
    for kind in ("number", "currency", "percentage", "date", "time", "boolean", "text")
)
_DEEPEST_STYLE = 12


@dataclass(frozen=True, slots=True)
class ColouredSpan(Span):
    """Text with its colour and the colour behind it, such as `#ffffff`; empty if not known."""

    text: str = ""
    colour: str = ""
    background: str = ""

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
        self._found: dict[tuple[str, str, str], str | None] = {}
        for part in parts:
            for style in part.iter("style"):
                self._styles[style.get("family", ""), style.get("name", "")] = style
            for styles in part:
                self._formats |= {
                    child.get("name"): child for child in styles if child.tag in _DATA_STYLES
                }
            for style in part.iter("list-style"):
                self.levels[style.get("name", "")] = _read_levels(style)
            for style in part.iter("outline-style"):
                self.levels[OUTLINE] = _read_levels(style)

    def find(self, family: str, name: str | None, attribute: str) -> str | None:
        """Return an attribute of a style or of its properties, or None if it is not set."""
        key = (family, name or "", attribute)
        if key not in self._found:
            stated = (
                value
                for style in self._chain(family, name or "")
                for element in (style, *style)
                if (value := element.get(attribute)) is not None
            )
            self._found[key] = next(stated, None)
        return self._found[key]

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

    def find_span(self, family: str, name: str | None, outer: ColouredSpan) -> ColouredSpan:
        """Return a span without text in the typeface of a style, inside of another typeface."""
        line = self.find(family, name, "text-line-through-style")
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


def _read_levels(style: Element) -> dict[int, Level]:
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
        levels[at - 1] = Level(kind, f"{before}{number}{after}", start)
    return levels
