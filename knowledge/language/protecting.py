"""Protects parts of a text from changes by a model, and restores them byte for byte."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_OPEN, _CLOSE = "⟦", "⟧"
_MARKS = re.compile(r"[⟦⟧]|[\[【]\s*\d+\s*[\]】]")
_PLACEHOLDER = re.compile(r"[⟦【\[]{1,2}\s*(\d+)\s*[⟧】\]]{1,2}")
_EXACT_PLACEHOLDER = re.compile(r"⟦(\d+)⟧")
LONGEST = 2_000
"""The number of characters used to detect a language; more would not change the result."""

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
"""Scripts without spaces between words, in which a Latin word is detected separately."""
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


class PlaceholderLost(ValueError):  # noqa: N818 - names a state
    """A placeholder is missing from the changed text, or the text contains an unknown one."""


@dataclass(frozen=True, slots=True)
class Protected:
    """A text with placeholders `⟦1⟧`, `⟦2⟧`, ..., and the protected parts, in order."""

    text: str
    parts: tuple[str, ...]

    def restore(self, changed: str) -> str:
        """Return `changed` with the placeholders replaced by their parts.

        Placeholders with altered brackets are recognized. Raises `PlaceholderLost` if one is
        missing or unknown.
        """
        exact = {int(number) for number in _EXACT_PLACEHOLDER.findall(changed)}
        expected = range(1, len(self.parts) + 1)
        if exact.difference(expected):
            raise PlaceholderLost(f"expected {len(self.parts)} protected parts, found {max(exact)}")
        pattern = _EXACT_PLACEHOLDER if exact.issuperset(expected) else _PLACEHOLDER
        numbers = {int(number) for number in pattern.findall(changed)}
        for number in expected:
            if number not in numbers:
                raise PlaceholderLost(f"the protected part {self.parts[number - 1]!r} is missing")
        return pattern.sub(self._part, changed)

    def restore_some(self, note: str) -> str:
        """Return a note about the text, with the placeholders in it replaced by their parts."""
        return _EXACT_PLACEHOLDER.sub(self._part, note)

    def _part(self, match: "re.Match[str]") -> str:
        number = int(match.group(1))
        return self.parts[number - 1] if 0 < number <= len(self.parts) else match.group()


def protect(text: str, names: Sequence[str] = ()) -> Protected:
    """Return `text` with placeholders for code, addresses, paths, identifiers and `names`."""
    spans = _merge([*code_spans(text), *_find_names(text, names), *_own_marks(text)])
    kept: list[str] = []
    parts: list[str] = []
    end = 0
    for first, last in spans:
        parts.append(text[first:last])
        kept.append(f"{text[end:first]}{_OPEN}{len(parts)}{_CLOSE}")
        end = last
    return Protected("".join(kept) + text[end:], tuple(parts))


def natural(text: str) -> str:
    """Return those words at the beginning of `text` that belong to a language, in order."""
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
    """Yield the start and end of each part of `text` that is not natural language, in order."""
    end = 0
    for span in _SPANS.finditer(text):
        yield from _code_words(text, end, span.start())
        yield span.span()
        end = span.end()
    yield from _code_words(text, end, len(text))


def _find_names(text: str, names: Sequence[str]) -> list[tuple[int, int]]:
    wanted = sorted((name for name in names if name.strip()), key=len, reverse=True)
    if not wanted:
        return []
    either = "|".join(re.escape(name) for name in wanted)
    whole = rf"(?<!\w)(?:{either})(?!\w)"
    return [match.span() for match in re.finditer(whole, text, re.IGNORECASE)]


def _own_marks(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in _MARKS.finditer(text)]


def _merge(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if merged and first < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        elif first < last:
            merged.append((first, last))
    return merged


def _code_words(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    for match in _WORD.finditer(text, first, last):
        word = match.group()
        start = match.start() + len(word) - len(word.lstrip(_BEFORE))
        core = _core(word)
        if core and _CODE.fullmatch(core) is not None:
            yield start, start + len(core)


def _core(word: str) -> str:
    """Return a word without surrounding punctuation; the brackets of a function call are kept."""
    word = word.lstrip(_BEFORE)
    core = word.rstrip(_AFTER)
    closing = word[len(core) :]
    return f"{core})" if "(" in core and closing.startswith(")") else core
