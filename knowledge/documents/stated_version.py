"""Parses the versions that documents state, and removes them from names."""

import re
from datetime import date

LONGEST_VERSION = 40
Numbers = tuple[int, ...]
_NUMBER = re.compile(r"\d{1,9}")
_MARKS = "vVrR"
_LONGEST_NUMBER = 3
"""Maximum length; a longer number, such as `2023` or `1.10`, is unlikely to be part of a name."""
_BETWEEN = "-_. @"


def parse_stated_version(value: object) -> str:
    """Return a stated version on one line, or an empty string if the value is not a version."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | date):
        return ""
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST_VERSION and text.isprintable() else ""


def find_numbers(version: str) -> Numbers:
    """Return the numbers of a version, in order, without trailing zeros: `2.0` is `2`."""
    numbers = [int(number) for number in _NUMBER.findall(version[:LONGEST_VERSION])]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def remove_version(name: str, version: str) -> str:
    """Return the name of a page without its version: `docs/v2/limits` is `docs/limits`."""
    core = version.strip()
    core = core.lstrip(_MARKS) if find_numbers(core) else core
    at = name.find(core) if core else -1
    while at >= 0:
        end = at + len(core)
        begin = at - 1 if at and name[at - 1] in _MARKS else at
        if _is_alone(name, begin, end):
            name = name[:begin] + name[end:]
            at = name.find(core, begin)
        else:
            at = name.find(core, end)
    parts = (part.strip(_BETWEEN) for part in name.split("/"))
    return "/".join(part for part in parts if part)


def _is_alone(name: str, begin: int, end: int) -> bool:
    """Return whether a part of a name is a version; a single number counts only with a mark such as
    `v`, or alone.
    """
    before, after = name[begin - 1 : begin] if begin else "", name[end : end + 1]
    goes_on = after == "." and name[end + 1 : end + 2].isdigit()
    if before.isalnum() or after.isalnum() or goes_on:
        return False
    part = name[begin:end]
    is_whole = before in ("", "/") and after in ("", "/", ".")
    return is_whole or part[0] in _MARKS or len(part) > _LONGEST_NUMBER
