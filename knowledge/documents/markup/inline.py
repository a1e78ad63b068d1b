"""Takes the markup out of a line of Markdown, and leaves what a reader sees.

Every pattern is bounded, so that a line of ten million characters costs linear time.
"""

import html
import re

_IMAGE = re.compile(r"!\[([^\[\]]{0,500})\](?:\([^()\n]{0,2000}\)|\[[^\[\]]{0,200}\])")
_LINK = re.compile(
    r"\[([^\[\]]{1,500})\](?:\((?:[^()\n]|\([^()\n]{0,200}\)){0,2000}\)|\[[^\[\]]{0,200}\])"
)
_AUTOLINK = re.compile(r"<((?:https?|mailto):[^<>\s]{1,2000})>")
_TAG = re.compile(r"</?[A-Za-z][\w.:-]{0,60}(?:\s[^<>]{0,2000})?/?>|<!--[^<>]{0,2000}-->")
_STRONG = re.compile(r"(\*\*|__)(?=\S)([^*_\n]{1,2000})(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]{1,2000})(?<=[^\s*])\*(?![\w*])")
_UNDERSCORED = re.compile(r"(?<!\w)_(?=[^\s_])([^_\n]{1,2000})(?<=[^\s_])_(?!\w)")
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+.!|<>~-])")
_CODE = re.compile(r"(`{1,3}[^`\n]{1,2000}`{1,3})")
_FENCED_NOTE = re.compile(r"^[^\S\n]*(?:/{3,4}|:{3,4}|!{3}|\?{3}\+?)[ \t]*", re.MULTILINE)
# Roles and targets as documentation generators write them in Markdown.
_REFERENCE = re.compile(
    r"\{(?:ref|doc|term|numref|any)\}`([^`<>\n]{1,300}?)\s{0,3}(?:<[^`<>\n]{1,300}>)?`"
)
_ROLE = re.compile(r"\{[A-Za-z][\w:.-]{0,40}\}(?=`[^`\n])")
_TARGET = re.compile(r"^\([\w.:-]{1,100}\)=[ \t]*$", re.MULTILINE)
_SPACE = re.compile(r"[ \t]{2,}")


def plain(text: str) -> str:
    """Return the text without markup; inline code keeps its backticks and is left untouched."""
    text = _TARGET.sub("", _FENCED_NOTE.sub("", text))
    text = _ROLE.sub("", _REFERENCE.sub(r"\1", text))
    parts = _CODE.split(_IMAGE.sub(r"\1", text))
    for index in range(0, len(parts), 2):
        parts[index] = _TAG.sub(" ", _AUTOLINK.sub(r"\1", parts[index]))
    parts = _CODE.split(_LINK.sub(r"\1", "".join(parts)))
    for index in range(0, len(parts), 2):
        parts[index] = _without_marks(parts[index])
    return _SPACE.sub(" ", "".join(parts)).strip()


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
