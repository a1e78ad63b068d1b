"""Reads reStructuredText by docutils, which comes with the extra `restructuredtext`.

Nothing is included, no raw output passes and no configuration file is read. Roles and directives
that docutils does not know (those of documentation generators) are read as the text they hold.
"""

import io
import re
from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING

from knowledge.documents.decoding import decode
from knowledge.documents.errors import MissingExtraError, WrongFormatError
from knowledge.documents.page import Page, first_heading

if TYPE_CHECKING:
    from docutils import nodes

_KNOWN_ROLES = (
    "math|sub|sup|subscript|superscript|strong|emphasis|title|title-reference|code|literal"
)
_ROLE = re.compile(
    rf":(?!(?:{_KNOWN_ROLES}):)([A-Za-z][\w:+.-]{{0,60}}):`([^`\n]{{1,500}})`", re.ASCII
)
_RAW_ROLE = re.compile(
    r"^\.\.[ \t]{1,40}role::[ \t]{1,40}([\w:+.-]{1,60})\([ \t]{0,40}raw", re.MULTILINE
)
_TARGET = re.compile(r"(?<!\s)\s*+<[^<>]*>\Z")
_QUOTED_ROLES = frozenset({"ref", "doc", "term", "guilabel", "menuselection", "abbr", "numref"})
_LONGEST_LINE = 8000
_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "halt_level": 5,
    "report_level": 5,
    "syntax_highlight": "none",
    "line_length_limit": 2 * _LONGEST_LINE,
}


def read(data: bytes, source: str) -> Page:
    """Return the page; raise `MissingExtraError` when docutils is not installed."""
    try:
        from docutils.core import publish_doctree
    except ImportError as error:
        raise MissingExtraError(
            "reStructuredText needs the extra 'restructuredtext': install refdesk[restructuredtext]"
        ) from error
    from knowledge.documents.markup.restructuredtext_blocks import blocks_of, find_web_links

    def parse(markup: str) -> "nodes.document":
        return publish_doctree(
            markup, settings_overrides={**_SETTINGS, "warning_stream": io.StringIO()}
        )

    text, warnings = decode(data)
    try:
        tree = parse(_prepare(text))
        blocks = tuple(blocks_of(tree, parse))
    except RecursionError as error:
        raise WrongFormatError("expected less nesting than found") from error
    return Page(
        source=source,
        title=first_heading(blocks),
        blocks=blocks,
        links=tuple(find_web_links(tree)),
        warnings=warnings,
    )


def _prepare(text: str) -> str:
    raw = {"raw", "raw-html", *_RAW_ROLE.findall(text)}
    lines = (part for line in text.split("\n") for part in _split_line(line))
    return _ROLE.sub(partial(_without_role, raw=raw), "\n".join(lines))


def _without_role(found: re.Match[str], raw: Collection[str]) -> str:
    """Return what a role shows; raw output for another program is not text."""
    role, text = found[1].rpartition(":")[2], found[2]
    if found[1] in raw:
        return ""
    shown = _TARGET.sub("", text).lstrip("~!") or text
    return shown if role in _QUOTED_ROLES else f"``{shown}``"


def _split_line(line: str) -> Iterator[str]:
    """Return the parts of a line; docutils refuses very long ones."""
    start = 0
    while len(line) - start > _LONGEST_LINE:
        space = line.rfind(" ", start + 1, start + _LONGEST_LINE)
        end = space if space > start else start + _LONGEST_LINE
        yield line[start:end].strip() if start else line[:end]
        start = end
    yield line[start:].strip() if start else line
