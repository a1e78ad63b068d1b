"""Replaces Sphinx's and MyST's `literalinclude` by the code that it refers to.

Known options are `language`, `lines`, `start-after`, `start-at`, `end-before` and `end-at`. The
others change how the code looks, and are left out.
"""

import re
from collections.abc import Callable, Iterator, Sequence

_FENCED = re.compile(
    r"([ \t]{0,80})(`{3,20}|~{3,20}|:{3,20})\{literalinclude\}[ \t]{1,20}(\S{1,500})[ \t]{0,80}\Z"
)
_DIRECTIVE = re.compile(
    r"([ \t]{0,80})\.\.[ \t]{1,20}literalinclude::[ \t]{1,20}(\S{1,500})[ \t]{0,80}\Z"
)
_OPTION = re.compile(r"[ \t]{0,80}:([a-z-]{1,30}):[ \t]{0,20}([^\n]{0,300})\Z")
_RANGE = re.compile(r"(\d{0,7})(-?)(\d{0,7})\Z")
_MOST_RANGES = 50

MARK = b"literalinclude"
Read = Callable[[str], str | None]
"""Returns the text of a file, or None and warns."""


def replace_literal_includes(lines: Sequence[str], read: Read) -> Iterator[str]:
    """Yield the lines of a page in Markdown or reStructuredText; code replaces the directives."""
    at = 0
    while at < len(lines):
        bare = lines[at].rstrip("\r")
        fenced, directive = _FENCED.match(bare), _DIRECTIVE.match(bare)
        if fenced is None and directive is None:
            yield lines[at]
            at += 1
            continue
        options, at = _read_options(lines, at + 1)
        if fenced is not None:
            at = _skip_fence(lines, at, fenced[2])
            yield from _write_fence(fenced[1], _find(fenced[3], options, read), options)
        elif directive is not None:
            yield from _write_directive(directive[1], _find(directive[2], options, read), options)


def _read_options(lines: Sequence[str], at: int) -> tuple[dict[str, str], int]:
    options: dict[str, str] = {}
    while at < len(lines):
        option = _OPTION.match(lines[at].rstrip("\r"))
        if option is None:
            break
        options[option[1]] = option[2].strip()
        at += 1
    return options, at


def _skip_fence(lines: Sequence[str], at: int, fence: str) -> int:
    """Return the line after the closing fence; a fence that is not closed ends with its options."""
    for place in range(at, min(at + 3, len(lines))):
        if lines[place].strip() == fence:
            return place + 1
    return at


def _find(name: str, options: dict[str, str], read: Read) -> list[str] | None:
    text = read(name.lstrip("/"))
    return None if text is None else _take_part(text.split("\n"), options)


def _take_part(lines: list[str], options: dict[str, str]) -> list[str]:
    if options.get("lines"):
        lines = _take_lines(lines, options["lines"])
    for option, behind in (("start-after", 1), ("start-at", 0)):
        if options.get(option):
            first = _find_line(lines, options[option])
            lines = lines[first + behind :] if first is not None else []
    for option, included in (("end-before", 0), ("end-at", 1)):
        last = _find_line(lines, options[option]) if options.get(option) else None
        lines = lines if last is None else lines[: last + included]
    return lines


def _take_lines(lines: list[str], ranges: str) -> list[str]:
    """Return the lines that `1,3,5-9,20-` names."""
    chosen: list[str] = []
    for part in ranges.split(",")[:_MOST_RANGES]:
        found = _RANGE.match(part.strip())
        if found is not None and (found[1] or found[3]):
            first = int(found[1] or 1)
            last = int(found[3] or len(lines)) if found[2] else first
            chosen += lines[max(first - 1, 0) : last]
    return chosen


def _find_line(lines: list[str], text: str) -> int | None:
    return next((place for place, line in enumerate(lines) if text in line), None)


def _write_fence(indent: str, code: list[str] | None, options: dict[str, str]) -> Iterator[str]:
    if code is None:
        return
    fence = "`" * (max((_count_ticks(line) for line in code), default=0) + 3)
    yield f"{indent}{fence}{options.get('language', '')}"
    yield from (indent + line for line in code)
    yield indent + fence


def _count_ticks(line: str) -> int:
    bare = line.lstrip()
    return len(bare) - len(bare.lstrip("`"))


def _write_directive(indent: str, code: list[str] | None, options: dict[str, str]) -> Iterator[str]:
    if code is None:
        return
    yield f"{indent}.. code-block:: {options.get('language', 'text')}"
    yield ""
    yield from (f"{indent}   {line}" for line in code)
    yield ""
