"""Parses colours of style sheets as far as comparing two of them requires."""

import colorsys
import re

Colour = tuple[int, int, int] | str
"""Red, green and blue, or the text of an unknown colour, which is equal only to itself."""

TRANSPARENT = "transparent"
UNKNOWN = "unknown"
"""The background is a picture, a gradient, or defined in another file."""
BLACK: Colour = (0, 0, 0)
WHITE: Colour = (255, 255, 255)

_LEAST_DIFFERENCE = 24
_LEAST_ALPHA = 0.06
_NAMES: dict[str, Colour] = {
    name: (code >> 16, code >> 8 & 255, code & 255)
    for name, code in {
        "white": 0xFFFFFF, "black": 0, "red": 0xFF0000, "lime": 0xFF00, "blue": 0xFF,
        "yellow": 0xFFFF00, "aqua": 0xFFFF, "cyan": 0xFFFF, "fuchsia": 0xFF00FF,
        "magenta": 0xFF00FF, "silver": 0xC0C0C0, "gray": 0x808080, "grey": 0x808080,
        "maroon": 0x800000, "olive": 0x808000, "green": 0x8000, "purple": 0x800080,
        "teal": 0x8080, "navy": 0x80, "orange": 0xFFA500, "snow": 0xFFFAFA,
        "ghostwhite": 0xF8F8FF, "whitesmoke": 0xF5F5F5, "ivory": 0xFFFFF0,
        "floralwhite": 0xFFFAF0, "mintcream": 0xF5FFFA, "azure": 0xF0FFFF,
        "aliceblue": 0xF0F8FF, "seashell": 0xFFF5EE, "honeydew": 0xF0FFF0,
        "lavenderblush": 0xFFF0F5, "oldlace": 0xFDF5E6, "linen": 0xFAF0E6,
        "gainsboro": 0xDCDCDC, "lightgray": 0xD3D3D3, "lightgrey": 0xD3D3D3,
        "darkgray": 0xA9A9A9, "darkgrey": 0xA9A9A9, "dimgray": 0x696969, "dimgrey": 0x696969,
    }.items()
}  # fmt: skip
_HEX = re.compile(r"#?([0-9a-f]{3,8})\Z")
_FUNCTION = re.compile(r"(rgba?|hsla?)\(([^()]{0,80})\)\Z")
_NUMBER = re.compile(r"-?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})%?")
_PICTURE = re.compile(r"url\(|gradient\(|image\(")
_TOKEN = re.compile(r"[\w#.-]{1,40}\([^()]{0,80}\)|[\w#.-]{1,40}")


def parse_colour(text: str) -> Colour:
    """Return the colour that a value in lower case names."""
    text = text.strip()
    if text in _NAMES:
        return _NAMES[text]
    if (found := _HEX.match(text)) is not None and len(found[1]) != 5 and len(found[1]) != 7:
        return _from_hex(found[1])
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
