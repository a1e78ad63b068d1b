"""Formats numbers and texts as a spreadsheet does: number formats of ECMA-376 part 1, 18.8.31.

A format has up to four sections, for positive numbers, negative numbers, zero and text, or for
their stated conditions. Locale-dependent formats, such as the order of day and month in format 14,
are written as in ISO 8601.
"""

import locale
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import cache, lru_cache
from itertools import count, takewhile
from math import inf, isfinite, nan
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from string import hexdigits
from typing import TypeAlias

from knowledge.documents.notation import keep_lines

_BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 5: "#,##0", 6: "#,##0", 7: "#,##0.00",
    8: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 12: "# ?/?", 13: "# ??/??",
    14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd hh:mm",
    **dict.fromkeys((*range(27, 32), 36, *range(50, 55), 57, 58), "yyyy-mm-dd"),
    **dict.fromkeys((32, 33, 34, 35, 55, 56), "h:mm:ss"),
    37: "#,##0;(#,##0)", 38: "#,##0;(#,##0)", 39: "#,##0.00;(#,##0.00)", 40: "#,##0.00;(#,##0.00)",
    41: "#,##0", 42: "#,##0", 43: "#,##0.00", 44: "#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss",
    47: "mm:ss.0", 48: "##0.0E+0", 49: "@",
}  # fmt: skip
_LONGEST_FORMAT = 255
_LONGEST_NUMBER = 400
_LAST_DAY = 2_958_465
_MOST_DECIMALS = 30
_EXACT = Context(_LONGEST_NUMBER)
_TOKENS = re.compile(
    r'"(?P<quoted>[^"]{0,255})(?:"|\Z)|\\(?P<escaped>.)|_(?P<space>.)|\*(?P<fill>.)'
    r"|\[(?P<elapsed>h{1,9}|m{1,9}|s{1,9})\]"
    r"|\[(?P<operator><=|>=|<>|<|>|=)(?P<limit>-?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:E[+-]?\d{1,3})?)\]"
    r"|\[\$(?P<currency>[^\]-]{0,40})(?:-(?P<language>[^\]]{0,40}))?\]|(?P<colour>\[[^\]]{0,80}\]|b[12])"
    r"|(?P<general>General)|(?P<noon>AM/PM|A/P|上午/下午)|(?P<exponent>E[+-])"
    r"|(?P<date>y{1,9}|m{1,9}|d{1,9}|h{1,9}|s{1,9}(?:\.0{1,9})?|e{1,9}|b{1,4}|g{1,3}|a{3,4})"
    r"|(?P<digit>[0#?])|(?P<point>\.)|(?P<comma>,)|(?P<percent>%)|(?P<slash>/)|(?P<text>@)"
    r"|(?P<end>;)|(?P<other>.)",
    re.DOTALL | re.IGNORECASE,
)
_OPERATORS = {"<=": le, ">=": ge, "<>": ne, "<": lt, ">": gt, "=": eq}
_WHOLE = frozenset({"general", "text"})
_SIGNS = frozenset({"point", "percent", "slash"})
_WITHOUT_DIGIT = {"0": "0", "?": " "}
"""What a digit placeholder shows without a digit."""
_KINDS = {
    **dict.fromkeys(("quoted", "escaped", "space", "currency", "language", "other"), "literal"),
    **dict.fromkeys(("fill", "colour", "limit"), ""),
    "noon": "date",
}
"""The kinds of tokens, unless they are the names of groups; empty for what is not shown."""
_ERAS = (((2019, 5, 1), "R"), ((1989, 1, 8), "H"), ((1926, 12, 25), "S"), ((1912, 7, 30), "T"),
         ((1868, 1, 1), "M"))  # fmt: skip
_FIRST_DAY, _FIRST_DAY_1904 = datetime(1899, 12, 31), datetime(1904, 1, 1)  # noqa: DTZ001 - as sheets
_NAMES = Path(__file__).with_name("date_names.toml")
_Names: TypeAlias = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class _Token:
    """A part of a section; `kind` is one of those in `_TOKENS`, such as `digit`."""

    kind: str
    text: str

    @property
    def literal(self) -> str:
        """The literal text."""
        return self.text if self.kind == "literal" else ""


