"""Takes the markup out of a line of Markdown, and leaves what a reader sees.

Every pattern is bounded, so that a line of ten million characters costs linear time.
"""

import html
import re

_IMAGE = re.compile(r"!\[([^\[\]]{0,500})\](?:\([^()\n]{0,2000}\)|\[[^\[\]]{0,200}\])")
_LINK = re.compile(
    r"\[([^\[\]]{1,500})\](?:\((?:[^()\n]|\([^()\n]{0,200}\)){0,2000}\)|\[[^\[\]]{0,200}\])"
)
_WEB_LINK = re.compile(
    r"(?<!!)\[([^\[\]]{1,200})\]\(<?(https?://[^\s<>()]{1,500}(?:\([^\s<>()]{0,100}\))?[^\s<>()]{0,200})"
)
_AUTOLINK = re.compile(r"<((?:https?|mailto):[^<>\s]{1,2000})>")
_TAG = re.compile(r"</?[A-Za-z][\w.:-]{0,60}(?:\s[^<>]{0,2000})?/?>|<!--[^<>]{0,2000}-->")
_STRONG = re.compile(r"(\*\*|__)(?=\S)([^*_\n]{1,2000})(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,2000})(?<=[^\s*])\*(?![\w*])")
_UNDERSCORED = re.compile(r"(?<!\w)_(?=[^\s_])([^_\n]{1,2000})(?<=[^\s_])_(?!\w)")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|<>~-])")
_TICKS = re.compile(r"`+")
_FENCED_NOTE = re.compile(r"^[^\S\n]*(?:/{3,4}|:{3,4}|!{3}|\?{3}\+?)[ \t]*", re.MULTILINE)
# Roles and targets as documentation generators write them in Markdown; a code span follows a role.
_CODE_MARK = "\x1a"
_ROLE = re.compile(rf"\{{([A-Za-z][\w:.-]{{0,40}})\}}(?={_CODE_MARK}(\d{{1,9}}){_CODE_MARK})")
_MARKED_CODE = re.compile(rf"{_CODE_MARK}(\d{{1,9}}){_CODE_MARK}")
_REFERENCE_ROLES = frozenset({"ref", "doc", "term", "numref", "any"})
_REFERENCE_TARGET = re.compile(r"\s{0,3}<[^<>\n]{1,300}>\Z")
_TARGET = re.compile(r"^\([\w.:-]{1,100}\)=[ \t]*$", re.MULTILINE)
_ATTRIBUTE = r"(?:[#.][\w:.-]{1,60}|[\w-]{1,30}=(?:\"[^\"\n]{0,100}\"|[\w%.-]{1,60}))"
_ATTRIBUTES = re.compile(
    rf"[ \t]?\{{:?[ \t]{{0,3}}{_ATTRIBUTE}(?:[ \t]{{1,3}}{_ATTRIBUTE}){{0,9}}[ \t]{{0,3}}\}}"
)
_ICON = re.compile(r":(?:material|octicons|fontawesome|simple)-[\w-]{1,60}:[ \t]?")
_FOOTNOTE_MARK = re.compile(r"\[\^[^\[\]\s]{1,60}\]")
_SPACE = re.compile(r"[ \t]{2,}")


def plain(text: str) -> str:
    """Return the text without markup; code spans keep their backticks and every character."""
    marked, spans = _mark_code(text.replace(_CODE_MARK, ""))
    marked = _TARGET.sub("", _FENCED_NOTE.sub("", marked))
    for role in _ROLE.finditer(marked):
        if role[1] in _REFERENCE_ROLES:
            number = int(role[2])
            spans[number] = _REFERENCE_TARGET.sub("", spans[number].strip("`"))
    marked = _FOOTNOTE_MARK.sub("", _ICON.sub("", _ROLE.sub("", marked)))
    marked = _ATTRIBUTES.sub("", marked)
    marked = _TAG.sub(" ", _AUTOLINK.sub(r"\1", _IMAGE.sub(r"\1", marked)))
    marked = _SPACE.sub(" ", _without_marks(_LINK.sub(r"\1", marked))).strip()
    return _MARKED_CODE.sub(lambda found: spans[int(found[1])], marked)


def find_web_links(text: str) -> list[tuple[str, str]]:
    """Return the label of each link to the web, without markup, and its address."""
    marked, _ = _mark_code(text.replace(_CODE_MARK, ""))
    found = ((one_line(link[1]), link[2]) for link in _WEB_LINK.finditer(marked))
    return [(label, address) for label, address in found if label and label != address]


def _mark_code(text: str) -> tuple[str, list[str]]:
    """Return the text with a mark for each code span, and the spans with their backticks.

    A span ends at the next run of equally many backticks (CommonMark 0.31, 6.1).
    """
    runs = list(_TICKS.finditer(text))
    next_equal: dict[int, int] = {}
    ends: list[int | None] = [None] * len(runs)
    for index in range(len(runs) - 1, -1, -1):
        length = len(runs[index][0])
        ends[index] = next_equal.get(length)
        next_equal[length] = index
    parts: list[str] = []
    spans: list[str] = []
    at = index = 0
    while index < len(runs):
        end = ends[index]
        if end is None or _is_escaped(text, runs[index].start()):
            index += 1
            continue
        start, stop = runs[index].start(), runs[end].end()
        parts += [text[at:start], f"{_CODE_MARK}{len(spans)}{_CODE_MARK}"]
        spans.append(text[start:stop].replace("\n", " "))
        at, index = stop, end + 1
    return "".join([*parts, text[at:]]), spans


def _is_escaped(text: str, at: int) -> bool:
    first = at
    while first and text[first - 1] == "\\":
        first -= 1
    return (at - first) % 2 == 1


def one_line(text: str) -> str:
    """Return the plain text with soft line breaks joined."""
    return " ".join(line.strip() for line in plain(text).split("\n") if line.strip())


def _without_marks(text: str) -> str:
    for pattern, replacement in (
        (_STRONG, r"\2"),
        (_EMPHASIS, r"\1"),
        (_UNDERSCORED, r"\1"),
        (_ESCAPE, r"\1"),
    ):
        text = pattern.sub(replacement, text)
    return html.unescape(text)
