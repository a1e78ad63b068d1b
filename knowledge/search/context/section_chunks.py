"""Numbers the chunks of candidates' sections, so that neighbours have neighbouring numbers."""

from knowledge.index.queries import PointId
from knowledge.search.candidates.found_candidates import Candidates
from knowledge.search.candidates.kept_points import FoundChunk

_MOST_CHUNKS = 1 << 32
"""More than a document has chunks."""


class SectionChunks:
    """The sections of candidates; only chunks of these sections are known."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._sections: dict[int, FoundChunk] = {}

    def number_of(self, candidate: int) -> int:
        """Return the number of a candidate, whose section is known from now on."""
        chunk = self._candidates.chunks[candidate]
        start = int(self._candidates.document_of[candidate]) * _MOST_CHUNKS
        self._sections.update(
            dict.fromkeys(range(start + chunk.first, start + chunk.last + 1), chunk)
        )
        return start + chunk.ordinal

    def document_of(self, number: int) -> int:
        """Return the document of a chunk, by its number among the candidates' documents."""
        return number // _MOST_CHUNKS

    def section_of(self, number: int) -> int:
        """Return the number of the chunk that begins the section of a chunk."""
        chunk = self._sections[number]
        return self.document_of(number) * _MOST_CHUNKS + chunk.lead

    def are_together(self, one: int, other: int) -> bool:
        """Return whether two chunks are in one section without another heading in between."""
        first, second = self._sections.get(one), self._sections.get(other)
        return (
            first is not None
            and second is not None
            and (first.document_id, first.first) == (second.document_id, second.first)
        )

    def point_of(self, number: int) -> PointId:
        """Return the name of the point of a chunk."""
        document, ordinal = divmod(number, _MOST_CHUNKS)
        return self._candidates.point_of(document, ordinal)
