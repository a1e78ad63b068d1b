"""Follows code fences and reads the options of directives in the lines of a page."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape

_FENCE = re.compile(r"[ \t>]{0,40}(`{3,}|~{3,})")
_OPTION = re.compile(r"[ \t]*:([\w-]{1,40}):(?:[ \t]([^\n]*))?\Z")


class Fences:
    """The code fence that is open after the lines that were followed, empty if there is none."""

    def __init__(self) -> None:
        self.open = ""

    def follow(self, line: str) -> bool:
        """Return whether the next line is a part of fenced code or one of its fences."""
        mark = _FENCE.match(line)
        is_code = bool(self.open) or mark is not None
        if mark is not None and not (self.open and not mark[1].startswith(self.open)):
            self.open = "" if self.open else mark[1]
        return is_code


def mark_code(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is a part of fenced code or one of its fences."""
    fences = Fences()
    for line in lines:
        yield line, fences.follow(line)


def take_options(lines: Sequence[str]) -> tuple[dict[str, str], Sequence[str]]:
    """Return the options of a directive (`:name: value`), and the lines after them."""
    options: dict[str, str] = {}
    for at, line in enumerate(lines):
        match = _OPTION.match(line.rstrip("\r"))
        if match is None:
            return options, lines[at:]
        options[match[1]] = (match[2] or "").strip()
    return options, ()


def describe_code(language: str, options: Mapping[str, str]) -> str:
    """Return the info string of a code fence: the language and the caption of the code."""
    caption = options.get("caption", "").replace('"', "'")
    return f'{language} title="{caption}"' if caption else language


def name_object(argument: str, options: Mapping[str, str]) -> str:
    """Return what a directive describes, such as a setting, with its type and value."""
    named = ((name, options.get(name)) for name in ("type", "value", "default"))
    return ", ".join(filter(None, (argument, *(f"{name}: {text}" for name, text in named if text))))


def write_code(info: str, code: str) -> str:
    """Return code as an element for the HTML reader, with the info string of its fence."""
    return f'<pre data-info="{escape(info)}">\n{escape(code)}</pre>\n'
