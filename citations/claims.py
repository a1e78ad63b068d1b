"""Splits an answer or a chunk into citable units, and reads their citations.

A unit is a sentence of a paragraph, a list item, a table or a code fence. A citation is `[n]`;
models also write `[1, 2]`, `[1-3]`, and brackets from other scripts. Code contains no citations.

Also writes a judge's findings as text for the next attempt. The first line summarizes the whole
answer. It is followed by the unsupported passages with reasons, and a line for each unanswered part
of the question (`- missing: "..."`).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from citations.abbreviations import ends_in_abbreviation

_OPEN, _CLOSE = "[\\[\u3010\uff3b]", "[\\]\u3011\uff3d]"
# Possessive quantifiers, and adjacent parts without common characters, prevent exponential time.
_MORE = r"(?:\s*+(?:[,;\u3001\uff0c\u2013-]|and)\s*+\^?+\d++)*"
_NOTE = r"(?:\u2020[^\]\u3011\uff3d]{0,200}+|\s*+)"  # some vendors append the name of the source
_CITE = rf"{_OPEN}\s*+\^?+\d++{_MORE}{_NOTE}{_CLOSE}(?:\([^()\s]*+\))?"
_CITED = re.compile(rf"(?P<code>`[^`\n]*+`)|(?<![ \t])[ \t]*+(?P<cite>{_CITE}(?:[ \t]*+{_CITE})*)")
_ONE = re.compile(_CITE)
_ONLY_CITED = re.compile(rf"(?:\s*+{_CITE})+\s*+\.?\Z")
_NUMBERS = re.compile(r"(\d+)(?:\s*[\u2013-]\s*\^?(\d+))?")
_WIDEST_RANGE = 20
_LONGEST_NUMBER = 6

_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_ITEM = re.compile(r"\s*(?:[-*+\u2022]|\d{1,3}[.)])\s+\S")
_MARKER = re.compile(r"\s*(?:[-*+\u2022]|\d{1,3}[.)])\s+")
_QUOTE = re.compile(r"\A\s{0,3}>\s?")
_STOP = re.compile(
    rf"(?<=[.!?\u2026])[\"'\u201d\u2019\u00bb)*_]*+(?:\s*+{_CITE})*\s++(?!{_CITE})"
    r"(?=[^\sa-z\u0430-\u044f])"
    rf"|(?<=[\u3002\uff01\uff1f\u0964\u061f])[\u300d\u300f\u201d\uff09]*+(?:\s*+{_CITE})*\s*+(?!{_CITE})"
)
_UNSUPPORTED = "- unsupported: "
_REASON = "  because: "
_CLAIM = re.compile(rf"^{_UNSUPPORTED}(.+)$", re.MULTILINE)
_SPACE = re.compile(r"\s+")
_LONGEST = 500


class UnitKind(StrEnum):
    """The kind of a unit."""

    SENTENCE = "sentence"
    ITEM = "item"
    TABLE = "table"
    CODE = "code"
    HEADING = "heading"
    CITATION = "citation"


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of a text; units in the same paragraph or list have the same `block`."""

    kind: UnitKind
    text: str
    block: int


@dataclass(frozen=True, slots=True)
class Complaint:
    """A passage that is not supported by any source, and the reason."""

    claim: str
    reason: str = ""


