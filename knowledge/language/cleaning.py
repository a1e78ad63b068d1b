"""Separates the words of a text from code, addresses, paths and identifiers."""

import re
from collections.abc import Iterator

LONGEST = 2_000
"""The number of characters for detecting a language; more would not change the result."""

_SPANS = re.compile(
    r"""
      ```.*?(?:```|\Z) | ~~~.*?(?:~~~|\Z)   # a fence
    | `[^`\n]{1,300}`                       # inline code
    | \]\([^)\s]{1,300}\)                   # where a link goes
    | \{\{?[^{}\n]{0,100}\}?\} | <[^<>\s][^<>\n]{0,200}>   # a placeholder, a tag
    """,
    re.VERBOSE | re.DOTALL,
)
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"
)
"""Scripts without spaces between words: a Latin word among them stands for itself."""
_WORD = re.compile(rf"[^\s{_UNSPACED}]+|[{_UNSPACED}]+")
_BEFORE = "\"'“”„«»‘’([{<,;:!?¿¡*…"
_AFTER = "\"'“”„«»‘’)]}>,;:!?*….।؟،"
_CODE = re.compile(
    r"""
      [a-z][a-z0-9+.-]*://.+              # a URL
    | www\..+
    | [^@\s]+@[^@\s]+\.[a-z]+             # an e-mail address
    | (?:[A-Za-z]:)?[.~]{0,2}[\\/].+      # a path from a root, or relative
    | [\w.@-]+(?:[\\/][\w.@-]+)+[\\/]?    # a path without one
    | --?[A-Za-z][\w-]*(?:=.*)?          # an option
    | [^\W_]*+_\w*                       # snake_case
    | (?!(?:\w\.)+\w?\Z)\w+(?:\.\w+)+(?:\(.*\))?   # a.dotted.name or file.ext, not an e.g.
    | \w+\(.*\)                          # a call
    | [A-Za-z]+[0-9]\w* | [0-9]+[A-Za-z]\w*   # utf8, 3xx
    | (?:[A-Z]*[a-z]+[A-Z]|[A-Z]{2,}[a-z])\w*   # CamelCase
    | \.\w\S* | [$%@\#]\w\S*              # .env, $VARIABLE
    """,
    re.VERBOSE,
)
_SHORTHAND = re.compile(r"[A-Z][A-Z0-9+./-]+|[Oo]k|[Oo]kay")
"""Words that are common to all languages."""


def natural(text: str) -> str:
    """Return the words of the beginning of `text` that belong to a language, in their order."""
    text = text[:LONGEST]
    shouted = text.isupper()
    kept: list[str] = []
    end = 0
    for first, last in (*code_spans(text), (len(text), len(text))):
        kept.append(text[end:first])
        end = last
    words = " ".join(kept).split()
    return " ".join(word for word in words if shouted or _SHORTHAND.fullmatch(_core(word)) is None)


def code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each part of `text` that is in no language, in order."""
    end = 0
    for span in _SPANS.finditer(text):
        yield from _code_words(text, end, span.start())
        yield span.span()
        end = span.end()
    yield from _code_words(text, end, len(text))


def _code_words(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    for match in _WORD.finditer(text, first, last):
        word = match.group()
        start = match.start() + len(word) - len(word.lstrip(_BEFORE))
        core = _core(word)
        if core and _CODE.fullmatch(core) is not None:
            yield start, start + len(core)


def _core(word: str) -> str:
    """Return a word without the punctuation around it; the brackets of a call stay."""
    word = word.lstrip(_BEFORE)
    core = word.rstrip(_AFTER)
    closing = word[len(core) :]
    return f"{core})" if "(" in core and closing.startswith(")") else core
