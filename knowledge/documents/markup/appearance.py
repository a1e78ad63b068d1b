"""Determines how the text in an element appears to a reader: visible, tiny, or without contrast."""

import colorsys
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from knowledge.documents.markup.style_sheets import (
    IMPORTANT,
    Declarations,
    cascade,
    parse_declarations,
)

Attributes = Mapping[str, str | None]

_NEVER_SHOWN = (
    "script style noscript template datalist rp audio video object iframe canvas head "
    "annotation annotation-xml noembed noframes title desc metadata defs symbol "
    "marker clipPath mask pattern"
)
NEVER_SHOWN = frozenset(_NEVER_SHOWN.split())
"""Elements whose text browsers do not show."""

_HIDING = (
    "hidden invisible d-none sr-only visually-hidden screen-reader-text is-hidden display-none "
    "opacity-0"
)
_HIDING_CLASSES = frozenset(_HIDING.split())
_SHOWING_CLASSES = ("block", "flex", "grid", "inline", "inline-block", "inline-flex", "table")

Colour = tuple[int, int, int] | str
"""Red, green and blue, or the name of an unknown colour, which is equal only to itself."""
BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)
_KEEPING_LINES = frozenset({"pre", "pre-line", "pre-wrap", "break-spaces"})
_CODE = frozenset({"pre", "code", "textarea"})
_DRAWING = "svg"
_DRAWING_TAGS = frozenset({_DRAWING, "g", "text", "tspan"})
_DRAWN = {"x": "left", "y": "top"} | {
    name: name for name in ("display", "visibility", "opacity", "font-size", "fill")
}
_LENGTH = re.compile(r"(-?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))\s?(px|pt|em|rem|ex|ch|%|v[wh]|)")
_PIXELS = {"px": 1.0, "pt": 1.33, "em": 16.0, "rem": 16.0, "ex": 8.0, "ch": 8.0, "%": 0.16}
_FAR = -400.0
_TINY = 1.0
_MARGINS = ("margin-left", "margin-top", "text-indent")
_SIDES = ("left", "top", "right", "bottom")
_SIZES = ("width", "height", "max-width", "max-height")
_OVERFLOWS = ("overflow", "overflow-x", "overflow-y")
_NO_CLIP = re.compile(r"inset\(\s*(?:[5-9]\d|100)(?:\.\d{1,9})?%|circle\(\s*0(?:px|%)?[\s)]")
_REMOVING = {
    "display": re.compile(r"none\Z"),
    "content-visibility": re.compile("hidden"),
    "opacity": re.compile(r"(?:0?\.0[0-5]?\d*|0|[0-5](?:\.\d*)?%)\Z"),
    "filter": re.compile(r"opacity\(\s*(?:0?\.0\d*|0)%?\s*\)"),
}
"""Values that hide an element."""
_CLIPPING = {
    "clip-path": _NO_CLIP,
    "-webkit-clip-path": _NO_CLIP,
    "clip": re.compile(r"rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01]"),
    "transform": re.compile(
        r"scale(?:x|y|3d)?\(\s*+0?\.?0*+\s*+[,)]|translate(?:x|y|3d)?\(\s*-(?:[4-9]\d\d|\d{4,9})"
    ),
    "scale": re.compile(r"0\Z"),
    "zoom": re.compile(r"0(?:\.0*)?%?\Z"),
}
"""Values that clip an element, make it a point, or move it off screen."""
TRANSPARENT = "transparent"
UNKNOWN = "unknown"
"""The background is a picture or a gradient, or is defined in another file."""

