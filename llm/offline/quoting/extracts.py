"""Splits sources into the parts that can be quoted alone: sentences, items, table rows and code.

An order to the assistant in a source is never quoted: it answers no question.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from citations.claims import Unit, UnitKind, marker, only_known, split_units
from citations.feedback import same_claim
from llm.offline.phrases import FUNCTION_WORDS, POINTING
from llm.offline.quoting.key_terms import extract_key_terms
from llm.offline.support import terms
from llm.tasks.respond import PromptSource

_DELIMITERS = re.compile(r"(?=[\s|:]*+-)[\s|:-]++\Z")
_CELL_END = re.compile(r"(?<!\\)\|")
_OUTER_BARS = re.compile(r"\A\||(?<!\\)\|\Z")
_LEAST_TERMS = 2
"""The key terms of a text that may answer the question before it: a signature has fewer."""
_LETTERS = re.compile(r"[^\W\d_]{2}|[\u3040-\u30ff\u3400-\u9fff]")
_BOX = re.compile(r"\A(\s*[-*+] )\[[ xX]\]\s+")


@dataclass(frozen=True, slots=True)
class Extract:
    """Something that can be quoted; `rank` is its source's place among the sources.

    `head` is the head of the table that a row belongs to, `ranged` has the numbers of the question
    that lie in its ranges.
    """

    rank: int
    number: int
    order: int
    kind: UnitKind
    text: str
    terms: frozenset[str]
    head: str = ""
    ranged: frozenset[str] = frozenset()

    @property
    def leads(self) -> bool:
        """Whether it only makes sense with what follows it."""
        return self.kind is not UnitKind.CODE and self.text.rstrip().endswith((":", "\uff1a"))


def extracts(sources: Sequence[PromptSource], avoid: Iterable[str]) -> list[Extract]:
    """Return everything that can be quoted from `sources`, in their order, without `avoid`."""
    avoided = {key for claim in avoid if (key := _key(claim))}
    places = extract_key_terms("\n".join(source.place for source in sources))
    found: list[Extract] = []
    for rank, source in enumerate(sources):
        for order, (kind, text, head) in enumerate(_quotable(source.text)):
            wording = extract_key_terms(f"{head}\n{text}")
            if _key(text) not in avoided and not _only_names(kind, text, places):
                found.append(Extract(rank, source.number, order, kind, text, wording, head))
    return found


def subject_terms(text: str) -> frozenset[str]:
    """Return the terms of `text` that carry its subject."""
    return frozenset(
        term for term in terms(text) if term not in FUNCTION_WORDS and term not in POINTING
    )


def is_open_question(extract: Extract, found: Sequence[Extract]) -> bool:
    """Return whether an extract asks, and nothing of substance follows it in its source."""
    if not extract.text.rstrip().endswith(("?", "\uff1f")):
        return False
    following = (
        one for one in found if one.rank == extract.rank and one.order == extract.order + 1
    )
    return not any(len(one.terms) >= _LEAST_TERMS for one in following)


def _quotable(text: str) -> Iterator[tuple[UnitKind, str, str]]:
    for unit in split_units(text):
        if unit.kind in (UnitKind.HEADING, UnitKind.CITATION):
            continue
        if unit.kind is UnitKind.TABLE:
            yield from _rows(unit)
        elif unit.kind is UnitKind.CODE:
            yield unit.kind, unit.text, ""
        elif _is_whole(wording := only_known(unit.text, ()).rstrip()):
            yield unit.kind, _BOX.sub(r"\1", wording), ""


def _rows(unit: Unit) -> Iterator[tuple[UnitKind, str, str]]:
    lines = [only_known(line.strip(), ()) for line in unit.text.split("\n")]
    ruled = len(lines) > 1 and _DELIMITERS.match(lines[1]) is not None
    columns = max(1, len(split_cells(lines[0])))
    rule = lines[1] if ruled else "|" + "---|" * columns
    for row in lines[1 + ruled :]:
        yield UnitKind.TABLE, row, f"{lines[0]}\n{rule}"


def split_cells(row: str) -> list[str]:
    """Return the cells of a table row; a bar behind a backslash belongs to its cell."""
    return [cell.strip() for cell in _CELL_END.split(_OUTER_BARS.sub("", row.strip()))]


def _only_names(kind: UnitKind, text: str, places: frozenset[str]) -> bool:
    """Return whether `text` only names a page, as the entries of a contents list do."""
    is_step = kind is UnitKind.ITEM and marker(text).strip()[:1].isdigit()
    if is_step or kind in (UnitKind.CODE, UnitKind.TABLE):
        return False
    named = text.partition(":")[0] if kind is UnitKind.ITEM else text
    return extract_key_terms(named) <= places


def _is_whole(text: str) -> bool:
    return _LETTERS.search(text) is not None


def _key(text: str) -> str:
    bare = only_known(text, ())
    return same_claim(bare[len(marker(bare)) :])


def collect_terms(found: Sequence[Extract]) -> dict[int, set[str]]:
    """Return the terms of the extracts of each source, by its rank."""
    held: dict[int, set[str]] = {}
    for extract in found:
        held.setdefault(extract.rank, set()).update(extract.terms)
    return held


def collect_names(
    sources: Sequence[PromptSource], around: Mapping[int, set[str]], names: frozenset[str]
) -> list[frozenset[str]]:
    """Return for each source the names of the question that its document holds anywhere.

    The parties of a contract are named in its first lines, for all of its clauses.
    """
    held: dict[str, set[str]] = {}
    documents = [source.chunk_id.rpartition("#")[0] for source in sources]
    for rank, document in enumerate(documents):
        held.setdefault(document, set()).update(names & around.get(rank, set()))
    return [frozenset(held[document]) for document in documents]


def collect_before(found: Sequence[Extract]) -> dict[tuple[int, int], frozenset[str]]:
    """Return for each extract the terms of the one before it in the same source."""
    before: dict[tuple[int, int], frozenset[str]] = {}
    last: Extract | None = None
    for extract in found:
        if last is not None and last.rank == extract.rank:
            before[extract.rank, extract.order] = last.terms
        last = extract
    return before
