"""Computes how the text in an element looks to a reader: visible, tiny, or without contrast."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from knowledge.documents.visibility.colours import (
    BLACK,
    TRANSPARENT,
    UNKNOWN,
    WHITE,
    Colour,
    are_alike,
    parse_background,
    parse_colour,
)
from knowledge.documents.visibility.declarations import (
    Declarations,
    font_is_tiny,
    hides_subtree,
    parse_declarations,
)

Attributes = Mapping[str, str | None]

_NEVER_SHOWN = (
    "script style noscript template datalist rp audio video object iframe canvas svg head "
    "annotation annotation-xml noembed noframes"
)
NEVER_SHOWN = frozenset(_NEVER_SHOWN.split())
"""Elements whose text browsers do not show as a part of the page."""

_HIDING = (
    "hidden invisible d-none sr-only visually-hidden screen-reader-text is-hidden display-none "
    "opacity-0"
)
_HIDING_CLASSES = frozenset(_HIDING.split())
_SHOWING_CLASSES = ("block", "flex", "grid", "inline", "inline-block", "inline-flex", "table")


@dataclass(frozen=True, slots=True)
class Appearance:
    """The appearance of the text inside an element."""

    colour: Colour = BLACK
    background: Colour = WHITE
    is_invisible: bool = False
    is_tiny: bool = False

    @property
    def shows_text(self) -> bool:
        """Whether the text can be seen."""
        return not (
            self.is_invisible
            or self.is_tiny
            or self.colour == TRANSPARENT
            or are_alike(self.colour, self.background)
        )


def appearance_inside(
    outer: Appearance,
    tag: str,
    attributes: Attributes,
    ruled: Declarations,
    *,
    has_stylesheets: bool = False,
) -> Appearance | None:
    """Return the appearance of text in an element, or None if the element is hidden.

    `ruled` are the declarations of the page's style elements that apply to it. With
    `has_stylesheets` there are external style sheets: a class may then set an unknown background.
    """
    if tag in NEVER_SHOWN or "hidden" in attributes or attributes.get("aria-hidden") == "true":
        return None
    if tag == "dialog" and "open" not in attributes:
        return None
    classes = (attributes.get("class") or attributes.get("classname") or "").split()
    if _classes_hide(classes):
        return None
    styles = {**_presentation(tag, attributes), **ruled, **_inline(attributes)}
    if not styles and not (classes and has_stylesheets):
        return outer
    if hides_subtree(styles):
        return None
    return _apply_declarations(outer, styles, unknown=bool(classes) and has_stylesheets)


def _classes_hide(classes: list[str]) -> bool:
    if _HIDING_CLASSES.isdisjoint(classes):
        return False
    return not any(
        (name.startswith("d-") and name != "d-none") or name.partition(":")[2] in _SHOWING_CLASSES
        for name in classes
    )


def _inline(attributes: Attributes) -> dict[str, str]:
    style = attributes.get("style")
    return parse_declarations(style) if style else {}


def _presentation(tag: str, attributes: Attributes) -> dict[str, str]:
    found = {}
    if colour := attributes.get("color") if tag == "font" else attributes.get("text"):
        found["color"] = colour.lower()
    if background := attributes.get("bgcolor"):
        found["background-color"] = background.lower()
    if tag == "font" and attributes.get("size") == "0":
        found["font-size"] = "0"
    return found


def _apply_declarations(outer: Appearance, styles: Declarations, *, unknown: bool) -> Appearance:
    inner = replace(
        outer,
        colour=_colour(outer.colour, styles),
        background=_background(outer.background, styles, unknown=unknown),
    )
    tiny = font_is_tiny(styles)
    if tiny is not None:
        inner = replace(inner, is_tiny=tiny)
    if styles.get("visibility") in ("hidden", "collapse"):
        inner = replace(inner, is_invisible=True)
    elif styles.get("visibility") in ("visible", "initial"):
        inner = replace(inner, is_invisible=False)
    return inner


def _colour(outer: Colour, styles: Declarations) -> Colour:
    stated = styles.get("-webkit-text-fill-color") or styles.get("color")
    if not stated or stated in ("inherit", "currentcolor", "unset"):
        return outer
    return BLACK if stated == "initial" else parse_colour(stated)


def _background(outer: Colour, styles: Declarations, *, unknown: bool) -> Colour:
    inner = UNKNOWN if unknown and outer == WHITE else outer
    for name in ("background", "background-image", "background-color"):
        if name in styles and styles[name] != "none":
            stated = parse_background(styles[name])
            inner = inner if stated == TRANSPARENT else stated
    return inner
