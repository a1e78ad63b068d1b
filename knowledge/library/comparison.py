"""Aligns two documents, or two versions of a document, section by section."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from knowledge.library.library import WholeDocument
from knowledge.sections import Section

Change = Literal["same", "changed", "added", "removed"]
_LEAST_ALIKE = 0.45
_LONGEST_COMPARED = 4_000
_MOST_SECTIONS = 400


@dataclass(frozen=True, slots=True)
class SectionPair:
    """A section of each document; one of them is None if only the other document contains it.

    `alike` is the share of common words, from 0 to 1; `only_old` and `only_new` contain the phrases
    that occur in only one of the two sections.
    """

    change: Change
    old: Section | None
    new: Section | None
    alike: float = 0.0
    only_old: tuple[str, ...] = ()
    only_new: tuple[str, ...] = ()


def compare_documents(old: WholeDocument, new: WholeDocument) -> list[SectionPair]:
    """Return the pairs in the order of the new document; removed sections come last.

    Sections are paired if they have the same headings or, failing that, if their words are similar.
    """
    before, after = old.sections[:_MOST_SECTIONS], new.sections[:_MOST_SECTIONS]
    partners = _match_headings(before, after)
    _match_words(before, after, partners)
    pairs = []
    for place, section in enumerate(after):
        if place not in partners:
            pairs.append(SectionPair("added", None, section))
        else:
            pairs.append(_compare(before[partners[place]], section))
    used = set(partners.values())
    removed = (sentence for place, sentence in enumerate(before) if place not in used)
    return [*pairs, *(SectionPair("removed", section, None) for section in removed)]


def _match_headings(before: Sequence[Section], after: Sequence[Section]) -> dict[int, int]:
    places: dict[tuple[str, ...], list[int]] = {}
    for place, section in enumerate(before):
        places.setdefault(section.heading_path, []).append(place)
    partners = {}
    for place, section in enumerate(after):
        if places.get(section.heading_path):
            partners[place] = places[section.heading_path].pop(0)
    return partners


def _match_words(
    before: Sequence[Section], after: Sequence[Section], partners: dict[int, int]
) -> None:
    free = [place for place in range(len(before)) if place not in partners.values()]
    words = {place: frozenset(_split(before[place].text)) for place in free}
    for place, section in enumerate(after):
        if place in partners or not free:
            continue
        own = frozenset(_split(section.text))
        best = max(free, key=lambda item: _share(words[item], own))
        if _share(words[best], own) >= _LEAST_ALIKE:
            partners[place] = best
            free.remove(best)


def _compare(old: Section, new: Section) -> SectionPair:
    before, after = _split(old.text), _split(new.text)
    if before == after:
        return SectionPair("same", old, new, alike=1.0)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    only_old, only_new = [], []
    for kind, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if kind != "equal":
            only_old.append(" ".join(before[old_start:old_end]))
            only_new.append(" ".join(after[new_start:new_end]))
    return SectionPair(
        "changed",
        old,
        new,
        alike=round(_share(frozenset(before), frozenset(after)), 3),
        only_old=tuple(filter(None, only_old)),
        only_new=tuple(filter(None, only_new)),
    )


def _split(text: str) -> list[str]:
    return text[:_LONGEST_COMPARED].split()


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    both = len(one | other)
    return len(one & other) / both if both else 1.0
