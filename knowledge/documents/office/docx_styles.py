"""Knows what the styles of a Word document say: levels of headings, lists, typefaces of code."""

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

_DEEPEST = 12
_TYPEFACES_OF_CODE = (
    "consolas", "courier", "menlo", "monaco", "mono", "source code", "lucida console", "fira code",
)  # fmt: skip
_STYLES_OF_CODE = ("code", "preformatted", "listing", "verbatim")


@dataclass(frozen=True, slots=True)
class ParagraphStyle:
    """What a paragraph is by its style; `level` is 0 for text, `list_id` empty for no list."""

    level: int = 0
    list_id: str = ""
    list_level: int = 0
    is_code: bool = False
    is_contents: bool = False


class Styles:
    """The styles of a document by their ids; what a style leaves open its base says."""

    def __init__(self, root: "Element | None") -> None:
        self._styles = {
            get_attribute(style, "styleId") or "": style for style in find_children(root, "style")
        }
        self._found: dict[str, ParagraphStyle] = {}

    def find(self, style_id: str) -> ParagraphStyle:
        """Return what a style says; an unknown one says nothing."""
        if style_id not in self._found:
            self._found[style_id] = self._read(style_id)
        return self._found[style_id]

    def _read(self, style_id: str) -> ParagraphStyle:
        chain = self._chain(style_id)
        names = [(get_value(style, "name") or "").lower() for style in chain]
        properties = [find_child(style, "pPr") for style in chain]
        lists = [get_value(found, "numPr", "numId") for found in properties]
        list_levels = [get_value(found, "numPr", "ilvl") for found in properties]
        return ParagraphStyle(
            level=_find_level(names, [get_value(found, "outlineLvl") for found in properties]),
            list_id=next((found for found in lists if found), ""),
            list_level=next((int(at) for at in list_levels if at and at.isdecimal()), 0),
            is_code=any(word in name for name in names[:1] for word in _STYLES_OF_CODE)
            or any(is_typeface_of_code(find_child(style, "rPr")) for style in chain),
            is_contents=any(name.startswith(("toc ", "table of figures")) for name in names),
        )

    def _chain(self, style_id: str) -> list["Element"]:
        chain: list[Element] = []
        following: str | None = style_id
        while following in self._styles and len(chain) < _DEEPEST:
            chain.append(self._styles[following])
            following = get_value(chain[-1], "basedOn")
        return chain


def is_typeface_of_code(properties: "Element | None") -> bool:
    """Return whether runs with these properties are set in a typeface of code."""
    fonts = find_child(properties, "rFonts")
    name = (get_attribute(fonts, "ascii") or "").lower() if fonts is not None else ""
    return any(typeface in name for typeface in _TYPEFACES_OF_CODE)


def _find_level(names: list[str], outline_levels: list[str | None]) -> int:
    for name, outline in zip(names, outline_levels, strict=True):
        if outline is not None and outline.isdecimal():
            return min(int(outline) + 1, 6) if int(outline) < 9 else 0
        if name.startswith("heading ") and name[8:].isdecimal():
            return max(1, min(int(name[8:]), 6))
        if name == "title":
            return 1
    return 0