_LEAST_DIFFERENCE = 24
_LEAST_ALPHA = 0.06
_COLOUR_NAMES: dict[str, Colour] = {
    name: (code >> 16, code >> 8 & 255, code & 255)
    for name, code in {
        "white": 0xFFFFFF, "black": 0, "snow": 0xFFFAFA, "ghostwhite": 0xF8F8FF,
        "whitesmoke": 0xF5F5F5, "ivory": 0xFFFFF0, "floralwhite": 0xFFFAF0, "mintcream": 0xF5FFFA,
        "azure": 0xF0FFFF, "aliceblue": 0xF0F8FF, "seashell": 0xFFF5EE, "honeydew": 0xF0FFF0,
        "lavenderblush": 0xFFF0F5, "oldlace": 0xFDF5E6, "linen": 0xFAF0E6,
    }.items()
}  # fmt: skip
"""Colours that cannot be told from white or black; others are compared by name."""
_HEX = re.compile(r"#?([0-9a-f]{3,8})\Z")
_FUNCTION = re.compile(r"(rgba?|hsla?)\(([^()]{0,80})\)\Z")
_NUMBER = re.compile(r"-?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})%?")
_PICTURE = re.compile(r"url\(|gradient\(|image\(")
_TOKEN = re.compile(r"[\w#.-]{1,40}\([^()]{0,80}\)|[\w#.-]{1,40}")


@dataclass(frozen=True, slots=True)
class Appearance:
    """The appearance of the text inside an element."""

    colour: Colour = BLACK
    background: Colour = WHITE
    is_invisible: bool = False
    is_tiny: bool = False
    keeps_lines: bool = False
    is_code: bool = False

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
    styles: Declarations,
    *,
    has_stylesheets: bool = False,
    may_be_moved: bool = False,
) -> Appearance | None:
    """Return the appearance of text in an element, or None if the element is hidden.

    `styles` are the declarations that apply to the element. With `has_stylesheets`, the page has
    external style sheets, so a class may set an unknown background. With `may_be_moved`, an element
    that is moved off screen or clipped is not hidden.
    """
    if tag in NEVER_SHOWN or attributes.get("aria-hidden") == "true":
        return None
    # Content hidden by `until-found` can be found by a search in the page.
    is_hidden = attributes.get("hidden", "until-found") != "until-found"
    if (is_hidden or (tag == "dialog" and "open" not in attributes)) and "display" not in styles:
        return None
    classes = (attributes.get("class") or attributes.get("classname") or "").split()
    if _classes_hide(classes):
        return None
    if tag in _CODE:
        outer = replace(outer, is_code=True)
    if not styles and not (classes and has_stylesheets) and tag != _DRAWING:
        return outer
    if hides_subtree(styles, may_be_moved=may_be_moved):
        return None
    unknown = (bool(classes) and has_stylesheets) or tag == _DRAWING
    return _apply_declarations(outer, styles, unknown=unknown)


def compute_styles(tag: str, attributes: Attributes, ruled: Declarations) -> Declarations:
    """Return the declarations of an element: its attributes, then the rules for it, then its style.

    `ruled` are the cascaded declarations of the style sheets.
    """
    presented = _presentation(tag, attributes)
    style = attributes.get("style")
    if not (presented or ruled or style):
        return {}
    styles = cascade(presented, ruled, parse_declarations(style or ""))
    styles = {name: value.removesuffix(IMPORTANT).rstrip() for name, value in styles.items()}
    if tag in _DRAWING_TAGS and "fill" in styles:
        styles["color"] = TRANSPARENT if styles["fill"] == "none" else styles["fill"]
    return styles


def hides_subtree(styles: Declarations, *, may_be_moved: bool = False) -> bool:
    """Return whether the element is hidden with all its children, regardless of their styles."""
    if _has_value(styles, _REMOVING):
        return True
    is_moved = _has_value(styles, _CLIPPING) or _is_far_away(styles) or _is_collapsed(styles)
    return is_moved and not may_be_moved


def font_is_tiny(styles: Declarations) -> bool | None:
    """Return whether the font is too small to be seen, or None if no size is set."""
    size = styles.get("font-size") or _size_of_font(styles.get("font", ""))
    pixels = _pixels(size) if size else None
    return None if pixels is None else pixels <= _TINY


def parse_colour(text: str) -> Colour:
    """Return the colour of a CSS value in lower case."""
    text = text.strip()
    if text in _COLOUR_NAMES:
        return _COLOUR_NAMES[text]
    if (match := _HEX.match(text)) is not None and len(match[1]) != 5 and len(match[1]) != 7:
        return _from_hex(match[1])
    if (called := _FUNCTION.match(text)) is not None:
        return _from_numbers(called[1], _NUMBER.findall(called[2]), text)
    return text


