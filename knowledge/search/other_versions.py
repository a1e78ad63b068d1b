"""Groups the versions of a section, and adds versions that differ from the one found.

A search omits earlier versions of a page, and it may find one of several versions that are neither
newer nor older. The answer still has to state where the versions differ, and a model can compare
sections that are next to each other.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from knowledge.documents.stated_version import remove_version
from knowledge.index.port import IndexedPassage, ReadableIndex
from knowledge.port import ContextSection, FoundSpan
from knowledge.search.composer import make_hit
from knowledge.sections import join_texts

SHARE = 8
"""The added sections get at most this fraction of the context."""
MOST_SECTIONS = 2
MOST_VERSIONS = 2
LATER_RANK = 1000
"""The rank of other versions, which are sorted after all hits."""
LONGEST_TEXT = 1200
_LIKE = 0.3
_WORD = re.compile(r"[^\W\d_]+")
_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+|\n")

FindVersions = Callable[[str], Sequence[str]]
"""Returns the ids of the other versions of a document, newest first."""


async def add_other_versions(
    index: ReadableIndex, context: Sequence[ContextSection], find_versions: FindVersions
) -> tuple[ContextSection, ...]:
    """Return the context with the differing sections of other versions, each below its own
    section.
    """
    added: dict[int, list[ContextSection]] = {}
    present = {context_section.best.document_id for context_section in context}
    asked = sorted(
        (context_section for context_section in context if context_section.found),
        key=lambda item: item.found[0].rank,
    )
    rank = LATER_RANK
    for section in asked[:MOST_SECTIONS]:
        others = [
            version for version in find_versions(section.best.document_id) if version not in present
        ]
        for document_id in others[:MOST_VERSIONS]:
            passages = await _read_passages(index, document_id)
            run = _find_section(section, passages)
            text = join_texts([passage.chunk.text for passage in run]).text[:LONGEST_TEXT]
            if run and _differs(text, section.text):
                added.setdefault(id(section), []).append(_make_section(run, text, rank))
                rank += 1
    return tuple(
        version for section in context for version in (section, *added.get(id(section), ()))
    )


def group_versions(context: Iterable[ContextSection]) -> Iterator[ContextSection]:
    """Yield the sections in order, each followed by the same section in other versions.

    The numbers in headings change from version to version, so they are compared only if a version
    has several sections that differ in nothing else, such as articles of a law.
    """
    sections = list(context)
    counts = Counter(
        (_identify(context_section), context_section.best.place.version)
        for context_section in sections
    )
    repeated = {key for (key, _), count in counts.items() if count > 1}
    groups: dict[object, list[ContextSection]] = {}
    for at, section in enumerate(sections):
        key = _identify(section)
        if key is None:
            key = at
        elif key in repeated:
            key = _identify(section, with_numbers=True)
        groups.setdefault(key, []).append(section)
    for group in groups.values():
        yield from group


def _identify(section: ContextSection, *, with_numbers: bool = False) -> object:
    """Return the properties that the versions of a section have in common, or None for a section
    without a version.
    """
    best, version = section.best, section.best.place.version
    if not version:
        return None
    path = best.place.heading_path
    name = _name_section(path, version)
    if with_numbers:
        name = tuple(remove_version(heading, version) for heading in path)
    return remove_version(best.page, version), best.place.language, name


async def _read_passages(index: ReadableIndex, document_id: str) -> list[IndexedPassage]:
    points = [chunk.point for stored in await index.load([document_id]) for chunk in stored.chunks]
    passages = await index.passages(points)
    return [passages[point] for point in points if point in passages]


def _find_section(
    section: ContextSection, passages: Sequence[IndexedPassage]
) -> list[IndexedPassage]:
    """Return the passages in the corresponding section, based on its headings or, failing that, its
    words.
    """
    wanted = _name_section(section.best.place.heading_path, section.best.place.version or "")
    own = _words(section.text)
    likeness = {
        passage.chunk.ordinal: _compare(own, _words(passage.chunk.text)) for passage in passages
    }
    same = [p for p in passages if _name_section(p.chunk.heading_path, p.stated_version) == wanted]
    among = same or [p for p in passages if likeness[p.chunk.ordinal] >= _LIKE]
    if not among:
        return []
    best = max(among, key=lambda passage: likeness[passage.chunk.ordinal])
    return [p for p in passages if p.chunk.heading_path == best.chunk.heading_path]


def _name_section(path: Sequence[str], version: str) -> tuple[str, ...]:
    """Return a heading path without the version and without numbers, because these change between
    versions.
    """
    return tuple(
        " ".join(_WORD.findall(remove_version(heading, version).casefold())) for heading in path
    )


def _differs(other: str, earlier: str) -> bool:
    known = set(_split_sentences(earlier))
    return any(sentence not in known for sentence in _split_sentences(other))


def _split_sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCE_END.split(text):
        if plain := " ".join(sentence.casefold().split()):
            yield plain


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def _compare(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


def _make_section(run: Sequence[IndexedPassage], text: str, rank: int) -> ContextSection:
    return ContextSection(
        best=make_hit(run[0], 0.0, ()),
        text=text,
        chunk_ids=tuple(passage.chunk.chunk_id for passage in run),
        found=(FoundSpan(rank, 0, len(text)),),
    )
