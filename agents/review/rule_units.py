"""Cuts documents of the index into units, and divides units into parts of bounded size."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from agents.review.passages import split_segments
from agents.review.requirements import RuleUnit, TextPlace
from envelope.specialists import PartPlan
from knowledge.library.library import WholeDocument

LONGEST_UNIT = 6_000
"""Characters; a longer section is cut between its sentences."""
PART_CHARACTERS = 6_000
PART_ITEMS = 12
MOST_PARTS = 200
"""Of one scatter; larger documents have larger parts."""
_KEY = 60
_PAGE = re.compile(r"page=(\d{1,6})")
_SHOWN_TITLES = 3


@dataclass(frozen=True, slots=True)
class DocumentUnits:
    """A document as units in order; `chunks` has the ids and texts of each unit's passages.

    `source` is its file, `pages` the page of each chunk where the document has pages.
    """

    document_id: str
    title: str
    language: str
    digest: str
    units: tuple[RuleUnit, ...]
    chunks: dict[str, tuple[tuple[str, str], ...]]
    source: str = ""
    pages: dict[str, int] = field(default_factory=dict)

    def find_chunk(self, place: TextPlace) -> str:
        """Return the id of the passage that contains a place; empty: there is none."""
        unit = next((one for one in self.units if one.unit_id == place.unit_id), None)
        found = self.chunks.get(place.unit_id, ())
        if unit is None or not found:
            return ""
        wanted = _plain(unit.text[place.start : place.end])[:_KEY]
        return next((name for name, text in found if wanted in _plain(text)), found[0][0])


def cut_document(document: WholeDocument) -> DocumentUnits:
    """Return the units of a document: its sections, and pieces of those that are too long."""
    listed = document.listed
    texts = {one.chunk.chunk_id: one.chunk.text for one in document.chunks}
    ranks = {name: rank for rank, name in enumerate(texts)}
    units: list[RuleUnit] = []
    chunks: dict[str, tuple[tuple[str, str], ...]] = {}
    for section in document.sections:
        if _plain(section.text) == _plain(listed.title):
            continue  # a page with a title alone
        named = sorted(section.chunk_ids, key=ranks.__getitem__)
        own = tuple((name, texts[name]) for name in named)
        for text in cut_text_at_sentences(section.text):
            name = f"{listed.id}#u{len(units) + 1}"
            units.append(RuleUnit(listed.id, name, text, section.heading_path, listed.language))
            chunks[name] = own
    return DocumentUnits(
        listed.id,
        listed.title,
        listed.language,
        listed.content_hash,
        tuple(units),
        chunks,
        listed.source,
        dict(_list_pages(document)),
    )


def cut_text_at_sentences(text: str, longest: int = LONGEST_UNIT) -> Iterator[str]:
    """Yield pieces of a text of at most `longest` characters where its sentences allow it.

    An item of a list stays with the sentence that introduces it if both fit.
    """
    if len(text) <= longest:
        yield text
        return
    start = end = 0
    for segment in split_segments(text):
        first = segment.start if segment.lead is None else max(start, segment.lead[0])
        if segment.end - start > longest and first > start:
            yield text[start:first].strip()
            start = first
        end = segment.end
    if end > start or start < len(text):
        yield text[start:].strip()


def plan_parts(documents: Sequence[DocumentUnits]) -> tuple[PartPlan, ...]:
    """Return parts that have every unit of the documents exactly once, in order.

    Documents in the same language share parts, so that a law with a file for each article has no
    more parts than one in a single file.
    """
    sizes = [len(unit.text) for one in documents for unit in one.units]
    longest = max(PART_CHARACTERS, 2 * sum(sizes) // MOST_PARTS)
    most = max(PART_ITEMS, 2 * len(sizes) // MOST_PARTS)
    parts: list[PartPlan] = []
    for _, group in groupby(documents, key=lambda one: one.language):
        units = [(one, unit) for one in group for unit in one.units]
        own = [len(unit.text) for _, unit in units]
        for first, last in divide_sizes(own, longest, most):
            parts.append(_plan_part(f"{len(parts)}", units, first, last))
    return tuple(parts)


def list_units(documents: Sequence[DocumentUnits]) -> tuple[RuleUnit, ...]:
    """Return the units of the documents of a part, as `PartPlan` counts them."""
    return tuple(unit for one in documents for unit in one.units)


def join_digests(documents: Sequence[DocumentUnits]) -> str:
    """Return the digest of the content of the documents of a part."""
    if len(documents) == 1:
        return documents[0].digest
    return hashlib.sha256("\0".join(one.digest for one in documents).encode()).hexdigest()


def name_documents(titles: Sequence[str]) -> str:
    """Return the titles of documents in a line; of many, the first, the last, and how many."""
    if len(titles) <= _SHOWN_TITLES:
        return "; ".join(titles)
    return f"{titles[0]}; …; {titles[-1]} ({len(titles)})"


def _plan_part(
    key: str, units: Sequence[tuple[DocumentUnits, RuleUnit]], first: int, last: int
) -> PartPlan:
    own = list({one.document_id: one for one, _ in units[first : last + 1]}.values())
    skipped = next(at for at, (one, _) in enumerate(units) if one is own[0])
    return PartPlan(
        key=key,
        label=_name_range(units[first], units[last]),
        document_id=own[0].document_id,
        more_documents=tuple(one.document_id for one in own[1:]),
        digest=join_digests(own),
        first=first - skipped,
        last=last - skipped,
    )


def divide_sizes(sizes: Sequence[int], longest: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last place of each group: at most `most` items, and `longest` in all.

    An item that is longer by itself is a group.
    """
    first = total = 0
    for place, size in enumerate(sizes):
        if place > first and (total + size > longest or place - first >= most):
            yield first, place - 1
            first, total = place, 0
        total += size
    if sizes:
        yield first, len(sizes) - 1


def _name_range(*ends: tuple[DocumentUnits, RuleUnit]) -> str:
    shown = [unit.heading_path[-1] if unit.heading_path else one.title for one, unit in ends]
    return " - ".join(dict.fromkeys(shown))


def _list_pages(document: WholeDocument) -> Iterator[tuple[str, int]]:
    for one in document.chunks:
        found = _PAGE.fullmatch(one.chunk.anchor or "")
        if found is not None:
            yield one.chunk.chunk_id, int(found[1])


def _plain(text: str) -> str:
    return " ".join(text.split())
