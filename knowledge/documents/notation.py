"""Writes typography as plain text: superscript, subscript and strikethrough text, formulas, labels.

Ten to the sixth is `10^6`, one half `1/2`, a footnote mark `[3]`, strikethrough text `~~400~~`.
Subscript text follows its letter as people type it (`H2O`) and is marked only after a digit.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby

_TAB_IN_NUMBERS = re.compile(r"(?<=\d)[ ]{0,20}\t[ \t]{0,20}(?=\d)")
_SLASHES = ("/", "\u2044", "\u2215")
_PLAIN_SCRIPT = re.compile(
    r"[+\-\u2212]?(?:\d{1,20}(?:[.,]\d{1,20})?|[^\W\d_]|\u221e|\([^()]{1,20}\))\Z"
)


def _write_raised(text: str) -> str:
    """Return superscript text with its mark: `^6`, `^(n+1)`; words such as `th` and symbols need
    none.
    """
    if text[-1] == ")" and "(" not in text:
        # The mark of a footnote `1)`.
        return f"[{text}]"
    is_mark = not any(character.isalnum() for character in text) and text != "\u221e"
    if is_mark or text[0] in ":,;." or (len(text) > 1 and text.isalpha()) or text == "\u00ba":
        return text
    return f"^{text}" if _PLAIN_SCRIPT.match(text) else f"^({text})"


_TWO_TILDES = re.compile("(?<!~)~~(?!~)")
_OUTER_TILDE = re.compile(r"\A~|(?<!\\)~\Z")
_TILDE = r"\\~"
_BRACKETS = r"\([^()]{0,200}\)"
_ATOM = re.compile(
    rf"[+\-\u2212]?(?:(?:\d[\d.,]{{0,60}}|[^\W\d][\w.,]{{0,60}})(?:\^-?\w{{1,20}})?|{_BRACKETS})\Z"
)
"""What needs no brackets in a fraction: a number or a word, which begins with a letter."""
_SINGLE = re.compile(rf"(?:\d[\d.,]{{0,60}}|\w|{_BRACKETS})\Z")
"""What needs no brackets behind the sign of a root or the name of a function."""
_DEEPEST_FORMULA = 60
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
          (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))  # fmt: skip
_NUMBERINGS = {
    "lowerLetter": "alphaLc",
    "upperLetter": "alphaUc",
    "lower-alpha": "a loweralpha lower-latin",
    "upper-alpha": "A upperalpha upper-latin",
    "lowerRoman": "i lowerroman romanLc lower-roman",
    "upperRoman": "I upperroman romanUc upper-roman",
    "decimalZero": "decimal-leading-zero",
}
NUMBERINGS = {
    other: name for name, others in _NUMBERINGS.items() for other in (name, *others.split())
}
"""The names of numbering styles in other formats than Word's, with their names in Word or CSS."""
_LARGEST_ROMAN = 4000
_LONGEST_NUMBER = 7
_RUSSIAN = "абвгдежзиклмнопрстуфхцчшщэюя"


def _group(text: str, atom: re.Pattern[str] = _ATOM) -> str:
    is_sign = not any(map(str.isalnum, text))
    return text if is_sign or atom.match(text) else f"({text})"


def write_fraction(parts: Sequence[str]) -> str:
    """Return a fraction of two parts on one line: `1/2`, `(a+b)/c`."""
    return f"{_group(parts[0])}/{_group(parts[1])}"


def _write_exponent(text: str) -> str:
    raised = _write_raised(text.strip()) if text.strip() else ""
    return f"^({raised})" if len(raised) > 1 and raised.isalpha() else raised


def _write_power(parts: Sequence[str]) -> str:
    return _group(parts[0]) + _write_exponent(parts[1])


def _write_index(parts: Sequence[str]) -> str:
    return f"{parts[0]}_{_group(parts[1])}" if parts[1] else parts[0]


def _write_both(parts: Sequence[str]) -> str:
    return _write_index(parts) + "".join(map(_write_exponent, parts[2:]))