@dataclass(frozen=True, slots=True)
class _Section:
    """A section: its tokens, the operator and the limit of its condition, and the language of its
    month names.
    """

    tokens: tuple[_Token, ...]
    condition: tuple[str, float] | None
    language: str

    def has(self, kind: str) -> bool:
        """Return whether a section has a token of a kind."""
        return any(token.kind == kind for token in self.tokens)


@dataclass(frozen=True, slots=True)
class _Moment:
    """The day and the time of a number; `weekday` counts from Sunday."""

    year: int
    month: int
    day: int
    weekday: int
    seconds: Decimal
    total: Decimal


def find_format(number: int, custom: dict[int, str]) -> str:
    """Return the number format with a number; empty for the general format."""
    return custom.get(number, _BUILT_IN.get(number, ""))[:_LONGEST_FORMAT]


def format_number(value: str, code: str, *, since_1904: bool = False) -> str:
    """Return a number, or a date in ISO 8601, in its format; other text is returned unchanged."""
    try:
        number = float(value)
    except ValueError:
        number = _count_days(value, since_1904=since_1904) if code else nan
    if not isfinite(number):
        return value
    section, is_absolute = _choose(_parse(code), number)
    shown = abs(number) if is_absolute else number
    if section is None or section.has("general") or section.has("text"):
        return _write_general(shown, section)
    if section.has("date") or section.has("elapsed"):
        return _write_date(shown, section, since_1904=since_1904)
    return _write_number(shown, section)


def format_text(text: str, code: str) -> str:
    """Return text in a format: the fourth section, or one with `@`."""
    sections = _parse(code)
    section = sections[-1] if sections else None
    if section is None or not (len(sections) > 3 or section.has("text")):
        return text
    return _write_whole(text, section)


@lru_cache(maxsize=1000)
def _parse(code: str) -> tuple[_Section, ...]:
    """Return the sections of a format; none for the general one."""
    parts: list[list[re.Match[str]]] = [[]]
    for match in _TOKENS.finditer(code[:_LONGEST_FORMAT]):
        if match.lastgroup == "end":
            parts.append([])
        else:
            parts[-1].append(match)
    return tuple(_make_section(part) for part in parts[:4]) if code else ()


def _make_section(matches: Sequence[re.Match[str]]) -> _Section:
    tokens = [token for token in map(_make_token, matches) if token.kind]
    language = _find_tag(next((match["language"] for match in matches if match["language"]), ""))
    if any(token.kind in ("date", "elapsed") for token in tokens):
        # Digit placeholders are literals in a date.
        shown = {"slash": _find_separator(language)}
        tokens = [
            token
            if token.kind in ("date", "elapsed")
            else _Token("literal", shown.get(token.kind, token.text))
            for token in tokens
        ]
    stated = next(
        ((match["operator"], float(match["limit"])) for match in matches if match["operator"]), None
    )
    return _Section(tuple(tokens), stated, language)


def _make_token(match: re.Match[str]) -> _Token:
    kind = match.lastgroup or ""
    text = match["currency"] if kind == "language" else " " if kind == "space" else match[kind]
    return _Token(_KINDS.get(kind, kind), text)


def _choose(sections: Sequence[_Section], number: float) -> tuple[_Section | None, bool]:
    """Return the section for a number, and whether it shows the number without its sign.

    Without a condition, the first section is for positive numbers, the second of three for negative
    ones, and the last one for all others.
    """
    numeric = [section for section in sections[:3] if not section.has("text")] or sections[:1]
    has_conditions = any(section.condition for section in numeric)
    first = ">" if has_conditions or len(numeric) > 2 else ">="
    for at, section in enumerate(numeric):
        is_last = at == len(numeric) - 1
        operator, limit = (
            section.condition or ((first, 0), ("<", 0), (">", -inf))[2 if is_last else at]
        )
        if _OPERATORS[operator](number, limit):
            is_negative = section.condition and (
                operator == "<" if limit == 0 else limit < 0 and operator in ("<", "<=", "=")
            )
            return section, bool(is_negative) if has_conditions else at > 0
    return None, False


