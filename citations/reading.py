"""Parses the parts of Markdown dialects that may contain links.

Code is replaced with placeholders (`NUL number NUL`), so that it is not parsed as anything else.
All functions run in linear time.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

Link = Callable[[str, str, bool, int], str]
"""Returns the replacement for a link, given its label, its target, whether it is an image, and its
depth.
"""
_ACTIVE_WORDS = (
    "a applet area audio base body button embed form frame frameset head html iframe image img "
    "input link math meta noscript object portal script select source style svg template "
    "textarea title track video"
)
ACTIVE = frozenset(_ACTIVE_WORDS.split())
"""HTML elements that load, link to, or execute something, even without attributes."""
LONGEST_TARGET = 4_000
MOST_PARENTHESES = 32
"""The maximum nesting depth of parentheses in a target, as in CommonMark."""
DEEPEST = 8
_TICKS = re.compile(r"`+")
_INFO = re.compile(r"[A-Za-z0-9+#_-]{1,24}")
_FENCE = re.compile(r"(`{3,}|~{3,})([^\n]*)")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_UNMARKED = re.compile(r"[A-Za-z0-9:/.@?%&=]")
_DECODED = re.compile(
    rf"(?P<kept>\\\\|\\{_ENTITY.pattern})|{_ENTITY.pattern}|\\(?P<sign>[:/.@?%&=])"
)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_TAG = re.compile(r"<([^<>]*)>")
_NAME = re.compile(r"/?([A-Za-z][A-Za-z0-9-]*)(?P<attributes>[\s/]*[^\s/])?")
_AUTOLINK = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,31}:\S*|[^\s@]+@\S+")
_BEFORE = " \t>*+-0123456789.)"
_DEFINITION = re.compile(r"\[([^\[\]\n]{1,200})\]:[ \t]*([^\n]*)")
_TITLE = re.compile(r"[ \t](?:\"[^\"]*\"|'[^']*'|\([^()]*\))[ \t]*\Z")
_MARK = re.compile(r"\0(\d{1,9})\0")


def fences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the line numbers (start, end exclusive) of each code fence."""
    if "```" in text or "~~~" in text:
        for token in _blocks().parse(text):
            if token.type == "fence" and token.map is not None:
                yield token.map[0], token.map[1]


def opening(line: str) -> str:
    """Return the first line of a fence, with at most a language name after the backticks."""

    def name_fence(mark: re.Match[str]) -> str:
        words = mark[2].split()
        return mark[1] + (words[0] if words and _INFO.fullmatch(words[0]) else "")

    return _FENCE.sub(name_fence, line, count=1)


def spans_aside(prose: str, aside: list[str], treated: Callable[[str], str]) -> str:
    """Replace code spans with placeholders, and append each span, passed through `treated`, to
    `aside`. A backtick after a backslash does not begin code.
    """
    parts: list[str] = []
    runs = list(_TICKS.finditer(prose))
    closing = _closing(runs)
    index = 0
    for number, run in enumerate(runs):
        end = closing[number]
        if run.start() < index or end is None or _is_escaped(prose, index, run.start()):
            continue
        parts += [prose[index : run.start()], f"\0{len(aside)}\0"]
        code = prose[run.end() : runs[end].start()]
        aside.append(f"{run[0]}{treated(code)}{run[0]}")
        index = runs[end].end()
    return "".join((*parts, prose[index:]))


def restore(text: str, aside: Sequence[str]) -> str:
    """Replace placeholders with their contents, which may contain placeholders themselves."""
    while _MARK.search(text):
        text = _MARK.sub(lambda mark: aside[int(mark[1])], text)
    return text


def unescape(prose: str) -> str:
    """Decode entities and escapes of letters and of characters that occur in addresses."""
    return _DECODED.sub(_decode, prose)


def definitions(paragraph: str, targets: dict[str, str]) -> str:
    """Remove link definitions (`[x]: address`), and add their URLs to `targets`."""
    lines = paragraph.split("\n")
    kept: list[str] = []
    at = 0
    while at < len(lines):
        match = _DEFINITION.match(lines[at].lstrip(_BEFORE))
        rest = match[2].strip() if match else ""
        alone = bool(match) and not rest and at + 1 < len(lines)
        target = _target(lines[at + 1].strip() if alone else rest)
        if match is None or target is None:
            kept.append(lines[at])
        else:
            targets.setdefault(_normalise_label(match[1]), target)
            at += alone
        at += 1
    return "\n".join(kept)


def tags(prose: str, left_out: Callable[[str], None]) -> str:
    """Remove HTML tags that link to, load, or execute something. A plain `<name>` is kept, and any
    other tag is escaped, so that it is text.
    """

    def read(tag: re.Match[str]) -> str:
        inner = tag[1].strip()
        before = prose[max(0, tag.start() - 2) : tag.start()]
        is_text = not inner or tag[1][0].isspace()
        if is_text or before == "](" or before.endswith("\\"):
            return tag[0]
        if _AUTOLINK.fullmatch(html.unescape(inner)):
            return html.unescape(inner)
        name = _NAME.match(inner)
        if name is not None and name[1].lower() in ACTIVE:
            left_out(tag[0])
            return ""
        is_markup = name["attributes"] if name else inner[0] in "!?"
        return f"\\{tag[0]}" if is_markup else tag[0]

    for _ in range(DEEPEST):  # a removed tag may have been inside an attribute of another one
        last, prose = prose, _TAG.sub(read, prose)
        if prose == last:
            break
    return prose


