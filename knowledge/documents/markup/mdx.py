"""Reads MDX: Markdown in which imports, exports and components are left out, never run."""

import re
from collections.abc import Iterator
from dataclasses import replace

from knowledge.documents.decoding import decode
from knowledge.documents.markup import markdown
from knowledge.documents.page import Page

_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_MODULE_LINE = re.compile(
    r"(?:import\s+(?:[\w*{]|['\"])|export\s+(?:default|const|let|function)\b)"
)
_COMPONENT_LINE = re.compile(r"\s*</?[A-Z][\w.]*(?:\s[^<>]{0,2000})?/?>\s*\Z")
_CAPTION = re.compile(r"\b(?:title|label|summary|caption)=(?:\"([^\"]{1,200})\"|'([^']{1,200})')")


def read(data: bytes, source: str) -> Page:
    """Return the page; captions of components (`title`, `label`) stay as text."""
    text, warnings = decode(data)
    page = markdown.read_text("\n".join(_markdown_lines(text)), source)
    return replace(page, warnings=(*warnings, *page.warnings))


def _markdown_lines(text: str) -> Iterator[str]:
    fence: str | None = None
    in_module = False
    for line in markdown.unfold_tabs(_without_comments(text).split("\n")):
        mark = _FENCE.match(line)
        if mark is not None:
            fence = markdown.follow_fence(fence, mark[1])
        if fence is not None or mark is not None:
            yield line
        elif in_module or _MODULE_LINE.match(line):
            in_module = bool(line.strip()) and not line.rstrip().endswith((";", "'", '"'))
        else:
            yield _without_components(line)


def _without_comments(text: str) -> str:
    """Search from mark to mark: a pattern would search to the end from every opening one."""
    kept: list[str] = []
    start = 0
    while (opening := text.find("{/*", start)) >= 0:
        closing = text.find("*/}", opening)
        if closing < 0:
            break
        kept.append(text[start:opening])
        start = closing + 3
    return "".join((*kept, text[start:]))


def _without_components(line: str) -> str:
    if _COMPONENT_LINE.match(line) is None:
        return line
    captions = " ".join(first or second for first, second in _CAPTION.findall(line))
    return f"\n{captions}\n" if captions else ""
