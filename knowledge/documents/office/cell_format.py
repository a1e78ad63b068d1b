"""Writes the value of a cell as its sheet shows it: dates, percentages, currencies, thousands."""

import re
from datetime import datetime, timedelta

_BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00",
    14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm", 17: "mmm-yy", 18: "h:mm", 19: "h:mm:ss",
    20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm", 37: "#,##0", 38: "#,##0", 39: "#,##0.00",
    40: "#,##0.00", 45: "mm:ss", 46: "h:mm:ss", 47: "mm:ss",
}  # fmt: skip
_LITERALS = re.compile(
    r'"([^"]{0,200})"|\\(.)|_.|\*.|\[\$([^\]\-]{0,40})(?:-[^\]]{0,40})?\]|\[[^\]]{0,80}\]',
    re.DOTALL,
)
_NUMBER = re.compile(r"[#0?][#0?,.]*")
_DATE_SIGNS = re.compile(r"[ymdhs]", re.IGNORECASE)
_DAY_SIGNS = re.compile(r"[yd]", re.IGNORECASE)
_CLOCK_SIGNS = re.compile(r"[hs]", re.IGNORECASE)
_LONGEST_FORMAT = 200
_LAST_DAY = 2_958_465
_HELD = "\x1a"


def find_format(number: int, custom: dict[int, str]) -> str:
    """Return the format of a style by its number; empty for a general one."""
    return custom.get(number, _BUILT_IN.get(number, ""))[:_LONGEST_FORMAT]


def format_number(value: str, code: str, *, since_1904: bool = False) -> str:
    """Return a number as its format shows it; other text stays as it is."""
    try:
        number = float(value)
    except ValueError:
        return value
    literals: list[str] = []

    def hold(found: re.Match[str]) -> str:
        shown = next((part for part in found.groups() if part is not None), "")
        literals.append(shown)
        return _HELD

    section = _LITERALS.sub(hold, code).split(";")[0]
    if not section or section.lower().startswith("general") or section == "@":
        return _write_general(number)
    if _DATE_SIGNS.search(section) and "#" not in section and "%" not in section:
        return _write_date(number, section, since_1904=since_1904)
    return _write_number(number, section, literals)


def _write_general(number: float) -> str:
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return format(number, ".15g")


def _write_number(number: float, section: str, literals: list[str]) -> str:
    found = _NUMBER.search(section)
    if found is None or "e+" in section.lower():
        return _write_general(number)
    digits = found[0].rstrip(",")
    if "%" in section:
        number *= 100
    decimals = digits.partition(".")[2]
    separator = "," if "," in digits else ""
    written = format(number, f"{separator}.{min(len(decimals), 20)}f")
    for _ in range(decimals.count("#")):
        written = written[:-1] if "." in written and written.endswith("0") else written
    written = written.rstrip(".") if "." in written and written.endswith(".") else written
    before, after = section[: found.start()], section[found.end() :]
    parts = iter(literals)
    prefix = "".join(next(parts, "") if sign == _HELD else sign for sign in before)
    suffix = "".join(next(parts, "") if sign == _HELD else sign for sign in after)
    return f"{prefix}{written}{suffix}".strip()


def _write_date(number: float, section: str, *, since_1904: bool) -> str:
    if not 0 <= number <= _LAST_DAY:
        return _write_general(number)
    # The first days of 1900 are counted with a 29 February that never was.
    first = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 30)  # noqa: DTZ001 - no zone
    moment = first + timedelta(seconds=round(number * 86_400))
    has_day = _DAY_SIGNS.search(section) is not None or "mmm" in section.lower()
    has_clock = _CLOCK_SIGNS.search(section) is not None
    if has_day and has_clock:
        return moment.strftime("%Y-%m-%d %H:%M")
    return moment.strftime("%Y-%m-%d") if has_day else moment.strftime("%H:%M:%S")
