"""Learns calibrations from an index, one per language of its documents.

Queries generated from the documents, shuffled words, and foreign questions are embedded, and their
best cosines within a sample of the chunks are compared with the best cosines of the shipped model.
`REFERENCES` contains the medians of the shipped model over nine English collections. The
calibration is the line through the three points, fitted by least squares. Foreign questions have a
lower weight, because the distance of a collection from them depends on its subjects.

The same everyday questions in two languages show whether the model can compare these languages:
each question must be closest to its own translation. Languages with few chunks are tested as well.

The sample has at most `MOST_CHUNKS` chunks, so an index of any size takes the same time and memory.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from knowledge.calibration.queries import (
    GeneratedQueries,
    find_foreign_questions,
    generate_queries,
    hash_text,
    list_question_languages,
)
from knowledge.document import Chunk
from knowledge.index.calibration import EVERY_LANGUAGE, Calibration, Calibrations
from knowledge.index.listing import ListedDocument
from knowledge.index.port import IndexedPassage, ReadableIndex
from knowledge.index.queries import Floats, PointId

LEAST_CHUNKS = 20
"""Minimum number of chunks in a language. Below it, no line is learned, and only words are used."""
MOST_CHUNKS = 4_000
PASSAGES = 400
REFERENCES = (0.196, 0.402, 0.690)
"""The best cosines of foreign questions, shuffled words, and own queries with the shipped model."""
WEIGHTS = (0.25, 1.0, 1.0)
LEAST_PAIRED = 0.6
"""Two languages are considered comparable if at least this share of questions are closest to their
own translation. A model for about a hundred languages reaches 0.63 to 1.00 in pairs of 17
languages, and the shipped one at most 0.6, except for closely related languages such as Spanish and
Portuguese.
"""
GROWTH = 1.2
"""The factor by which the number of chunks in a language may change before it is learned again."""

_DOCUMENTS_AT_ONCE = 64


class QuestionEmbedder(Protocol):
    """Embeds questions."""

    async def embed_questions(self, texts: Sequence[str]) -> Sequence[Sequence[float]]: ...


@dataclass(frozen=True, slots=True)
class _Sample:
    """Some chunks in one language: their vectors, and the texts from which queries are
    generated.
    """

    vectors: Floats
    headings: Sequence[str]
    passages: Sequence[str]


async def learn_calibrations(
    index: ReadableIndex, embedder: QuestionEmbedder, known: Calibrations
) -> Calibrations:
    """Return the calibrations for the current documents; existing ones are kept as long as they
    fit.

    Errors of the index and the embedder propagate.
    """
    listed = await index.list_documents()
    counts = Counter[str]()
    for document in listed:
        counts[document.language] += document.chunks
    learned: dict[str, Calibration] = {
        language: known[language]
        for language, chunks in counts.items()
        if language in known and _still_fits(known[language], chunks)
    }
    missing = {name: chunks for name, chunks in counts.items() if name not in learned}
    compared = await _find_compared(missing, embedder) if missing else {}
    for language, chunks in missing.items():
        learned[language] = Calibration(0.0, 0.0, 0.0, chunks, compared[language])
        if chunks < LEAST_CHUNKS:
            continue
        own = [document for document in listed if document.language == language]
        sample = await _take_sample(index, own)
        if len(sample.vectors):
            queries = generate_queries(sample.headings, sample.passages, language)
            line = await _learn(sample.vectors, queries, embedder, chunks)
            learned[language] = replace(line, compared=compared[language])
    return learned


def fit_line(medians: Sequence[float]) -> tuple[float, float]:
    """Return the slope and offset of the line from these medians to `REFERENCES`."""
    measured, wanted, weights = (np.asarray(values) for values in (medians, REFERENCES, WEIGHTS))
    middle = float(np.average(measured, weights=weights))
    centre = float(np.average(wanted, weights=weights))
    spread = float((weights * (measured - middle) ** 2).sum())
    if spread < 1e-9:
        return 0.0, centre
    slope = float((weights * (measured - middle) * (wanted - centre)).sum()) / spread
    return slope, centre - slope * middle


def _still_fits(present: Calibration, chunks: int) -> bool:
    is_alike = 1 / GROWTH <= chunks / present.chunks <= GROWTH
    has_line = present.chunks >= LEAST_CHUNKS
    return present.compared is not None and is_alike and has_line == (chunks >= LEAST_CHUNKS)


async def _find_compared(
    languages: Collection[str], embedder: QuestionEmbedder
) -> Mapping[str, tuple[str, ...]]:
    """Return, for each document language, the question languages that the model can compare with
    it.

    A language without translated questions is tested with the English ones.
    """
    asked = list_question_languages()
    texts = [find_foreign_questions(language) for language in (*languages, *asked)]
    embedded = await embedder.embed_questions([text for form in texts for text in form])
    vectors = np.split(
        np.asarray(embedded, dtype=np.float32), np.cumsum([len(form) for form in texts])[:-1]
    )
    questions = dict(zip(asked, vectors[len(languages) :], strict=True))
    return {
        language: _list_compared(own, questions)
        for language, own in zip(languages, vectors, strict=False)
    }


def _list_compared(own: Floats, questions: Mapping[str, Floats]) -> tuple[str, ...]:
    compared = tuple(
        language
        for language, vectors in questions.items()
        if (np.argmax(vectors @ own.T, axis=1) == np.arange(len(own))).mean() >= LEAST_PAIRED
    )
    return (*compared, EVERY_LANGUAGE) if len(compared) == len(questions) else compared


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
    indexed: Mapping[PointId, IndexedPassage] = await index.passages(chosen)
    texts: list[Chunk] = [indexed[point].chunk for point in chosen if point in indexed]
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
