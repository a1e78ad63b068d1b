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
    """Return the name of a page without its version: `docs/v2/limits` is `docs/limits`.

    A short number counts as the version only behind a mark such as `v`, or as a whole part.
    """
    core = version.strip()
    core = core.lstrip(_MARKS) if find_numbers(core) else core
    if core:
        stated = re.escape(core)
        forms = [rf"(?<![^\W_])[{_MARKS}]{stated}", rf"(?<![^/]){stated}(?![^/.])"]
        if len(core) > _LONGEST_NUMBER:
            forms.append(rf"(?<![^\W_]){stated}")
        name = re.sub(rf"(?:{'|'.join(forms)})(?![^\W_]|\.\d)", "", name)
    parts = (part.strip(_BETWEEN) for part in name.split("/"))
    return "/".join(part for part in parts if part)
