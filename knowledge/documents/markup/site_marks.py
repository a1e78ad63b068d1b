"""Takes the marks of site generators out of Markdown, line by line; code is not touched.

Known are containers (`:::tip Title`), places of generated documentation (`::: module`), tables of
contents, footnotes, abbreviations and shortcodes.
"""

import re
from collections.abc import Iterator

_FENCE = re.compile(r"[ \t>]{0,40}(`{3,}|~{3,})")
_CONTAINER = re.compile(
    r"[ \t]{0,40}:{3,}[ \t]{0,9}(?:\{?([\w:.+-]{1,60})\}?)?(?:[ \t]{0,9}\[([^\[\]]{1,200})\]|"
    r"[ \t]{1,9}(.{1,300}))?\Z"
)
_CONTENTS = re.compile(
    r"[ \t]{0,3}(?:\[TOC\]|\[\[_?TOC_?\]\]|\[\[toc\]\])[ \t]{0,9}\Z", re.IGNORECASE
)
_SHORTCODE = re.compile(r"\{\{[<%][^{}]{0,500}[>%]\}\}|\{%[^{}%]{0,500}%\}")
_FOOTNOTE = re.compile(r"[ \t]{0,3}\[\^[^\[\]]{1,60}\]:[ \t]{1,9}")
_ABBREVIATION = re.compile(r"[ \t]{0,3}\*\[([^\[\]]{1,60})\]:[ \t]{1,9}")
_NUMBER = re.compile(r"[\d ]{1,9}\Z")


def remove_site_marks(text: str) -> str:
    """Return Markdown without the marks; titles of containers stay as text."""
    return "\n".join(_clean_lines(text.split("\n")))


def _clean_lines(lines: list[str]) -> Iterator[str]:
    fence: str | None = None
    is_generated = False
    for line in lines:
        mark = _FENCE.match(line)
        if mark is not None:
            fence = _follow(fence, mark[1])
        if fence is not None or mark is not None:
            is_generated = False
            yield line
            continue
        if is_generated and line[:1] in (" ", "\t"):
            continue
        container = _CONTAINER.match(line.rstrip())
        name = container[1] or "" if container is not None else ""
        is_generated = "." in name and container is not None and not (container[2] or container[3])
        if container is not None:
            yield from _write_container(container)
        elif _CONTENTS.match(line) is None:
            yield _clean_line(line)


def _write_container(found: re.Match[str]) -> Iterator[str]:
    title = found[2] or found[3] or ""
    yield ""
    if title and _NUMBER.match(title) is None:
        yield title.strip()
        yield ""


def _clean_line(line: str) -> str:
    if "{" in line and "`" not in line:
        line = _SHORTCODE.sub("", line)
    return _ABBREVIATION.sub(r"\1: ", _FOOTNOTE.sub("", line, count=1), count=1)


def _follow(fence: str | None, mark: str) -> str | None:
    if fence is None:
        return mark
    return None if mark[0] == fence[0] and len(mark) >= len(fence) else fence
