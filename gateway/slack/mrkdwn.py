"""Renders marked text as Slack's mrkdwn, and parses mrkdwn that people wrote.

An answer cannot mention people or channels: `&`, `<` and `>` are always escaped, and only web
addresses become links.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from gateway.chat.formatting.marked_text import Mark, Marked

_SIGNS = {"bold": "*", "italic": "_", "strike": "~", "code": "`", "pre": "```"}
_REFERENCE = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")
_MENTION = re.compile(r"<@([A-Z0-9]+)(?:\|[^<>]*)?>")
_SPACES = re.compile(r"[ \t]{2,}")
_DEEPEST = 12
"""The maximum nesting of marks; deeper marks are not rendered."""
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def mrkdwn(piece: Marked) -> str:
    """Return a marked text as mrkdwn."""
    marks = list(_shallow([mark for mark in piece.marks if _is_shown(mark)]))
    written, _ = _write_stretch(piece, (0, len(piece.text)), marks, 0)
    return written


def escape(text: str) -> str:
    """Return a text escaped so that Slack shows it unchanged."""
    return text.translate(_ESCAPES)


def mentions(text: str, user_id: str) -> bool:
    """Return whether a message mentions this user."""
    return user_id in _MENTION.findall(text)


def speaks_to_another(text: str, user_id: str) -> bool:
    """Return whether a message begins with a mention of another user and lacks one of this user."""
    return bool(_MENTION.match(text.lstrip())) and not mentions(text, user_id)


def parse_text(text: str, *, without: str) -> str:
    """Return a message as plain text, without mentions of the user `without`."""
    own = re.compile(rf"<@{re.escape(without)}(?:\|[^<>]*)?>[,:]?")
    plain = _REFERENCE.sub(_name_target, own.sub("", text))
    unescaped = plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return _SPACES.sub(" ", unescaped).strip()


def _shallow(marks: Sequence[Mark]) -> Iterator[Mark]:
    ends: list[int] = []
    for mark in marks:
        while ends and ends[-1] <= mark.start:
            ends.pop()
        if len(ends) < _DEEPEST:
            ends.append(mark.end)
            yield mark


def _write_stretch(
    piece: Marked, stretch: tuple[int, int], marks: Sequence[Mark], at: int
) -> tuple[str, int]:
    """Render a range: text without marks unchanged, and each outermost mark around its text.

    Returns the result and the index in `marks` of the first mark behind the range; `at` is the
    index of the first mark in it.
    """
    place, end = stretch
    written: list[str] = []
    while at < len(marks) and marks[at].start < end:
        outer = marks[at]
        written.append(escape(piece.text[place : outer.start]))
        inner, at = _write_stretch(piece, (outer.start, outer.end), marks, at + 1)
        if outer.kind in {"code", "pre"}:
            inner = escape(piece.text[outer.start : outer.end])
        written.append(_around(outer)(inner))
        place = outer.end
    return "".join((*written, escape(piece.text[place:end]))), at


def _around(mark: Mark) -> Callable[[str], str]:
    match mark.kind:
        case "link":
            address = mark.detail.translate({ord("|"): "%7C", ord("<"): "%3C", ord(">"): "%3E"})
            return lambda text: f"<{address.replace('&', '&amp;')}|{text.replace(chr(10), ' ')}>"
        case "quote":
            return lambda text: "\n".join(f"> {line}" for line in text.split("\n"))
        case "pre":
            return lambda text: f"```\n{text.replace('```', '` ` `')}\n```"
        case kind:
            return lambda text: _wrap_lines(text, _SIGNS[kind])


def _wrap_lines(text: str, sign: str) -> str:
    """Put signs around the text of each line; Slack requires that they touch the text."""
    lines = []
    for line in text.split("\n"):
        words = line.strip()
        before, after = line[: len(line) - len(line.lstrip())], line[len(line.rstrip()) :]
        lines.append(f"{before}{sign}{words}{sign}{after}" if words and line.strip() else line)
    return "\n".join(lines)


def _is_shown(mark: Mark) -> bool:
    if mark.kind == "link":
        return mark.detail.startswith(("https://", "http://"))
    return mark.end > mark.start


def _name_target(found: re.Match[str]) -> str:
    target, label = found[1], found[2]
    if target.startswith("!"):
        return label or ""
    if label:
        return f"#{label}" if target.startswith("#") else label
    return target.removeprefix("mailto:")
