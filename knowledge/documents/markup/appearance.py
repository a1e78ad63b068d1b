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

_NEVER = (
    "script style noscript template datalist rp audio video object iframe canvas head "
    "annotation annotation-xml noembed noframes title desc metadata defs symbol "
    "marker clipPath mask pattern"
)
_NEVER_SHOWN = frozenset(_NEVER.split())
"""Elements whose text browsers do not show."""

_HIDING = (
    "hidden invisible d-none sr-only visually-hidden screen-reader-text is-hidden display-none "
    "opacity-0"
)
_HIDING_CLASSES = frozenset(_HIDING.split())
_SHOWING_CLASSES = ("block", "flex", "grid", "inline", "inline-block", "inline-flex", "table")

_Colour = tuple[int, int, int] | str
"""Red, green and blue, or the name of an unknown colour, which is equal only to itself."""
_BLACK: _Colour = (0, 0, 0)
_WHITE: _Colour = (255, 255, 255)
_KEEPING_LINES = ("pre", "pre-line", "pre-wrap", "break-spaces")
_INHERITED = ("inherit", "currentcolor", "unset")
_INVISIBLE = {"hidden": True, "collapse": True, "visible": False, "initial": False}
_CODE = frozenset({"pre", "code", "textarea"})
_DRAWING = "svg"
_DRAWING_TAGS = frozenset({_DRAWING, "g", "text", "tspan"})
_PRESENTED = {"text": "color", "bgcolor": "background-color"}
_FONT = {"color": "color"}
_DRAWN = {"x": "left", "y": "top"} | {
    name: name for name in ("display", "visibility", "opacity", "font-size", "fill")
}
_LENGTH = re.compile(r"(-?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))\s?(px|pt|em|rem|ex|ch|%|v[wh]|)")
_PIXELS = {"px": 1.0, "pt": 1.33, "em": 16.0, "rem": 16.0, "ex": 8.0, "ch": 8.0, "%": 0.16}
_FAR = -400.0
_TINY = 1.0
_MARGINS = ("margin-left", "margin-top", "text-indent")
_PLACED = (*_MARGINS, "left", "top", "right", "bottom")
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
_TRANSPARENT = "transparent"
_UNKNOWN = "unknown"
"""The background is a picture or a gradient, or is defined in another file."""

_LEAST_DIFFERENCE = 24
_LEAST_ALPHA = 0.06
_COLOUR_NAMES = {
    "white": "ffffff", "black": "000000", "snow": "fffafa", "ghostwhite": "f8f8ff",
    "whitesmoke": "f5f5f5", "ivory": "fffff0", "floralwhite": "fffaf0", "mintcream": "f5fffa",
    "azure": "f0ffff", "aliceblue": "f0f8ff", "seashell": "fff5ee", "honeydew": "f0fff0",
    "lavenderblush": "fff0f5", "oldlace": "fdf5e6", "linen": "faf0e6",
}  # fmt: skip
"""Colours that cannot be told from white or black; others are compared by name."""
_HEX = re.compile(r"#?([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})\Z")
_FUNCTION = re.compile(r"(rgb|hsl)a?\(([^()]{0,80})\)\Z")
_NUMBER = re.compile(r"-?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})%?")
_PICTURE = re.compile(r"url\(|gradient\(|image\(")
_TOKEN = re.compile(r"[\w#.-]{1,40}\([^()]{0,80}\)|[\w#.-]{1,40}")


@dataclass(frozen=True, slots=True)
class Appearance:
    """The appearance of the text inside an element."""

    colour: _Colour = _BLACK
    background: _Colour = _WHITE
    is_invisible: bool = False
    is_tiny: bool = False
    keeps_lines: bool = False
    is_code: bool = False

    @property
    def shows_text(self) -> bool:
        """Whether the text can be seen."""
        has_no_colour = self.colour == _TRANSPARENT or _are_alike(self.colour, self.background)
        return not (self.is_invisible or self.is_tiny or has_no_colour)


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
    if tag in _NEVER_SHOWN or attributes.get("aria-hidden") == "true":
        return None
    # Content hidden by `until-found` can be found by a search in the page.
    is_hidden = attributes.get("hidden", "until-found") != "until-found"
    if (is_hidden or (tag == "dialog" and "open" not in attributes)) and "display" not in styles:
        return None
    classes = (attributes.get("class") or attributes.get("classname") or "").split()
    is_unknown = (bool(classes) and has_stylesheets) or tag == _DRAWING
    if _classes_hide(classes) or _has_value(styles, _REMOVING):
        return None
    if _is_out_of_sight(styles) and not may_be_moved:
        return None
    inner = replace(outer, is_code=True) if tag in _CODE else outer
    return _apply(inner, styles, is_unknown=is_unknown) if styles or is_unknown else inner


def compute_styles(tag: str, attributes: Attributes, ruled: Declarations) -> Declarations:
    """Return the declarations of an element: its attributes, then the rules for it, then its style.

    `ruled` are the cascaded declarations of the style sheets.
    """
    presented = _list_presented(tag, attributes)
    style = attributes.get("style")
    if not (presented or ruled or style):
        return {}
    styles = cascade(presented, ruled, parse_declarations(style or ""))
    styles = {name: value.removesuffix(IMPORTANT).rstrip() for name, value in styles.items()}
    if tag in _DRAWING_TAGS and "fill" in styles:
        styles["color"] = _TRANSPARENT if styles["fill"] == "none" else styles["fill"]
    return styles


