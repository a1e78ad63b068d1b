"""Parses the declarations of a style and decides whether they hide an element."""

import re
from collections.abc import Mapping

LONGEST_STYLE = 10_000
"""The number of characters of one style that are read."""

Declarations = Mapping[str, str]

_COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*(?:\*/|\Z)")
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))")
_CAMEL = re.compile(r"([a-z])([A-Z])")
_LENGTH = re.compile(r"(-?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9}))\s?(px|pt|em|rem|ex|ch|%|v[wh]|)")
_PIXELS = {"px": 1.0, "pt": 1.33, "em": 16.0, "rem": 16.0, "ex": 8.0, "ch": 8.0, "%": 0.16}
_FAR = -400.0
_TINY = 1.0
_LEAST_OPACITY = 0.06
_SHIFTS = ("left", "top", "right", "bottom", "margin-left", "margin-top", "text-indent")
_SIZES = ("width", "height", "max-width", "max-height")
_OVERFLOWS = ("overflow", "overflow-x", "overflow-y")
_NO_CLIP = re.compile(r"inset\(\s*(?:[5-9]\d|100)(?:\.\d{1,9})?%|circle\(\s*0(?:px|%)?[\s)]")
_NO_RECTANGLE = re.compile(r"rect\(\s*[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01](?:px)?[\s,]+[01]")
_NO_SCALE = re.compile(r"scale(?:x|y|3d)?\(\s*+0?\.?0*+\s*+[,)]")
_TRANSLATED = re.compile(r"translate(?:x|y|3d)?\(\s*(-\d{1,9}[^,)]{0,9})")
_NO_OPACITY = re.compile(r"opacity\(\s*(?:0?\.0\d*|0)%?\s*\)")


def parse_declarations(style: str) -> dict[str, str]:
    """Return the properties of a style attribute, or of one rule, in lower case.

    An attribute of JSX, such as `{{display: "none"}}`, is read, too.
    """
    text = style[:LONGEST_STYLE]
    jsx = text.lstrip().startswith("{")
    if jsx:
        text = text.strip("{} \t\n").replace("'", "").replace('"', "")
        text = _CAMEL.sub(r"\1-\2", text)
    text = _ESCAPE.sub(_unescape, _COMMENT.sub("", text)).lower()
    found: dict[str, str] = {}
    for part in text.split("," if jsx else ";"):
        name, colon, value = part.partition(":")
        if colon:
            found[name.strip()] = value.replace("!important", "").strip()
    return found


def hides_subtree(styles: Declarations) -> bool:
    """Return whether the whole content is hidden, regardless of the styles of its parts."""
    return (
        styles.get("display") == "none"
        or styles.get("content-visibility") == "hidden"
        or _is_faint(styles)
        or _is_clipped(styles)
        or _is_far_away(styles)
        or _is_collapsed(styles)
    )


def font_is_tiny(styles: Declarations) -> bool | None:
    """Return whether letters are too small to be seen, or None without a font size."""
    size = styles.get("font-size") or _size_of_font(styles.get("font", ""))
    pixels = _pixels(size) if size else None
    return None if pixels is None else pixels <= _TINY


def _size_of_font(font: str) -> str:
    found = _LENGTH.search(re.sub(r"\b\d00\b", "", font[:200]))
    return found[0] if found else ""


def _is_faint(styles: Declarations) -> bool:
    opacity = styles.get("opacity", "1")
    found = _LENGTH.match(opacity)
    value = float(found[1]) / (100 if found[2] == "%" else 1) if found else 1.0
    return value < _LEAST_OPACITY or _NO_OPACITY.search(styles.get("filter", "")) is not None


def _is_clipped(styles: Declarations) -> bool:
    clip = styles.get("clip-path", "") or styles.get("-webkit-clip-path", "")
    if _NO_CLIP.search(clip) or _NO_RECTANGLE.search(styles.get("clip", "")):
        return True
    transform = styles.get("transform", "")
    return (
        _NO_SCALE.search(transform) is not None
        or styles.get("scale", "1") == "0"
        or _first_pixels(styles.get("zoom", "1")) == 0
    )


def _is_far_away(styles: Declarations) -> bool:
    placed = styles.get("position", "static") not in ("static", "relative") or "float" in styles
    for name in _SHIFTS:
        pixels = _first_pixels(styles.get(name, ""))
        moved = (
            placed or name.startswith(("margin", "text")) or styles.get("position") == "relative"
        )
        if moved and pixels is not None and pixels <= _FAR:
            return True
    shift = _TRANSLATED.search(styles.get("transform", ""))
    return shift is not None and (_first_pixels(shift[1]) or 0) <= _FAR


def _is_collapsed(styles: Declarations) -> bool:
    if not any(styles.get(name, "").startswith(("hidden", "clip")) for name in _OVERFLOWS):
        return False
    sizes = (_first_pixels(styles[name]) for name in _SIZES if name in styles)
    return any(size is not None and 0 <= size <= _TINY for size in sizes)


def _first_pixels(value: str) -> float | None:
    return _pixels(value) if value else None


def _pixels(value: str) -> float | None:
    found = _LENGTH.match(value)
    if found is None:
        return None
    factor = 1.0 if not found[2] else _PIXELS.get(found[2], 10.0)
    return float(found[1]) * factor


def _unescape(found: re.Match[str]) -> str:
    if found[2] is not None:
        return found[2]
    code = int(found[1], 16)
    return chr(code) if 0 < code < 0x110000 else ""
