"""Protects parts of a text from changes by a model, and restores them byte for byte."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from knowledge.language.cleaning import code_spans

_OPEN, _CLOSE = "⟦", "⟧"
_MARKS = re.compile(r"[⟦⟧]|[\[【]\s*\d+\s*[\]】]")
_PLACEHOLDER = re.compile(r"[⟦【\[]{1,2}\s*(\d+)\s*[⟧】\]]{1,2}")
_EXACT_PLACEHOLDER = re.compile(r"⟦(\d+)⟧")


class PlaceholderLost(ValueError):  # noqa: N818 - names a state
    """The changed text lacks a placeholder, or has one that does not exist."""


@dataclass(frozen=True, slots=True)
class Protected:
    """A text with placeholders `⟦1⟧`, `⟦2⟧`, ..., and the protected parts, in order."""

    text: str
    parts: tuple[str, ...]

    def restore(self, changed: str) -> str:
        """Return `changed` with the parts instead of their placeholders.

        Placeholders with altered brackets are recognised. Raises `PlaceholderLost` if one is
        missing or unknown.
        """
        exact = {int(number) for number in _EXACT_PLACEHOLDER.findall(changed)}
        expected = range(1, len(self.parts) + 1)
        if exact.difference(expected):
            raise PlaceholderLost(f"expected {len(self.parts)} protected parts, found {max(exact)}")
        pattern = _EXACT_PLACEHOLDER if exact.issuperset(expected) else _PLACEHOLDER
        found = {int(number) for number in pattern.findall(changed)}
        for number in expected:
            if number not in found:
                raise PlaceholderLost(f"the protected part {self.parts[number - 1]!r} is missing")
        return pattern.sub(self._part, changed)

    def restore_some(self, note: str) -> str:
        """Return a remark about the text with the parts that it mentions."""
        return _EXACT_PLACEHOLDER.sub(self._part, note)

    def _part(self, found: "re.Match[str]") -> str:
        number = int(found.group(1))
        return self.parts[number - 1] if 0 < number <= len(self.parts) else found.group()


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