def _classes_hide(classes: list[str]) -> bool:
    return not _HIDING_CLASSES.isdisjoint(classes) and not any(
        (name.startswith("d-") and name != "d-none") or name.partition(":")[2] in _SHOWING_CLASSES
        for name in classes
    )


def _list_presented(tag: str, attributes: Attributes) -> dict[str, str]:
    """Return what the attributes of an element other than its style declare."""
    names = _DRAWN if tag in _DRAWING_TAGS else _FONT if tag == "font" else _PRESENTED
    stated = {style: attributes.get(name) for name, style in names.items()}
    declared = {style: value.lower() for style, value in stated.items() if value}
    if tag == "bdo" and (direction := attributes.get("dir")):
        declared |= {"direction": direction.lower(), "unicode-bidi": "bidi-override"}
    if tag in _DRAWING_TAGS and declared:
        declared["position"] = "absolute"
    return declared


def _apply(outer: Appearance, styles: Declarations, *, is_unknown: bool) -> Appearance:
    """Return the appearance of text in an element with these declarations."""
    colour = styles.get("-webkit-text-fill-color") or styles.get("color") or "inherit"
    colour = "black" if colour == "initial" else colour
    background = _UNKNOWN if is_unknown and outer.background == _WHITE else outer.background
    for name in ("background", "background-image", "background-color"):
        stated = _parse_background(styles.get(name, "none"))
        background = background if stated in ("none", _TRANSPARENT) else stated
    size = _parse_pixels(styles.get("font-size") or _find_size(styles.get("font", "")))
    spaces = styles.get("white-space", "inherit")
    return replace(
        outer,
        colour=outer.colour if colour in _INHERITED else _parse_colour(colour),
        background=background,
        is_invisible=_INVISIBLE.get(styles.get("visibility", ""), outer.is_invisible),
        is_tiny=outer.is_tiny if size is None else size <= _TINY,
        keeps_lines=outer.keeps_lines if spaces == "inherit" else spaces in _KEEPING_LINES,
    )


def _has_value(styles: Declarations, patterns: Mapping[str, re.Pattern[str]]) -> bool:
    return any(
        name in patterns and patterns[name].search(value) is not None
        for name, value in styles.items()
    )


def _is_out_of_sight(styles: Declarations) -> bool:
    """Return whether an element is clipped, moved off screen, or has no size."""
    if _has_value(styles, _CLIPPING):
        return True
    is_placed = styles.get("position", "static") != "static" or "float" in styles
    moves = (_parse_pixels(styles.get(name, "")) for name in (_PLACED if is_placed else _MARGINS))
    if any(move is not None and move <= _FAR for move in moves):
        return True
    sizes = (_parse_pixels(styles.get(name, "")) for name in _SIZES)
    is_small = any(size is not None and 0 <= size <= _TINY for size in sizes)
    return is_small and any(
        styles.get(name, "").startswith(("hidden", "clip")) for name in _OVERFLOWS
    )


def _find_size(font: str) -> str:
    match = _LENGTH.search(re.sub(r"\b\d00\b", "", font[:200]))
    return match[0] if match else ""


def _parse_pixels(value: str) -> float | None:
    match = _LENGTH.match(value)
    if match is None:
        return None
    return float(match[1]) * (_PIXELS.get(match[2], 10.0) if match[2] else 1.0)


def _are_alike(first: _Colour, second: _Colour) -> bool:
    """Return whether text of one colour is invisible on a background of the other."""
    if isinstance(first, str) or isinstance(second, str):
        return first == second and first not in (_UNKNOWN, _TRANSPARENT)
    return all(abs(a - b) <= _LEAST_DIFFERENCE for a, b in zip(first, second, strict=True))


def _parse_background(text: str) -> _Colour:
    """Return the colour of a `background`, or `_UNKNOWN` for a picture or a gradient."""
    if _PICTURE.search(text):
        return _UNKNOWN
    tokens = _TOKEN.findall(text[:400])
    for token in tokens:
        colour = _parse_colour(token)
        if len(tokens) == 1 or colour == _TRANSPARENT or not isinstance(colour, str):
            return colour
    return _UNKNOWN


def _parse_colour(text: str) -> _Colour:
    """Return the colour of a CSS value in lower case."""
    text = text.strip()
    called = _FUNCTION.match(text)
    numbers = _NUMBER.findall(called[2]) if called is not None else []
    if (match := _HEX.match(_COLOUR_NAMES.get(text, text))) is not None:
        digits = match[1] if len(match[1]) > 4 else "".join(digit * 2 for digit in match[1])
        shares = [number / 255 for number in bytes.fromhex(digits)]
    elif called is not None and len(numbers) > 2:
        wholes = (255, 255, 255, 1) if called[1] == "rgb" else (360, 100, 100, 1)
        shares = [_parse_share(*pair) for pair in zip(numbers, wholes, strict=False)]
        if called[1] == "hsl":
            shares[:3] = colorsys.hls_to_rgb(shares[0], shares[2], shares[1])
    else:
        return text
    if len(shares) > 3 and shares[3] < _LEAST_ALPHA:
        return _TRANSPARENT
    red, green, blue = (min(255, max(0, round(255 * share))) for share in shares[:3])
    return red, green, blue


def _parse_share(number: str, whole: float) -> float:
    return float(number[:-1]) / 100 if number.endswith("%") else float(number) / whole