def parse_background(text: str) -> Colour:
    """Return the colour of a `background`, or `UNKNOWN` for a picture or a gradient."""
    if _PICTURE.search(text):
        return UNKNOWN
    tokens = _TOKEN.findall(text[:400])
    for token in tokens:
        colour = parse_colour(token)
        if len(tokens) == 1 or colour == TRANSPARENT or not isinstance(colour, str):
            return colour
    return UNKNOWN


def are_alike(first: Colour, second: Colour) -> bool:
    """Return whether text of one colour is invisible on a background of the other."""
    if isinstance(first, str) or isinstance(second, str):
        return first == second and first not in (UNKNOWN, TRANSPARENT)
    return all(abs(a - b) <= _LEAST_DIFFERENCE for a, b in zip(first, second, strict=True))


def _classes_hide(classes: list[str]) -> bool:
    if _HIDING_CLASSES.isdisjoint(classes):
        return False
    return not any(
        (name.startswith("d-") and name != "d-none") or name.partition(":")[2] in _SHOWING_CLASSES
        for name in classes
    )


def _presentation(tag: str, attributes: Attributes) -> dict[str, str]:
    declared = {}
    if colour := attributes.get("color") if tag == "font" else attributes.get("text"):
        declared["color"] = colour.lower()
    if background := attributes.get("bgcolor"):
        declared["background-color"] = background.lower()
    if tag == "font" and attributes.get("size") == "0":
        declared["font-size"] = "0"
    for name, style in _DRAWN.items() if tag in _DRAWING_TAGS else ():
        if stated := attributes.get(name):
            declared[style] = stated.lower()
            declared["position"] = "absolute"
    return declared


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
    if (spaces := styles.get("white-space", "inherit")) != "inherit":
        inner = replace(inner, keeps_lines=spaces in _KEEPING_LINES)
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


def _size_of_font(font: str) -> str:
    match = _LENGTH.search(re.sub(r"\b\d00\b", "", font[:200]))
    return match[0] if match else ""


def _has_value(styles: Declarations, patterns: Mapping[str, re.Pattern[str]]) -> bool:
    return any(
        name in patterns and patterns[name].search(value) is not None
        for name, value in styles.items()
    )


def _is_far_away(styles: Declarations) -> bool:
    is_placed = styles.get("position", "static") != "static" or "float" in styles
    names = (*_MARGINS, *(_SIDES if is_placed else ()))
    return any((_pixels(styles.get(name, "")) or 0) <= _FAR for name in names)


def _is_collapsed(styles: Declarations) -> bool:
    if not any(styles.get(name, "").startswith(("hidden", "clip")) for name in _OVERFLOWS):
        return False
    sizes = (_pixels(styles[name]) for name in _SIZES if name in styles)
    return any(size is not None and 0 <= size <= _TINY for size in sizes)


def _pixels(value: str) -> float | None:
    match = _LENGTH.match(value)
    if match is None:
        return None
    factor = 1.0 if not match[2] else _PIXELS.get(match[2], 10.0)
    return float(match[1]) * factor


def _from_hex(digits: str) -> Colour:
    if len(digits) <= 4:
        digits = "".join(digit * 2 for digit in digits)
    if len(digits) == 8 and int(digits[6:], 16) < _LEAST_ALPHA * 255:
        return TRANSPARENT
    return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)


def _from_numbers(function: str, numbers: list[str], text: str) -> Colour:
    if len(numbers) < 3:
        return text
    if len(numbers) > 3 and _share(numbers[3], 1) < _LEAST_ALPHA:
        return TRANSPARENT
    if function.startswith("rgb"):
        red, green, blue = (round(255 * _share(number, 255)) for number in numbers[:3])
        return red, green, blue
    hue = float(numbers[0].rstrip("%")) / 360 % 1
    shares = colorsys.hls_to_rgb(hue, _share(numbers[2], 100), _share(numbers[1], 100))
    red, green, blue = (round(255 * share) for share in shares)
    return red, green, blue


def _share(number: str, whole: float) -> float:
    value = float(number[:-1]) / 100 if number.endswith("%") else float(number) / whole
    return min(1.0, max(0.0, value))
