"""Takes the markup out of a line of AsciiDoc; code keeps its characters, in backticks."""

import re
from collections.abc import Mapping

_CODE = re.compile(r"`\+([^\n]{1,1000}?)\+`|``([^`\n]{1,1000})``|`([^`\n]{1,1000})`")
_PASSED = re.compile(
    r"\+\+\+([^\n]{1,500}?)\+\+\+|\+\+([^+\n]{1,500})\+\+|pass:\w?\[([^\]\n]{0,500})\]"
)
_REFERENCE = re.compile(r"<<([^<>,\n]{1,200})(?:,[ \t]{0,9}([^<>\n]{1,300}))?>>")
_MACRO = re.compile(
    r"(?:link|xref|mailto|kbd|btn|menu|footnote|image|icon|stem):{1,2}([^\s\[\]]{0,500})"
    r"\[([^\[\]\n]{0,500})\]"
)
_LINK = re.compile(r"(https?://[^\s\[\]<>]{1,1000})\[([^\[\]\n]{0,500})\]")
_STRONG = re.compile(r"(?<![\w*])\*(?=\S)([^*\n]{1,1000})(?<=\S)\*(?![\w*])")
_EMPHASIS = re.compile(r"(?<!\w)_(?=[^\s_])([^_\n]{1,1000})(?<=[^\s_])_(?!\w)")
_MARKED = re.compile(r"(?:\[[^\[\]\n]{1,60}\])?(?<![\w#])#(?=\S)([^#\n]{1,500})(?<=\S)#(?!\w)")
_ATTRIBUTE = re.compile(r"\{([\w-]{1,60})\}")
_INLINE_ANCHOR = re.compile(r"\[\[[^\[\]\n]{1,100}\]\]")
_HELD = re.compile("\x1a(\\d{1,9})\x1a")
_KNOWN = {"nbsp": " ", "sp": " ", "empty": "", "plus": "+", "asterisk": "*", "backtick": "`"}


def plain_asciidoc(text: str, attributes: Mapping[str, str]) -> str:
    """Return the text on one line without markup; unknown attributes stay as written."""
    held: list[str] = []

    def hold_code(found: re.Match[str]) -> str:
        held.append(f"`{next(part for part in found.groups() if part is not None)}`")
        return f"\x1a{len(held) - 1}\x1a"

    def hold_passed(found: re.Match[str]) -> str:
        held.append(next((part for part in found.groups() if part is not None), ""))
        return f"\x1a{len(held) - 1}\x1a"

    def fill(found: re.Match[str]) -> str:
        return attributes.get(found[1].lower(), _KNOWN.get(found[1], found[0]))

    text = _ATTRIBUTE.sub(fill, text.replace("\x1a", ""))
    text = _PASSED.sub(hold_passed, _CODE.sub(hold_code, text))
    text = _REFERENCE.sub(lambda found: found[2] or found[1], _INLINE_ANCHOR.sub("", text))
    text = _LINK.sub(_show_link, _MACRO.sub(_show_macro, text))
    for pattern in (_STRONG, _EMPHASIS, _MARKED):
        text = pattern.sub(r"\1", text)
    text = _HELD.sub(lambda found: held[int(found[1])], text.removesuffix(" +"))
    return " ".join(text.split())


def _show_link(found: re.Match[str]) -> str:
    text = found[2] if "=" not in found[2] else found[2].partition(",")[0]
    return text.rstrip("^") or found[1]


def _show_macro(found: re.Match[str]) -> str:
    shown = found[2].partition(",")[0].strip('"').rstrip("^")
    if found[0].startswith("image"):
        return shown
    return shown or found[1]
