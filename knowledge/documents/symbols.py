"""Maps the characters of symbol typefaces, which are stored as codes or letters, to Unicode."""

_SYMBOL = dict(
    zip(
        (*range(0x20, 0x7F), *range(0xA0, 0xE6), 0xF1, 0xF2),
        " !\u2200#\u2203%&\u220b()\u2217+,\u2212./0123456789:;<=>?"
        "\u2245ΑΒΧΔΕΦΓΗΙ\u03d1ΚΛΜΝΟΠΘΡΣΤΥ\u03c2ΩΞΨΖ[\u2234]\u22a5_"
        "\u203eαβχδεφγηι\u03d5κλμνοπθρστυ\u03d6ωξψζ{|}\u223c"
        "€\u03d2\u2032≤\u2044∞\u0192♣♦♥♠↔←↑→↓°±\u2033≥×∝∂•÷≠≡≈…\u23d0\u23af\u21b5"
        "\u2135\u2111\u211c\u2118⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊\u2329®©™∑\u232a∫",
        strict=True,
    )
)
_WINGDINGS = {
    0x28: "\u260e", 0x2A: "\u2709", 0x6C: "●", 0x6E: "■", 0x6F: "□", 0x71: "❑", 0x72: "❒",
    0x75: "◆", 0x76: "❖", 0xA1: "○", 0xA7: "▪", 0xA8: "◻", 0xD8: "➢", 0xDF: "←", 0xE0: "→",
    0xE1: "↑", 0xE2: "↓", 0xE7: "←", 0xE8: "→", 0xE9: "↑", 0xEA: "↓", 0xF0: "⇨", 0xFB: "✗",
    0xFC: "✓", 0xFD: "☒", 0xFE: "☑",
}  # fmt: skip
_TYPEFACES = {"symbol": _SYMBOL, "wingdings": _WINGDINGS}
_PRIVATE = range(0xF000, 0xF100)
_MARKS = frozenset("✓✔✅☑✗✘✕✖❌☒☐□")
UNKNOWN = "\ufffd"
"""Placeholder for an unknown symbol, so that it is not omitted silently."""


def find_symbol(code: int, typeface: str) -> str:
    """Return the Unicode character for a code point in a symbol typeface."""
    place = code - _PRIVATE.start if code in _PRIVATE else code
    known = _TYPEFACES.get(typeface.strip().lower())
    if known is None:
        return chr(code) if code not in _PRIVATE and 0x1F < code < 0xD800 else UNKNOWN
    return known.get(place, UNKNOWN)


def write_bullet(text: str, typeface: str) -> str:
    """Return the label of a list item without a number: `- ✓` for a check mark, a cross or a box,
    which tell whether something is the case, and otherwise `-`.
    """
    mark = replace_symbols(text, typeface).strip()
    return f"- {mark}" if mark in _MARKS else "-"


def replace_symbols(text: str, typeface: str, symbols: str = "") -> str:
    """Return text in a symbol typeface as Unicode; unknown characters other than symbols stay.

    `symbols` is the typeface of symbols in the text, if it is another one.
    """
    letters = _TYPEFACES.get(typeface.strip().lower(), {})
    symbols = (symbols or typeface).strip().lower()
    if not letters and symbols not in _TYPEFACES:
        return text
    return "".join(
        find_symbol(ord(character), symbols)
        if ord(character) in _PRIVATE and symbols in _TYPEFACES
        else letters.get(ord(character), character)
        for character in text
    )