def _count_days(stated: str, *, since_1904: bool) -> float:
    """Return the number of a day and time in ISO 8601; NaN for other text and for earlier days."""
    try:
        moment = datetime.fromisoformat(stated).replace(tzinfo=None)
    except ValueError:
        return nan
    first = _FIRST_DAY_1904 if since_1904 else _FIRST_DAY
    days = (moment - first) / timedelta(days=1)
    # The first spreadsheets counted 29 February 1900.
    return nan if days < 0 else days + (days >= 60 and not since_1904)


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _write_general(number: float, section: _Section | None = None) -> str:
    if number.is_integer() and abs(number) < 1e15:
        written = str(int(number))
    else:
        written = format(number, ".15G")
        decimal = f"{number:.9f}".rstrip("0")
        # As decimal digits if they fit in a cell of usual width.
        written = decimal if "E-" in written and float(decimal) == number else written
    return written if section is None else _write_whole(written, section)


def _write_whole(text: str, section: _Section) -> str:
    """Return text in the places of a section for a whole text or a number."""
    parts = (text if token.kind in _WHOLE else token.literal for token in section.tokens)
    return keep_lines("".join(parts))


def _write_number(number: float, section: _Section) -> str:
    tokens = section.tokens
    if not section.has("digit"):
        sign = "-" if number < 0 and tokens else ""
        shown = (token.text if token.kind == "percent" else token.literal for token in tokens)
        return sign + _squeeze("".join(shown))
    value = abs(Decimal(repr(number)))
    value = value.scaleb(2 * sum(token.kind == "percent" for token in tokens))
    if section.has("slash") and not section.has("point"):
        written = _write_fraction(value, tokens)
    elif section.has("exponent"):
        written = _write_exponent(value, tokens)
    else:
        written = _fill(value, tokens)
    is_zero = not any(sign in "123456789" for sign in _digits_of(written, tokens))
    return ("-" if number < 0 and not is_zero else "") + _squeeze(written)


def _digits_of(written: str, tokens: Sequence[_Token]) -> str:
    """Return the text without the literals of the format."""
    for token in tokens:
        written = written.replace(token.literal, "", 1) if token.literal else written
    return written


def _fill(value: Decimal, tokens: Sequence[_Token]) -> str:
    """Return a number in the placeholders of its format."""
    point = next((at for at, token in enumerate(tokens) if token.kind == "point"), len(tokens))
    whole = [at for at, token in enumerate(tokens[:point]) if token.kind == "digit"]
    decimals = [at for at in range(point, len(tokens)) if tokens[at].kind == "digit"]
    last = (whole[-1] if whole else -1, decimals[-1] if decimals else point)
    commas = [at for at, token in enumerate(tokens) if token.kind == "comma"]
    scaling = [at for at in commas if (last[0] < at < point) or at > last[1]]
    is_grouped = any(whole and whole[0] < at < last[0] for at in commas)
    value = value.scaleb(-3 * len(scaling))
    exact = value.quantize(
        Decimal(1).scaleb(-min(len(decimals), _MOST_DECIMALS)), ROUND_HALF_UP, _EXACT
    )
    before, _, after = f"{exact:f}"[:_LONGEST_NUMBER].partition(".")
    before = before.lstrip("0").rjust(len(whole))
    # A placeholder that requires a digit determines trailing zeros.
    required = [number for number, at in enumerate(decimals, 1) if tokens[at].text == "0"]
    after = after.rstrip("0").ljust(max(required, default=0), "0").ljust(len(decimals))
    shown: dict[int, str] = {}
    if not whole and point < len(tokens):
        shown[point] = f"{before}."
    # The first placeholder takes all further digits.
    places = [*whole[:1] * (len(before) - len(whole)), *whole]
    digits = before if whole else ""
    for left, at, digit in zip(
        count(len(digits) - 1, -1), [*places, *decimals], digits + after, strict=False
    ):
        text = _WITHOUT_DIGIT.get(tokens[at].text, "") if digit == " " else digit
        comma = "," if is_grouped and text.strip() and left > 0 and left % 3 == 0 else ""
        shown[at] = f"{shown.get(at, '')}{text}{comma}"
    return "".join(
        shown.get(at, token.text if token.kind in _SIGNS else token.literal)
        for at, token in enumerate(tokens)
    )


