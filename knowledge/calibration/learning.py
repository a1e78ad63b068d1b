"""Learns calibrations from an index: one per language of its documents.

Queries made from the documents, shuffled words and foreign questions are embedded, and their best
cosines among a sample of the chunks are compared with those of the shipped model. `REFERENCES` are
the medians of that model over nine English collections; the line through the three points, by
least squares, is the calibration. Foreign questions weigh less: how far a collection is from them
depends on its subjects.

The sample has at most `MOST_CHUNKS` chunks, so an index of any size takes the same time and memory.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from knowledge.calibration.queries import GeneratedQueries, generate_queries, hash_text
from knowledge.document import Chunk
from knowledge.index.calibration import Calibration, Calibrations
from knowledge.index.listing import ListedDocument
from knowledge.index.port import Passage, ReadableIndex
from knowledge.index.queries import Floats, PointId

LEAST_CHUNKS = 20
"""With fewer chunks in a language nothing is learned: words alone decide there."""
MOST_CHUNKS = 4_000
PASSAGES = 400
REFERENCES = (0.196, 0.402, 0.690)
"""The best cosines of foreign, shuffled and own queries with the shipped model."""
WEIGHTS = (0.25, 1.0, 1.0)
GROWTH = 1.2
"""By which factor the chunks of a language may change before it is learned again."""

_DOCUMENTS_AT_ONCE = 64


class QuestionEmbedder(Protocol):
    """Embeds questions."""

    async def embed_questions(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


@dataclass(frozen=True, slots=True)
class _Sample:
    """Some chunks of one language: their vectors, and the texts from which queries are made."""

    vectors: Floats
    headings: Sequence[str]
    passages: Sequence[str]


async def learn_calibrations(
    index: ReadableIndex, embedder: QuestionEmbedder, known: Calibrations
) -> Calibrations:
    """Return the calibrations for the present documents; present ones stay as long as they fit.

    Raises the errors of the index and the embedder.
    """
    listed = await index.list_documents()
    counts = Counter[str]()
    for document in listed:
        counts[document.language] += document.chunks
    learned: dict[str, Calibration] = {}
    for language, chunks in counts.items():
        if chunks < LEAST_CHUNKS:
            continue
        present = known.get(language)
        if present is not None and 1 / GROWTH <= chunks / present.chunks <= GROWTH:
            learned[language] = present
            continue
        own = [document for document in listed if document.language == language]
        sample = await _take_sample(index, own)
        if len(sample.vectors):
            queries = generate_queries(sample.headings, sample.passages, language)
            learned[language] = await _learn(sample.vectors, queries, embedder, chunks)
    return learned


async def _take_sample(index: ReadableIndex, listed: Sequence[ListedDocument]) -> _Sample:
    ordered = sorted(listed, key=lambda document: hash_text(document.id))
    vectors: list[Floats] = []
    headings: list[str] = []
    points: list[PointId] = []
    for start in range(0, len(ordered), _DOCUMENTS_AT_ONCE):
        names = [document.id for document in ordered[start : start + _DOCUMENTS_AT_ONCE]]
        for document in await index.load(names):
            headings.append(document.title)
            for chunk in document.chunks:
                vectors.append(chunk.vector)
                headings += chunk.heading_path[-1:]
                points.append(chunk.point)
        if len(vectors) >= MOST_CHUNKS:
            break
    chosen = sorted(points, key=lambda point: hash_text(str(point)))[:PASSAGES]
    found: Mapping[PointId, Passage] = await index.passages(chosen)
    texts: list[Chunk] = [found[point].chunk for point in chosen if point in found]
    stacked = np.stack(vectors[:MOST_CHUNKS]) if vectors else np.zeros((0, 1), np.float32)
    return _Sample(stacked, headings, [chunk.text for chunk in texts])


async def _learn(
    vectors: Floats, queries: GeneratedQueries, embedder: QuestionEmbedder, chunks: int
) -> Calibration:
    groups = (queries.foreign, queries.shuffled, queries.own)
    if not all(groups):
        return Calibration(slope=0.0, offset=0.0, separation=0.0, chunks=chunks)
    embedded = await embedder.embed_questions([text for group in groups for text in group])
    best = (np.asarray(embedded, dtype=np.float32) @ vectors.T).max(axis=1).astype(np.float64)
    foreign, shuffled, own = np.split(best, np.cumsum([len(group) for group in groups])[:-1])
    slope, offset = fit_line([float(np.median(part)) for part in (foreign, shuffled, own)])
    separation = float((own[:, None] > foreign[None, :]).mean())
    return Calibration(slope, offset, separation, chunks)


def fit_line(medians: Sequence[float]) -> tuple[float, float]:
    """Return slope and offset of the line from these medians to `REFERENCES`."""
    found, wanted, weights = (np.asarray(values) for values in (medians, REFERENCES, WEIGHTS))
    middle = float(np.average(found, weights=weights))
    centre = float(np.average(wanted, weights=weights))
    spread = float((weights * (found - middle) ** 2).sum())
    if spread < 1e-9:
        return 0.0, centre
    slope = float((weights * (found - middle) * (wanted - centre)).sum()) / spread
    return slope, centre - slope * middle
