"""Cuts documents of the index into units, and divides units into parts of bounded size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compliance.requirements.requirement import RuleUnit, TextPlace
from compliance.requirements.segments import split_segments
from envelope.ways.specialists import PartPlan
from knowledge.library.library import WholeDocument

LONGEST_UNIT = 6_000
"""Characters; a longer section is cut between its sentences."""
PART_CHARACTERS = 6_000
PART_ITEMS = 12
MOST_PARTS = 200
"""Of one scatter; larger documents have larger parts."""
_KEY = 60


@dataclass(frozen=True, slots=True)
class DocumentUnits:
    """A document as units in order; `chunks` has the ids and texts of each unit's passages."""

    document_id: str
    title: str
    language: str
    digest: str
    units: tuple[RuleUnit, ...]
    chunks: dict[str, tuple[tuple[str, str], ...]]

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
    order = list(texts)
    units: list[RuleUnit] = []
    chunks: dict[str, tuple[tuple[str, str], ...]] = {}
    for section in document.sections:
        own = tuple((name, texts[name]) for name in order if name in section.chunk_ids)
        for text in cut_text_at_sentences(section.text):
            name = f"{listed.id}#u{len(units) + 1}"
            units.append(RuleUnit(listed.id, name, text, section.heading_path, listed.language))
            chunks[name] = own
    return DocumentUnits(
        listed.id, listed.title, listed.language, listed.content_hash, tuple(units), chunks
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
    """Return parts that have every unit of the documents exactly once, in order."""
    sizes = [len(unit.text) for one in documents for unit in one.units]
    longest = max(PART_CHARACTERS, 2 * sum(sizes) // MOST_PARTS)
    most = max(PART_ITEMS, 2 * len(sizes) // MOST_PARTS)
    return tuple(
        PartPlan(
            key=f"{at}-{first}",
            label=_name_range(one, first, last),
            document_id=one.document_id,
            digest=one.digest,
            first=first,
            last=last,
        )
        for at, one in enumerate(documents)
        for first, last in divide_sizes([len(unit.text) for unit in one.units], longest, most)
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


def _name_range(document: DocumentUnits, first: int, last: int) -> str:
    names = [document.units[at].heading_path for at in (first, last)]
    shown = [name[-1] if name else document.title for name in names]
    return shown[0] if shown[0] == shown[1] else f"{shown[0]} - {shown[1]}"


def _plain(text: str) -> str:
    return " ".join(text.split())