def _write_exponent(value: Decimal, tokens: Sequence[_Token]) -> str:
    at = next(at for at, token in enumerate(tokens) if token.kind == "exponent")
    mantissa, power = tokens[:at], tokens[at + 1 :]
    point = next((at for at, token in enumerate(mantissa) if token.kind == "point"), len(mantissa))
    step = max(1, sum(token.kind == "digit" for token in mantissa[:point]))
    decimals = sum(token.kind == "digit" for token in mantissa[point:])
    exponent = value.adjusted() // step * step if value else 0
    rounded = value.scaleb(-exponent).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, _EXACT)
    if rounded >= Decimal(10) ** step:
        exponent += step
        rounded = value.scaleb(-exponent)
    sign = "-" if exponent < 0 else "+" if tokens[at].text.endswith("+") else ""
    return f"{_fill(rounded, mantissa)}E{sign}{_fill(Decimal(abs(exponent)), power)}"


def _write_fraction(value: Decimal, tokens: Sequence[_Token]) -> str:
    slash = next(at for at, token in enumerate(tokens) if token.kind == "slash")
    start = slash
    while start and tokens[start - 1].kind == "digit":
        start -= 1
    behind = tokens[slash + 1 :]
    below = [*takewhile(lambda one: one.kind == "digit" or one.literal.isdecimal(), behind)]
    fixed = re.sub("[#?]", "0", "".join(token.text for token in below))
    has_whole = any(token.kind == "digit" for token in tokens[:start])
    whole = int(value) if has_whole else 0
    rest = Fraction(value) - whole
    if fixed.strip("0"):
        denominator = int(fixed)
        numerator = int(rest * denominator + Fraction(1, 2))
        behind = behind[len(below) :]
    else:
        size = sum(token.kind == "digit" for token in behind)
        numerator, denominator = rest.limit_denominator(10 ** min(size, 9) - 1).as_integer_ratio()
    if has_whole and numerator >= denominator:
        whole, numerator = whole + 1, 0
    before = _fill(Decimal(whole), tokens[:start])
    tail = "".join(token.literal for token in behind)
    if has_whole and numerator == 0:
        # A result without any digit is shown as 0, even if its place is optional.
        return (before if any(map(str.isdigit, before)) else f"{before}0") + tail
    return f"{before}{numerator}/{denominator}{tail}"


def _write_date(number: float, section: _Section, *, since_1904: bool) -> str:
    tokens = [token for token in section.tokens if token.kind in ("date", "elapsed")]
    has_elapsed = any(token.kind == "elapsed" for token in tokens)
    if not (-_LAST_DAY if has_elapsed else 0) <= number <= _LAST_DAY:
        return _write_general(number)
    places = max((len(token.text.partition(".")[2]) for token in tokens), default=0)
    moment = _find_moment(abs(number), min(places, 9), since_1904=since_1904)
    is_japanese = any(token.text.lower().startswith("aaa") for token in tokens)
    names = _find_names(section.language or ("ja-JP" if is_japanese else ""))
    if not names and any(len(token.text) > 2 for token in tokens):
        return f"{moment.year}-{moment.month:02d}-{moment.day:02d}"
    has_day = any(token.text.lower() in ("d", "dd") for token in tokens)
    if "months_alone" in names and not has_day:
        names = {**names, "months": names["months_alone"]}
    is_half_day = any("/" in token.text for token in tokens)
    minutes = _find_minutes(section.tokens)
    parts = (
        _write_part(token, moment, names, is_half_day, at in minutes)
        for at, token in enumerate(section.tokens)
    )
    return ("-" if number < 0 else "") + _squeeze("".join(parts))


def _find_moment(number: float, places: int, *, since_1904: bool) -> _Moment:
    seconds = Decimal(repr(number)) * 86_400
    total = seconds.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP, _EXACT)
    days, rest = divmod(total, 86_400)
    serial = int(days) + (1462 if since_1904 else 0)
    weekday = (serial - 1) % 7
    first = date(1899, 12, 31) if serial < 60 else date(1899, 12, 30)
    day = first + timedelta(days=min(serial, _LAST_DAY))
    # Days that never were, which the first spreadsheets counted.
    never = {0: (1900, 1, 0), 60: (1900, 2, 29)}
    year_month_day = never.get(serial, (day.year, day.month, day.day))
    return _Moment(*year_month_day, weekday, rest, total)


