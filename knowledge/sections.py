"""Puts the chunks of a document together again, so that its sections can be read.

The index keeps no other text of a document. What two chunks of one section share is said once:
`knowledge.chunking` lets a chunk begin with the last sentences of the one before it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from knowledge.document import Chunk
from knowledge.index.port import Index

LONGEST_OVERLAP = 1_000
"""Characters; an overlap is worth at most 30 words, each of at most 15 characters."""


@dataclass(frozen=True, slots=True)
class Section:
    """The text below one heading, blocks as in Markdown, and the chunks it was cut into."""

    heading_path: tuple[str, ...]
    anchor: str | None
    text: str
    chunk_ids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Sections:
    """A document as it can be read."""

    title: str
    crumbs: tuple[str, ...]
    language: str
    url: str | None
    sections: tuple[Section, ...] = field(default_factory=tuple)


def document_of(chunk_id: str) -> str:
    """Return the id of the document that a chunk belongs to."""
    return chunk_id.rpartition("#")[0]


async def read_document(index: Index, document_id: str) -> Sections | None:
    """Return a document of an index; None when it is not there, or gone meanwhile.

    Raises `IndexUnavailable`.
    """
    for document in await index.load([document_id]):
        points = [chunk.point for chunk in document.chunks]
        found = await index.passages(points)
        passages = [found[point] for point in points if point in found]
        if passages:
            first = passages[0]
            chunks = sorted((passage.chunk for passage in passages), key=lambda one: one.ordinal)
            return Sections(
                first.title, first.crumbs, first.language, first.url, join_chunks(chunks)
            )
    return None


def join_chunks(chunks: Iterable[Chunk]) -> tuple[Section, ...]:
    """Return the sections of chunks that come in order."""
    return tuple(
        _section(path, anchor, list(of_section))
        for (path, anchor), of_section in groupby(
            chunks, key=lambda chunk: (chunk.heading_path, chunk.anchor)
        )
    )


def _section(path: tuple[str, ...], anchor: str | None, chunks: Sequence[Chunk]) -> Section:
    parts = [chunks[0].text]
    for before, chunk in pairwise(chunks):
        shared = _count_overlap(before.text, chunk.text)
        parts.append(chunk.text[shared:] if shared else f"\n\n{chunk.text}")
    return Section(path, anchor, "".join(parts), frozenset(chunk.chunk_id for chunk in chunks))


def _count_overlap(before: str, after: str) -> int:
    """Return how many characters a text begins with that the one before it ends with."""
    longest = min(len(before), len(after), LONGEST_OVERLAP)
    return next((n for n in range(longest, 0, -1) if _joins(before, after, n)), 0)


def _joins(before: str, after: str, n: int) -> bool:
    """Whether so many characters are shared, and are whole words: a shared letter says nothing."""
    if not before.endswith(after[:n]):
        return False
    return n == len(before) or before[-n - 1].isspace()
