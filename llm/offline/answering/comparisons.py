"""Quotes what two versions of the same page say differently, if the question compares versions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from envelope.sources import TOOL_SOURCE
from envelope.ways.tool_loop import Intent
from llm.offline.planning.question_parts import QuestionParts, find_cues, read_question
from llm.offline.quoting.versions import name_page
from llm.offline.words import stems
from llm.tasks.respond import Inputs, PromptSource

_UNIT_END = re.compile(r"(?<=[.!?])\s|\n")
_ROW_END = re.compile(r"^[|\s:-]+$")
_MOST_PAIRS = 6
_MOST_UNITS = 8
_MOST_DOCUMENTS = 40
_KINDS = ("added", "removed")
"""Kinds of changes that are about whole documents, as cues and in the results of the tool."""
_COMPARED = re.compile(r"\d{1,9} changes, \d{1,9} unchanged")
_COMPARING = stems(
    "change changes changed changing differ differs difference differences different compare "
    "compared comparison between version versions revision edition what which how new old "
    "was ist sich geändert änderung änderungen unterschied unterschiede zwischen fassung fassungen"
)
"""Words of a comparison itself, in English and German: pages need not have them."""
_SHARE = 0.6
"""How near to the best pair of pages another one must be to the question."""


@dataclass(frozen=True, slots=True)
class _Difference:
    """The units that one version of a page has and the other lacks."""

    sides: tuple[tuple[PromptSource, tuple[str, ...]], ...]
    relevance: int


def find_comparison(inputs: Inputs) -> str | None:
    """Return a list of what differs, the older version first; None if no versions are compared."""
    question = read_question(inputs.question)
    if question.intent is not Intent.COMPARISON:
        return None
    if question.versions and (listed := _list_documents(inputs, question)):
        return listed
    versions = _match_versions(question.versions, inputs.sources)
    if len(versions) != 2:
        return None
    asked = stems(_leave_versions_out(inputs.question, versions)) - _COMPARING
    cues = question.cues - {Intent.COMPARISON.value, *_KINDS}
    differences = _list_differences(inputs.sources, versions, asked, cues)
    found = sorted(differences, key=lambda one: -one.relevance)
    if not found:
        return None
    least = _SHARE * found[0].relevance
    chosen = [one for one in found if one.relevance >= least][:_MOST_PAIRS]
    lines = [
        f"- {_name_place(source)} (version {source.version}): {_join(units)} [{source.number}]"
        for one in chosen
        for source, units in one.sides
    ]
    return "\n".join(lines)


def _list_documents(inputs: Inputs, question: QuestionParts) -> str:
    """Return the documents that are new, or gone, if these are asked for; empty: they are not.

    They come from the result of the tool that compared all documents: the passages, of which only
    some are sources, do not say that there is no other one.
    """
    kinds = [kind for kind in _KINDS if kind in question.cues]
    compared = next((one for one in inputs.sources if _is_comparison(one)), None)
    if compared is None or not kinds:
        return ""
    lines = [
        line
        for line in compared.text.splitlines()
        if any(line.startswith(f"{kind}: ") for kind in kinds)
    ]
    shown = [f"- {line} [{compared.number}]" for line in lines[:_MOST_DOCUMENTS]]
    if len(lines) > len(shown):
        shown.append(f"- ({len(lines) - len(shown)} more) [{compared.number}]")
    return "\n".join(shown)


def _is_comparison(source: PromptSource) -> bool:
    first = source.text.partition("\n")[0]
    return source.chunk_id.startswith(TOOL_SOURCE) and _COMPARED.fullmatch(first) is not None


def _match_versions(named: Sequence[str], sources: Sequence[PromptSource]) -> tuple[str, ...]:
    """Return the versions of sources that the question names, in its order: the older one first."""
    stated = dict.fromkeys(source.version for source in sources if source.version)
    found = [one for number in named for one in stated if _read_number(one) == number]
    return tuple(dict.fromkeys(found))


def _read_number(version: str) -> str:
    return version.lstrip("vVrR").lstrip("ev. ")


def _leave_versions_out(question: str, versions: Sequence[str]) -> str:
    for version in versions:
        question = question.replace(_read_number(version), " ")
    return question


def _list_differences(
    sources: Sequence[PromptSource],
    versions: tuple[str, ...],
    asked: frozenset[str],
    cues: frozenset[str],
) -> Iterator[_Difference]:
    """Yield what the versions of each page say differently; `cues` are of kinds, as a penalty."""
    pages: dict[tuple[str, ...], dict[str, list[PromptSource]]] = {}
    for source in sources:
        if source.version in versions:
            pages.setdefault(name_page(source), {}).setdefault(source.version, []).append(source)
    for page in (one for one in pages.values() if len(one) == len(versions)):
        sides = []
        for version in versions:
            others = {
                unit
                for other, own in page.items()
                if other != version
                for source in own
                for unit in _list_units(source.text)
            }
            for source in page[version]:
                only = [unit for unit in _list_units(source.text) if unit not in others]
                if only:
                    sides.append((source, tuple(only[:_MOST_UNITS])))
        if sides:
            text = " ".join(f"{source.place} {' '.join(own)}" for source, own in sides)
            kinds = len(cues & frozenset(find_cues(text)))
            yield _Difference(tuple(sides), len(asked & stems(text)) + kinds)


def _list_units(text: str) -> list[str]:
    """Return sentences and rows of tables, rows as their cells."""
    units = []
    for part in _UNIT_END.split(text):
        line = part.strip()
        if not line or line.startswith("#") or _ROW_END.match(line):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        units.append(": ".join(cell for cell in cells if cell) if line.startswith("|") else line)
    return units


def _join(units: Sequence[str]) -> str:
    """Return units in one line; rows of a table, which end without a mark, with semicolons."""
    ends = [" " if unit[-1:] in ".!?;:" else "; " for unit in units]
    return "".join(f"{unit}{end}" for unit, end in zip(units, ends, strict=True)).rstrip("; ")


def _name_place(source: PromptSource) -> str:
    return source.place.removesuffix(f" (version {source.version})")