def _find_minutes(tokens: Sequence[_Token]) -> frozenset[int]:
    """Return the tokens `m` that mean minutes: after hours, or before seconds."""
    signs = [
        (at, token.text[0].lower())
        for at, token in enumerate(tokens)
        if token.kind in ("date", "elapsed") and "/" not in token.text
    ]
    letters = "".join(sign for _, sign in signs)
    return frozenset(
        at
        for number, (at, sign) in enumerate(signs)
        if sign == "m" and len(tokens[at].text) < 3
        if letters[:number].endswith("h") or letters[number + 1 :].startswith("s")
    )


def _write_part(
    token: _Token, moment: _Moment, names: _Names, is_half_day: bool, is_minutes: bool
) -> str:
    text = token.text.lower()
    sign, size = text[:1], len(text.partition(".")[0])
    if token.kind != "literal" and sign in "ge" and "eras" in names:
        return _write_era(sign, size, moment, names["eras"])
    if token.kind == "literal" or sign == "g":
        return token.literal
    if token.kind == "elapsed":
        return f"{int(moment.total // {'h': 3600, 'm': 60, 's': 1}[sign]):0{size}d}"
    if "/" in text:
        return token.text.split("/")[moment.seconds >= 43_200]
    if sign == "s":
        whole, _, decimals = f"{moment.seconds % 60:f}".partition(".")
        places = len(text) - size - 1
        shown = whole.zfill(min(size, 2))
        return f"{shown}.{decimals[:places].ljust(places, '0')}" if places > 0 else shown
    if sign in "yeb":
        year = moment.year + (543 if sign == "b" else 0)
        return str(year) if size > 2 or sign == "e" else f"{year % 100:02d}"
    hour = int(moment.seconds // 3600)
    number = {
        "h": (hour % 12 or 12) if is_half_day else hour,
        "m": int(moment.seconds // 60 % 60) if is_minutes else moment.month,
        "d": moment.day,
        "a": 0,
    }[sign]
    if size < 3 or sign == "h" or is_minutes:
        return f"{number:0{min(size, 2)}d}"
    return _write_name(sign, size, moment, names)


def _write_name(sign: str, size: int, moment: _Moment, names: _Names) -> str:
    kind, place = ("months", moment.month - 1) if sign == "m" else ("days", moment.weekday)
    if size == 3:
        return names[f"short_{kind}"][place]
    return names[kind][place][: 1 if sign == "m" and size == 5 else None]


def _write_era(sign: str, size: int, moment: _Moment, names: Sequence[str]) -> str:
    """Return the Japanese era of a day (`g`), or the year in it (`e`)."""
    day = (moment.year, moment.month, moment.day)
    (begun, letter), name = next(
        each for each in zip(_ERAS, names, strict=True) if each[0][0] <= day
    )
    if sign == "g":
        return (letter, name[0], name)[min(size, 3) - 1]
    return f"{moment.year - begun[0] + 1:0{size}d}"


@cache
def _read_names() -> dict[str, dict[str, list[str]]]:
    names = tomllib.loads(_NAMES.read_text(encoding="utf-8"))
    return {
        code: {kind: own.split() for kind, own in by_kind.items()}
        for code, by_kind in names.items()
    }


def _find_tag(stated: str) -> str:
    """Return a tag (`de-DE`), or that of a Windows locale number, whose last four digits are the
    language, in lower case; empty if none is stated.
    """
    number = stated.partition(",")[0][-4:]
    if number and all(digit in hexdigits for digit in number):
        stated = locale.windows_locale.get(int(number, 16), "en")
    return stated.lower().replace("_", "-")


def _find_names(tag: str) -> _Names:
    """Return the names of a language by kind, English by default; empty if they are not known."""
    return _read_names().get(tag.partition("-")[0] or "en", {})


def _find_separator(tag: str) -> str:
    """Return what a language writes between the numbers of a date."""
    by_sign = _read_names()["separators"]
    names = (tag, tag.partition("-")[0])
    return next((sign for name in names for sign in by_sign if name in by_sign[sign]), "/")
