"""The chunks that a question is compared with, with their exact scores on each level."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from knowledge.index.points.layout import chunk_identity
from knowledge.index.queries import Floats, PointId
from knowledge.search.candidates.kept_points import FoundChunk, FoundDocument
from knowledge.search.statistics.postings import Rows
from knowledge.search.statistics.sample import Moments


@dataclass(frozen=True, slots=True)
class LevelMoments:
    """The moments of the engine's scores over all chunks; of the vectors' parts without a vector.

    `about` is of the summaries, `centres` of the middles of documents.
    """

    words: Moments
    about: Moments
    meaning: Moments | None = None
    centres: Moments | None = None


@dataclass(frozen=True, slots=True)
class RawScores:
    """What the engine says about each candidate; the vectors' parts are None without a vector.

    `alone` are the best cosines of the question without its conversation.
    """

    bm25: Floats
    summary: Floats
    moments: LevelMoments
    cosine: Floats | None = None
    lead: Floats | None = None
    centre: Floats | None = None
    alone: Floats | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Chunks with their documents; both count from 0."""

    points: Sequence[PointId]
    chunks: Sequence[FoundChunk]
    documents: Sequence[FoundDocument]
    raw: RawScores
    document_of: Rows
    page_of: Rows
    version_of: Mapping[tuple[int, str], int]
    kinds: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.points)

    def point_of(self, document: int, ordinal: int) -> PointId:
        """Return the name of the point of any chunk of a document."""
        found = self.documents[document]
        return chunk_identity(found.document_id, found.version, ordinal)

    def find_documents(self, document_ids: Collection[str]) -> list[int]:
        """Return the numbers of those of some documents that have candidates."""
        return [at for at, one in enumerate(self.documents) if one.document_id in document_ids]

    def find_chunks(self, chunk_ids: Iterable[str]) -> set[int]:
        """Return the candidates with these ids."""
        named = set(chunk_ids)
        if not named:
            return set()
        return {
            number
            for number, chunk in enumerate(self.chunks)
            if f"{chunk.document_id}#{chunk.ordinal}" in named
        }