def split_units(text: str) -> tuple[Unit, ...]:
    """Return the units of a Markdown text, in order."""
    lines = text.split("\n")
    units: list[Unit] = []
    index = block = 0
    while index < len(lines):
        if not lines[index].strip():
            index, block = index + 1, block + 1
            continue
        kind, end = _extent(lines, index)
        joins = bool(units) and kind is UnitKind.ITEM and units[-1].kind is UnitKind.ITEM
        block = units[-1].block if joins else block + 1
        units += _make_units(kind, lines[index:end], block)
        index = end
    return tuple(units)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a paragraph, each with the citations after its full stop."""
    start = 0
    for stop in _STOP.finditer(text):
        is_bare = not stop[0].strip()
        if is_bare and ends_in_abbreviation(text, start, stop.start(), stop.end()):
            continue
        if sentence := text[start : stop.end()].strip():
            yield sentence
            start = stop.end()
    if rest := text[start:].strip():
        yield rest


def citations(text: str) -> tuple[int, ...]:
    """Return the distinct numbers that `text` cites, in order."""
    numbers = (n for cite in _CITED.finditer(text) if cite["cite"] for n in _numbers(cite["cite"]))
    return tuple(dict.fromkeys(numbers))


def with_citations(text: str, shown: Callable[[int], int | None]) -> str:
    """Return `text` with each citation renumbered by `shown`, or removed if `shown` returns
    None.
    """

    def replace_citation(match: re.Match[str]) -> str:
        if match["code"]:
            return match["code"]
        numbers = dict.fromkeys(shown(number) for number in _numbers(match["cite"]))
        marks = "".join(f"[{number}]" for number in numbers if number is not None)
        return f" {marks}" if marks else ""

    return _CITED.sub(replace_citation, text)


def marker(item: str) -> str:
    """Return the marker of a list item, including its indentation."""
    match = _MARKER.match(item)
    return match[0] if match else ""


def write_complaints(summary: str, unsupported: Sequence[Complaint], missing: Sequence[str]) -> str:
    """Return the findings as text, with `summary` as the first line."""
    lines = [_line(summary)]
    for complaint in unsupported:
        lines.append(f"{_UNSUPPORTED}{_line(complaint.claim)}")
        lines += [f"{_REASON}{_line(complaint.reason)}"] if complaint.reason else []
    lines += [f'- missing: "{_line(part)}"' for part in missing]
    return "\n".join(line for line in lines if line)


def parse_unsupported(analysis: str) -> tuple[str, ...]:
    """Return the claims that `analysis` lists as unsupported."""
    return tuple(_CLAIM.findall(analysis))


def count_while(lines: Sequence[str], start: int, belongs: Callable[[str], object]) -> int:
    """Return the line after those from `start` on that belong together."""
    end = start + 1
    while end < len(lines) and lines[end].strip() and belongs(lines[end]):
        end += 1
    return end


def find_fence_end(lines: Sequence[str], start: int, fence: str) -> int:
    """Return the line after the code that begins with this fence."""
    for end in range(start + 1, len(lines)):
        bare = lines[end].strip()
        if bare.startswith(fence) and not bare.strip(fence[0]):
            return end + 1
    return len(lines)


def _extent(lines: Sequence[str], start: int) -> tuple[UnitKind, int]:
    line = lines[start]
    if fence := _FENCE.match(line):
        return UnitKind.CODE, find_fence_end(lines, start, fence[1])
    if _HEADING.match(line):
        return UnitKind.HEADING, start + 1
    if line.lstrip().startswith("|"):
        return UnitKind.TABLE, count_while(lines, start, lambda text: text.lstrip().startswith("|"))
    if _ITEM.match(line):
        return UnitKind.ITEM, count_while(
            lines, start, lambda text: text[:1].isspace() and _runs_on(text)
        )
    return UnitKind.SENTENCE, count_while(lines, start, _runs_on)


def _runs_on(line: str) -> bool:
    starts_other = _FENCE.match(line) or _HEADING.match(line) or _ITEM.match(line)
    return not starts_other and not line.lstrip().startswith("|")


def _make_units(kind: UnitKind, lines: Sequence[str], block: int) -> list[Unit]:
    if kind in (UnitKind.CODE, UnitKind.TABLE):
        return [Unit(kind, "\n".join(lines), block)]
    if kind is UnitKind.ITEM:
        rest = [line.strip() for line in lines[1:]]
        return [Unit(kind, " ".join((lines[0].rstrip(), *rest)), block)]
    paragraph = " ".join(_QUOTE.sub("", line).strip() for line in lines)
    if kind is UnitKind.HEADING:
        return [Unit(kind, paragraph, block)]
    if _ONLY_CITED.match(paragraph):
        return [Unit(UnitKind.CITATION, paragraph, block)]
    return [Unit(kind, sentence, block) for sentence in sentences(paragraph)]


def _numbers(cite: str) -> list[int]:
    inner = cite.strip()[1:-1]
    if inner.isascii() and inner.isdigit():
        return [_number(inner)]  # nearly every citation
    numbers: list[int] = []
    singles = (match.split("](")[0].split("\u2020")[0] for match in _ONE.findall(cite))
    for first, last in (pair for single in singles for pair in _NUMBERS.findall(single)):
        low, high = _number(first), _number(last or first)
        numbers += range(low, high + 1) if 0 <= high - low < _WIDEST_RANGE else (low, high)
    return numbers


def _number(digits: str) -> int:
    """Return the number, or 0 (which is never a source) if it has too many digits."""
    return int(digits) if len(digits) <= _LONGEST_NUMBER else 0


def _line(text: str) -> str:
    return _SPACE.sub(" ", text).strip()[:_LONGEST]
