"""Takes out of a text what is in no language: code, addresses, paths and identifiers."""

import re

LONGEST = 2_000
"""Characters that are looked at; more would not change a decision."""

_FENCE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_LINK = re.compile(r"\[([^\]\n]{0,200})\]\([^)\s]{0,500}\)")
_LINKED_URL = re.compile(r"\[[^\]\n]{0,200}\]\((?:https?:)?//[^)\s]{0,500}\)")
_SPANS = re.compile(r"`[^`\n]{0,300}`|<[^<>\n]{1,200}>|\{[^{}\n]{0,100}\}")
_WORD = re.compile(r"\S+")
_EDGES = "\"'“”„«»‘’()[]{}<>,;:!?¿¡…。、？！：；，「」『』（）·*"
_CODE = re.compile(
    r"""
      [a-z][a-z0-9+.-]*://.*              # a URL
    | www\..+
    | [^@\s]+@[^@\s]+\.[a-z]+             # an e-mail address
    | (?:[a-z]:)?[.~]?[\\/].+             # a path from a root, or relative
    | [\w.@-]+(?:[\\/][\w.@-]+)+[\\/]?    # a path without one
    | --?[a-z][\w-]*(?:=.*)?              # an option
    | \w*_\w*                             # snake_case
    | \w+(?:\.\w+)+(?:\(.*\))?            # a.dotted.name, a file.ext
    | \w*\(\w*\)?                         # a call
    | [a-z]+[0-9]+\w* | [0-9]+\w*         # utf8, 3xx
    | (?:[A-Z]*[a-z0-9]+[A-Z]|[A-Z]+[a-z]+[A-Z]|[A-Z]{2,}[a-z])\w*  # CamelCase
    | \.\w+\S* | [$%@#]\S+                # .env, $VARIABLE
    """,
    re.VERBOSE,
)
_SHORTHAND = re.compile(r"[A-Z][A-Z0-9+./-]+")


def natural(text: str) -> str:
    """Return the words of `text` that belong to a language, in their order."""
    text = _FENCE.sub(" ", text[:LONGEST])
    text = _LINKED_URL.sub(" ", text)
    text = _LINK.sub(r"\1", text)
    text = _SPANS.sub(" ", text)
    shouted = text.isupper()
    return " ".join(
        word
        for match in _WORD.finditer(text)
        if not _is_code(word := match.group(), shouted=shouted)
    )


def _is_code(word: str, *, shouted: bool) -> bool:
    bare = word.strip(_EDGES).rstrip(".")
    if not bare.isascii():
        return False
    if _CODE.fullmatch(bare) is not None:
        return True
    return not shouted and _SHORTHAND.fullmatch(bare) is not None