def _write_root(parts: Sequence[str]) -> str:
    return "".join(map(_write_exponent, parts[1:])) + f"\u221a{_group(parts[0], _SINGLE)}"


def _write_function(parts: Sequence[str]) -> str:
    return parts[0] + (parts[1] if re.fullmatch(_BRACKETS, parts[1]) else f"({parts[1]})")


_WRITERS: dict[str, Callable[[Sequence[str]], str]] = {
    "mfrac": write_fraction,
    "msup": _write_power,
    "mover": _write_power,
    "msub": _write_index,
    "munder": _write_index,
    "msubsup": _write_both,
    "munderover": _write_both,
    "mroot": _write_root,
    "msqrt": _write_root,
    "mfenced": lambda parts: f"({', '.join(parts)})",
    "mtable": lambda parts: "; ".join(filter(None, parts)),
    "mtr": lambda parts: f"[{', '.join(parts)}]",
    "binomial": lambda parts: f"binom({', '.join(parts)})",
    "function": _write_function,
}


class Script(StrEnum):
    """The vertical position of text on its line; a note is the mark of a footnote."""

    LINE = "line"
    RAISED = "raised"
    LOWERED = "lowered"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Span:
    """Text of a uniform appearance; in code, all signs stay as they are."""

    text: str
    script: Script = Script.LINE
    is_struck: bool = False
    is_code: bool = False


_NOTHING = Span("")


@dataclass(frozen=True, slots=True)
class Formula:
    """An element of a formula, with its name in MathML; only a leaf has `text`."""

    name: str
    text: str = ""
    parts: tuple["Formula", ...] = ()


def join_spans(spans: Iterable[Span]) -> str:
    """Return the text of spans, with marks for superscript, subscript or strikethrough parts."""
    merged = [_NOTHING, *_merge(spans), _NOTHING]
    written = struck = ""
    for before, span, following in zip(merged, merged[1:], merged[2:], strict=False):
        text = _write_span(span, written + struck, before, following)
        if span.is_struck:
            struck += text
        else:
            written, struck = f"{written}{strike(struck)}{text}", ""
    return written + strike(struck)


def keep_lines(text: str) -> str:
    """Return text with single spaces, in the lines into which its author divided it.

    A tab between two digits becomes a semicolon, because a space would make them one number.
    """
    separated = _TAB_IN_NUMBERS.sub("; ", text)
    lines = (" ".join(line.split()) for line in separated.splitlines())
    return "\n".join(filter(None, lines))


def strike(text: str) -> str:
    """Return text with the marks of struck-out text in each line, inside of its outer spaces."""
    if "\n" in text:
        return "\n".join(map(strike, text.split("\n")))
    bare = text.strip()
    return text.replace(bare, f"~~{_OUTER_TILDE.sub(_TILDE, bare)}~~", 1) if bare else text


def keep_tildes(text: str) -> str:
    """Return text in which two tildes that a person sees are no mark of struck-out text."""
    return _TWO_TILDES.sub(r"\~\~", text) if "~~" in text else text


def write_formula(formula: Formula, depth: int = 0) -> str:
    """Return a formula on one line: `(a+b)/2`, `10^-3`, `x_i`, `√(2x)`, `^3√2`."""
    if depth > _DEEPEST_FORMULA:
        return ""
    parts = [write_formula(part, depth + 1) for part in formula.parts]
    if formula.name == "mspace":
        return " "
    if not formula.parts:
        text = " ".join(formula.text.split())
        return f" {text} " if formula.name == "mtext" and text != formula.text else text
    write = _WRITERS.get(formula.name)
    joined = _join_row(formula.parts, parts)
    if formula.name == "msqrt":
        return _write_root([joined])
    is_whole = len(parts) > 1 or formula.name == "mfenced"
    return joined if write is None or not is_whole else write(parts)


def read_number(stated: str | None, default: int) -> int:
    """Return the number in an attribute of a list, a cell or a counter, if it is one of at most six
    digits.
    """
    stated = (stated or "").strip()
    is_number = stated.removeprefix("-").isdecimal() and len(stated) < _LONGEST_NUMBER
    return int(stated) if is_number else default


