r"""Reads the citations of a Markdown answer: `[1]` with a list of sources, `\cite{id}`, and links.

The list of sources begins with a line such as "Sources" and has a line for each: `[1] Title`,
`1. Title`, `- [1] [Title](address)`, and perhaps an address in the next one. Footnotes (`[^1]`)
and definitions (`[1]: address`) are sources wherever they stand.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from citations.claims import UnitKind, citations, split_units, without_citations

CitationForm = Literal["number", "cite", "link"]
_CITE = re.compile(r"\\cite\{([^{}\n]{1,400})\}")
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,300})\]\(([^()\s]{1,500})\)")
_SOURCES = re.compile(
    r"[#*_\s]{0,8}(?:sources|references|bibliography|citations|quellen|fundstellen|quellenverzeichnis"
    r"|zdroje|odkazy|źródła|références|fuentes|referencias|fonti|riferimenti|fontes|referências"
    r"|источники|джерела|المصادر|स्रोत|来源|參考|参考文献|出典)[*_:\s]{0,8}\Z",
    re.IGNORECASE,
)
_ENTRY = re.compile(
    r"[\s*+-]{0,8}(?:((?:\[\^?\d{1,4}\]){1,20})|(\d{1,4})[.)])[:.]?\s{0,8}(\S[^\n]*)"
)
_DEFINITION = re.compile(r"(?m)^\s{0,3}\[\^?(\d{1,4})\]:\s{0,8}(\S[^\n]*)$")
_FOOTNOTE = re.compile(r"\[\^(\d{1,4})\]")
_NUMBER = re.compile(r"\d{1,4}")
_DASH = re.compile(r"\s[–—-]\s|,\s")
_LEAST_WORDS = 4
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class CitedClaim:
    """A sentence and one citation in it.

    `label` is the citation as it is written; `names` are the texts by which it names its source:
    the id, or title and address of the list of sources. Empty `names`: the number is in no list.
    """

    claim: str
    label: str
    form: CitationForm
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """The citations of a text in order, the sentences without any, and sources never cited."""

    claims: tuple[CitedClaim, ...]
    uncited: tuple[str, ...]
    unused: tuple[str, ...]


def read_citations(text: str) -> ReadAnswer:
    """Return the citations of an answer; code contains none."""
    body, listed = _split_sources(text)
    for one in _DEFINITION.finditer(body):
        listed[int(one[1])] = (*listed.get(int(one[1]), ()), *_list_names(one[2]))
    body = _FOOTNOTE.sub(r"[\1]", _DEFINITION.sub("", body))
    claims: list[CitedClaim] = []
    uncited: list[str] = []
    before = ""
    for unit in split_units(body):
        if unit.kind in {UnitKind.CODE, UnitKind.HEADING}:
            continue
        is_alone = _stands_alone(unit.text)
        found = list(_read_unit(unit.text, before if is_alone else unit.text, listed))
        claims += found
        plain = " ".join(unit.text.split())
        if found and is_alone and uncited[-1:] == [before]:
            uncited.pop()
        if not found and len(plain.split()) >= _LEAST_WORDS:
            uncited.append(plain)
        before = "" if found else plain
    used = {one.label for one in claims}
    unused = tuple(f"[{number}]" for number in listed if f"[{number}]" not in used)
    return ReadAnswer(tuple(claims), tuple(uncited), unused)


def _read_unit(
    text: str, claiming: str, listed: Mapping[int, tuple[str, ...]]
) -> Iterator[CitedClaim]:
    claim = _clean_claim(claiming)
    for number in citations(text):
        yield CitedClaim(claim, f"[{number}]", "number", listed.get(number, ()))
    for cited in _CITE.finditer(text):
        for name in filter(None, map(str.strip, cited[1].split(","))):
            yield CitedClaim(claim, f"\\cite{{{name}}}", "cite", (name,))
    for link in _LINK.finditer(text):
        if not link[1].strip().isdigit():
            yield CitedClaim(claim, link[0], "link", (link[2],))


def _stands_alone(text: str) -> bool:
    """Return whether there are only citations: they belong to the sentence before them."""
    return not _WORD.search(_LINK.sub("", _CITE.sub("", without_citations(text))))


def _clean_claim(text: str) -> str:
    plain = _LINK.sub(lambda link: "" if link[1].isdigit() else link[1], _CITE.sub("", text))
    return " ".join(without_citations(plain).split())


def _split_sources(text: str) -> tuple[str, dict[int, tuple[str, ...]]]:
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if len(line) < 80 and _SOURCES.match(line):
            entries = _read_entries(lines[at + 1 :])
            if entries:
                return "\n".join(lines[:at]), entries
    return text, {}


def _read_entries(lines: Sequence[str]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    numbers: tuple[int, ...] = ()
    for line in lines:
        entry = _ENTRY.match(line)
        if entry is not None:
            numbers = tuple(int(one) for one in _NUMBER.findall(entry[1] or entry[2]))
            names = _list_names(entry[3])
        elif numbers and line.strip():
            names = _list_names(line)
        else:
            numbers, names = (), ()
        for number in numbers:
            found[number] = (*found.get(number, ()), *names)
    return found


def _list_names(text: str) -> tuple[str, ...]:
    """Return the label and the target of a link, or the text, as a whole and up to a dash."""
    link = _LINK.search(text)
    names = (link[1], link[2]) if link is not None else (text, *_DASH.split(text, maxsplit=1))
    cleaned = (name.strip().strip("*_<>").strip() for name in names)
    return tuple(dict.fromkeys(filter(None, cleaned)))
