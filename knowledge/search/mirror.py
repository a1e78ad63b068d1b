"""What a search needs of the whole index, as arrays in memory; never changed, only replaced.

Lists of the best hundred of each level cost a search some of its first places, so every chunk
gets a score on every level. A chunk takes about 3 kB with 384 numbers; texts stay in the index.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from knowledge.index.bm25 import TermNumbers
from knowledge.index.port import Floats, SparseText, StoredDocument
from knowledge.index.terms import terms
from knowledge.search.postings import Packed, Postings, Rows, pack


@dataclass(slots=True)
class Entry:
    """One document, packed; its vectors become a view of the mirror's own."""

    document_id: str
    page: str
    language: str
    title: str
    crumbs: tuple[str, ...]
    words: tuple[str, ...]
    points: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    sections: Rows
    leads: Rows
    vectors: Floats
    keywords: Packed
    headings: Packed
    summary: Packed
    labels: Packed


def entry(document: StoredDocument, numbers: TermNumbers) -> Entry:
    """Pack a document; a section is what stands below one heading, its lead the first chunk."""
    paths = tuple(dict.fromkeys(chunk.heading_path for chunk in document.chunks))
    at = {path: index for index, path in enumerate(paths)}
    sections = [at[chunk.heading_path] for chunk in document.chunks]
    return Entry(
        document_id=document.document_id,
        page=document.page,
        language=document.language,
        title=document.title,
        crumbs=document.crumbs,
        words=document.words,
        points=tuple(chunk.point for chunk in document.chunks),
        paths=paths,
        sections=np.array(sections, dtype=np.int32),
        leads=np.array([sections.index(index) for index in range(len(paths))], dtype=np.int32),
        vectors=np.stack([chunk.vector for chunk in document.chunks]),
        keywords=pack([chunk.keywords for chunk in document.chunks]),
        headings=pack([_heading(path, document, numbers) for path in paths]),
        summary=pack([document.summary]),
        labels=pack([document.labels]),
    )


class Mirror:
    """The documents of an index side by side; chunks, sections and documents count from 0."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = tuple(entries)
        self.points = [point for entry in entries for point in entry.points]
        chunks = np.array([len(entry.points) for entry in entries], dtype=np.int32)
        sections = np.array([len(entry.paths) for entry in entries], dtype=np.int32)
        self.chunk_starts = _starts(chunks)
        self.document_of = np.repeat(np.arange(len(entries), dtype=np.int32), chunks)
        first_section = _starts(sections)
        self.section_of = _joined(
            [entry.sections + at for entry, at in zip(entries, first_section, strict=True)]
        )
        self.lead_of = _joined(
            [entry.leads + at for entry, at in zip(entries, self.chunk_starts, strict=True)]
        )
        self.vectors = _stacked(entries, self.chunk_starts)
        self.page_names = list(dict.fromkeys(entry.page for entry in entries))
        numbers = {page: index for index, page in enumerate(self.page_names)}
        self.page_of = np.array([numbers[entry.page] for entry in entries], dtype=np.int32)
        self.keywords = Postings([entry.keywords for entry in entries])
        self.headings = Postings([entry.headings for entry in entries])
        self.summary = Postings([entry.summary for entry in entries])
        self.labels = Postings([entry.labels for entry in entries])
        self.heading_weight = self._heading_weights()
        self.centre_length = self._centre_lengths()

    def __len__(self) -> int:
        return len(self.points)

    def chunks_named(self, chunk_ids: Sequence[str]) -> set[int]:
        """Return the numbers of chunks by their ids; unknown ids are left out."""
        if not chunk_ids:
            return set()
        starts = {
            entry.document_id: (int(start), len(entry.points))
            for entry, start in zip(self.entries, self.chunk_starts, strict=True)
        }
        found: set[int] = set()
        for chunk_id in chunk_ids:
            document, _, ordinal = chunk_id.rpartition("#")
            start, count = starts.get(document, (0, 0))
            if ordinal.isascii() and ordinal.isdigit() and int(ordinal) < count:
                found.add(start + int(ordinal))
        return found

    def mean_by_document(self, scores: Floats) -> Floats:
        """Return the mean score of each document's chunks."""
        sums = np.add.reduceat(scores, self.chunk_starts)
        counts = np.diff(np.append(self.chunk_starts, len(scores)))
        means: Floats = (sums / counts).astype(np.float32)
        return means

    def path_of(self, chunk: int) -> tuple[str, ...]:
        """Return the heading path of a chunk."""
        document = int(self.document_of[chunk])
        entry = self.entries[document]
        return entry.paths[int(entry.sections[chunk - int(self.chunk_starts[document])])]

    def _heading_weights(self) -> Floats:
        """Return the sum of the IDF of each section's heading terms."""
        weights = np.zeros(self.headings.count, dtype=np.float32)
        first = 0
        for entry in self.entries:
            idf = self.keywords.idf(entry.headings.terms)
            np.add.at(weights, entry.headings.rows + first, idf)
            first += entry.headings.count
        return weights

    def _centre_lengths(self) -> Floats:
        """Return the length of the mean vector of each document's chunks."""
        centres = [np.linalg.norm(entry.vectors.mean(axis=0)) for entry in self.entries]
        return np.maximum(np.array(centres, dtype=np.float32), np.float32(1e-6))


def _heading(path: tuple[str, ...], document: StoredDocument, numbers: TermNumbers) -> SparseText:
    heading = path[-1] if path else document.title
    found = numbers.of_all(terms(heading, document.language))
    return SparseText(np.unique(found), np.ones(len(np.unique(found)), dtype=np.float32))


def _stacked(entries: Sequence[Entry], starts: Rows) -> Floats:
    """Put all vectors into one matrix and let the entries look at it: none is kept twice."""
    if not entries:
        return np.zeros((0, 0), dtype=np.float32)
    matrix = np.concatenate([entry.vectors for entry in entries])
    for entry, start in zip(entries, starts, strict=True):
        entry.vectors = matrix[start : start + len(entry.points)]
    return matrix


def _starts(counts: Rows) -> Rows:
    starts: Rows = (np.cumsum(counts) - counts).astype(np.int32)
    return starts


def _joined(arrays: Sequence[npt.NDArray[np.int32]]) -> Rows:
    return np.concatenate(arrays).astype(np.int32) if arrays else np.zeros(0, dtype=np.int32)