def write_number(number: int, style: str) -> str:
    """Return a number in a numbering style, such as `lowerRoman`, `i` or `romanLc`."""
    style = NUMBERINGS.get(style, style)
    lower = style.replace("upper", "lower").replace("Upper", "Lower")
    if style == "none":
        return ""
    if lower == "lowerLetter" and number > 0:
        written = chr(ord("a") + (number - 1) % 26) * min((number - 1) // 26 + 1, 10)
    elif lower == "lower-alpha" and number > 0:
        written = _write_letters(number)
    elif lower == "lowerRoman" and 0 < number < _LARGEST_ROMAN:
        written = _write_roman(number)
    elif lower == "russianLower" and 0 < number <= len(_RUSSIAN):
        written = _RUSSIAN[number - 1]
    else:
        return f"{number:02d}" if style == "decimalZero" else str(number)
    return written if style == lower else written.upper()


def _merge(spans: Iterable[Span]) -> list[Span]:
    filled = (
        replace(span, script=Script.LINE) if not span.text.strip() else span
        for span in spans
        if span.text
    )
    groups = groupby(filled, key=lambda span: (span.script, span.is_struck, span.is_code))
    return [Span("".join(span.text for span in group), *key) for key, group in groups]


def _write_span(span: Span, written: str, before: Span, following: Span) -> str:
    bare = span.text.strip()
    if span.script is Script.RAISED:
        if following.text.lstrip().startswith(_SLASHES) and len(following.text.strip()) == 1:
            # The upper part of a fraction, whose lower part follows the slash.
            return f" {bare}" if written[-1:].isalnum() else bare
        raised = f"^({bare})" if following.text[:1].isdigit() else _write_raised(bare)
        return span.text.replace(bare, raised, 1)
    if span.script is Script.LOWERED:
        is_part = before.text.strip() in _SLASHES or not written[-1:].isdigit()
        return span.text if is_part or not bare[:1].isdigit() else f"_{bare}"
    if span.script is Script.NOTE:
        return span.text if bare.startswith(("[", "(")) else span.text.replace(bare, f"[{bare}]", 1)
    return _write_line(span, before, following)


def _write_line(span: Span, before: Span, following: Span) -> str:
    if span.is_code:
        return span.text
    text = keep_tildes(span.text)
    is_beside_struck = not span.is_struck and (before.is_struck or following.is_struck)
    return _OUTER_TILDE.sub(_TILDE, text) if is_beside_struck else text


def _join_row(formulas: Sequence[Formula], written: Sequence[str]) -> str:
    """Return the parts joined together; a space separates a fraction, a root, an exponent or an
    index from letters and digits beside it, which would belong to it or to its number.
    """
    joined, is_behind = "", False
    for formula, text in zip(formulas, written, strict=True):
        continues = text[:1] == "^" or (text[:1].isdigit() and joined[-1:].isdigit())
        is_before = continues and joined[-1:].isalnum() and _is_notation(formula, 0)
        is_beside = is_before or (is_behind and text[:1].isalnum())
        joined += f" {text}" if is_beside else text
        is_behind = _is_notation(formula, -1)
    return joined


def _is_notation(formula: Formula, at: int) -> bool:
    """Return whether a formula begins (0) or ends (-1) with more than letters and signs."""
    while formula.name not in _WRITERS and formula.parts:
        formula = formula.parts[at]
    return formula.name in _WRITERS


def _write_letters(number: int) -> str:
    """Return a number as letters: `z` is followed by `aa` and `ab`, whereas Word continues with
    `aa` and `bb`.
    """
    written = ""
    while number > 0:
        number, letter = divmod(number - 1, 26)
        written = chr(ord("a") + letter) + written
    return written


def _write_roman(number: int) -> str:
    written = ""
    for value, sign in _ROMAN:
        written += sign * (number // value)
        number %= value
    return written