def brackets(prose: str, targets: Mapping[str, str], link: Link, depth: int = 0) -> str:
    """Replace each link and image with the result of `link`, from the inside out."""
    ends = _match_brackets(prose)
    parts: list[str] = []
    index = copied = 0
    while (index := prose.find("[", index)) >= 0:
        close = ends.get(index)
        link_end = None if close is None else _after(prose, index, close, targets)
        if close is None or link_end is None:
            index += 1
            continue
        target, end = link_end
        is_image = index > copied and prose[index - 1] == "!"
        label = prose[index + 1 : close]
        if depth < DEEPEST:
            label = brackets(label, targets, link, depth + 1)
        parts += [prose[copied : index - is_image], link(label, target, is_image, depth)]
        index = copied = end
    return "".join((*parts, prose[copied:]))


def _is_escaped(prose: str, first: int, index: int) -> bool:
    """Return whether there is an odd number of backslashes between `first` and `index`, directly
    before `index`.
    """
    start = index
    while start > first and prose[start - 1] == "\\":
        start -= 1
    return (index - start) % 2 == 1


@cache
def _blocks() -> "MarkdownIt":
    """Return the block parser, which is loaded on first use."""
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).disable(["inline", "text_join"])


def _closing(runs: Sequence[re.Match[str]]) -> list[int | None]:
    """Return for each run of backticks the index of the next run with the same length, or None."""
    after: dict[int, int] = {}
    closing: list[int | None] = [None] * len(runs)
    for number in range(len(runs) - 1, -1, -1):
        length = len(runs[number][0])
        closing[number] = after.get(length)
        after[length] = number
    return closing


def _decode(found: re.Match[str]) -> str:
    if found["kept"] or found["sign"]:
        return found["kept"] or found["sign"]
    sign = html.unescape(found[0])
    return sign if _UNMARKED.fullmatch(sign) else found[0]


def _normalise_label(label: str) -> str:
    return " ".join(label.split()).casefold()


def _target(written: str) -> str | None:
    """Return the target of a link definition, or None if it is invalid."""
    bare = _TITLE.sub("", f" {written}").strip() if len(written) < LONGEST_TARGET else ""
    if bare.startswith("<") and bare.endswith(">"):
        return _address(bare)
    return _address(bare) if bare and not any(sign.isspace() for sign in bare) else None


def _address(written: str) -> str:
    """Return a target, decoded as by a browser."""
    bare = written.strip()
    inner = bare[1:].partition(">")[0] if bare.startswith("<") else bare
    return _ESCAPED.sub(r"\1", html.unescape(inner))


def _after(
    prose: str, start: int, close: int, targets: Mapping[str, str]
) -> tuple[str, int] | None:
    """Return the target and the end of the link at `start`, or None if it is not a link."""
    following = prose[close + 1 : close + 2]
    if following == "(":
        end = _parenthesis(prose, close + 2)
        inner = prose[close + 2 : end].strip()
        first = inner if inner.startswith("<") else (inner.split(None, 1) or [""])[0]
        return None if end < 0 else (_address(first), end + 1)
    label, end = prose[start + 1 : close], close + 1
    if following == "[":
        ref_end = prose.find("]", close + 2, close + 204)
        if ref_end >= 0 and not prose[close + 2 : ref_end].isdecimal():
            label, end = prose[close + 2 : ref_end] or label, ref_end + 1
    if label.strip().lstrip("^").isdecimal() or _normalise_label(label) not in targets:
        return None
    return targets[_normalise_label(label)], end


def _parenthesis(prose: str, start: int) -> int:
    """Return the index of the parenthesis that closes the parenthesis before `start`, or -1.

    Parentheses inside `<...>` and inside quotes after a space are ignored.
    """
    level, index = 0, start
    last = min(len(prose), start + LONGEST_TARGET)
    while 0 <= index < last and level <= MOST_PARENTHESES:
        sign = prose[index]
        if sign == ")" and level == 0:
            return index
        if sign == "\\":
            index += 1
        elif sign == "<" and not prose[start:index].strip():
            index = _find_unescaped(prose, ">", index + 1, last)
        elif sign in "\"'" and prose[index - 1].isspace():
            end = _find_unescaped(prose, sign, index + 1, last)
            index = index if end < 0 else end
        else:
            level += (sign == "(") - (sign == ")")
        index = -1 if index < 0 else index + 1
    return -1


def _find_unescaped(prose: str, sign: str, start: int, last: int) -> int:
    """Return the index of the next `sign` that is not escaped, or -1."""
    index = prose.find(sign, start, last)
    while index > start and prose[index - 1] == "\\":
        index = prose.find(sign, index + 1, last)
    return index


def _match_brackets(prose: str) -> dict[int, int]:
    """Map the index of each opening bracket to the index of its closing bracket."""
    opened: list[int] = []
    ends: dict[int, int] = {}
    index = 0
    while index < len(prose):
        sign = prose[index]
        if sign == "\\":
            index += 1
        elif sign == "[":
            opened.append(index)
        elif sign == "]" and opened:
            ends[opened.pop()] = index
        index += 1
    return ends
