"""The in-memory copy of an index as arrays for the search; immutable, replaced as a whole.

Lists of the best hundred of each level cost a search some of its first places, so every chunk
gets a score on every level. A chunk takes about 3 kB with 384 numbers; texts stay in the index.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from knowledge.index.bm25 import TermNumbers
from knowledge.index.port import Floats, SparseText, StoredDocument
from knowledge.index.terms import terms
from knowledge.search.postings import Packed, Postings, Rows, pack
from knowledge.search.versions import PageVersion, PageVersions

_MOST_ROOTS = 50
_NUMBERING = re.compile(r"^(?:[^\W\d]+\s+)?(?:\d+(?:\.\d+)*[a-z]?|[IVXLC]+)[.):]?\s+(?=\S)")


@dataclass(slots=True)
class MirrorEntry:
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
    names: Packed
    named: tuple[Rows, Rows]
    summary: Packed
    labels: Packed
    kind: str = ""
    stated_version: str = ""


def entry(document: StoredDocument, numbers: TermNumbers) -> MirrorEntry:
    """Pack a document; a section is the content below one heading, its lead the first chunk."""
    paths = tuple(dict.fromkeys(chunk.heading_path for chunk in document.chunks))
    at = {path: index for index, path in enumerate(paths)}
    sections = [at[chunk.heading_path] for chunk in document.chunks]
    names = list(_names(document, paths, sections))
    return MirrorEntry(
        document_id=document.document_id,
        page=f"{document.page}\n{document.stated_version}",
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
        names=pack([_terms(name, document.language, numbers) for name, _ in names]),
        named=_pairs([chunks for _, chunks in names]),
        summary=pack([document.summary]),
        labels=pack([document.labels]),
        kind=document.kind,
        stated_version=document.stated_version,
    )


class Mirror:
    """The documents of an index side by side; chunks, sections and documents count from 0."""

    def __init__(self, entries: Sequence[MirrorEntry]) -> None:
        self.entries = tuple(entries)
        self.languages = tuple(sorted({entry.language for entry in entries}))
        self.points = [point for entry in entries for point in entry.points]
        chunks = np.array([len(entry.points) for entry in entries], dtype=np.int32)
        sections = np.array([len(entry.paths) for entry in entries], dtype=np.int32)
        self.chunk_starts = _starts(chunks)
        self.document_of = np.repeat(np.arange(len(entries), dtype=np.int32), chunks)
        first_section = _starts(sections)
        self.section_of = _join(
            [entry.sections + at for entry, at in zip(entries, first_section, strict=True)]
        )
        self.lead_of = _join(
            [entry.leads + at for entry, at in zip(entries, self.chunk_starts, strict=True)]
        )
        self.vectors = _stack(entries, self.chunk_starts)
        self.page_names = list(dict.fromkeys(entry.page for entry in entries))
        numbers = {page: index for index, page in enumerate(self.page_names)}
        self.page_of = np.array([numbers[entry.page] for entry in entries], dtype=np.int32)
        self.version_of = {
            (int(page), entry.language): document
            for document, (page, entry) in enumerate(zip(self.page_of, entries, strict=True))
        }
        self.keywords = Postings([entry.keywords for entry in entries])
        self.names = Postings([entry.names for entry in entries])
        self.summary = Postings([entry.summary for entry in entries])
        self.labels = Postings([entry.labels for entry in entries])
        self._places: dict[int, frozenset[int]] = {}
        self._roots: frozenset[int] | None = None
        self.name_weight = self._name_weights()
        self.named_name, self.named_chunk = self._pair_names()
        self.centre_length = self._centre_lengths()
        self.kinds = {
            kind: np.repeat(np.array([entry.kind == kind for entry in entries], dtype=bool), chunks)
            for kind in sorted({entry.kind for entry in entries} - {""})
        }
        self._titles: frozenset[str] | None = None
        self.versions = PageVersions(
            [
                PageVersion(entry.page.partition("\n")[0], entry.language, entry.stated_version)
                for entry in entries
            ]
        )

    def __len__(self) -> int:
        return len(self.points)

    def find_earlier_versions(self, document_id: str) -> list[str]:
        """Return the ids of the earlier versions of a document, newest first."""
        positions = (at for at, one in enumerate(self.entries) if one.document_id == document_id)
        return [
            self.entries[at].document_id
            for position in positions
            for at in self.versions.find_earlier(position)
        ]

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

    @property
    def titles(self) -> frozenset[str]:
        """The titles of all documents, in lower case."""
        if self._titles is None:
            self._titles = frozenset(entry.title.casefold() for entry in self.entries)
        return self._titles

    def mean_by_document(self, scores: Floats) -> Floats:
        """Return the mean score of each document's chunks."""
        sums = np.add.reduceat(scores, self.chunk_starts)
        counts = np.diff(np.append(self.chunk_starts, len(scores)))
        means: Floats = (sums / counts).astype(np.float32)
        return means

    def place_of(self, section: int, numbers: TermNumbers) -> frozenset[int]:
        """Return the terms of a section's crumbs, without their root, and headings."""
        known = self._places.get(section)
        if known is None:
            document = int(self.document_of[self.lead_of[section]])
            entry = self.entries[document]
            chunk = int(self.lead_of[section]) - int(self.chunk_starts[document])
            path = entry.paths[int(entry.sections[chunk])]
            place = " ".join((*entry.crumbs[1:], *path))
            known = frozenset(numbers.of_all(terms(place, entry.language)).tolist())
            self._places[section] = known
        return known

    def roots(self, numbers: TermNumbers) -> frozenset[int]:
        """Return the terms of the common beginning of all crumbs."""
        if self._roots is None:
            found = {(entry.crumbs[0], entry.language) for entry in self.entries if entry.crumbs}
            named = (
                numbers.of_all(terms(root, language)).tolist()
                for root, language in sorted(found)[:_MOST_ROOTS]
            )
            self._roots = frozenset(number for numbered in named for number in numbered)
        return self._roots

    def _name_weights(self) -> Floats:
        """Return the sum of the IDF of each name's terms."""
        weights = np.zeros(self.names.count, dtype=np.float32)
        first = 0
        for entry in self.entries:
            idf = self.keywords.idf(entry.names.terms)
            np.add.at(weights, entry.names.rows + first, idf)
            first += entry.names.count
        return weights

    def _pair_names(self) -> tuple[Rows, Rows]:
        """Return pairs: the number of a name, the number of a chunk that it names."""
        names = _starts(np.array([entry.names.count for entry in self.entries], dtype=np.int32))
        return (
            _join([e.named[0] + at for e, at in zip(self.entries, names, strict=True)]),
            _join([e.named[1] + at for e, at in zip(self.entries, self.chunk_starts, strict=True)]),
        )

    def _centre_lengths(self) -> Floats:
        """Return the length of the mean vector of each document's chunks."""
        centres = [np.linalg.norm(entry.vectors.mean(axis=0)) for entry in self.entries]
        return np.maximum(np.array(centres, dtype=np.float32), np.float32(1e-6))


def _names(
    document: StoredDocument, paths: Sequence[tuple[str, ...]], sections: Sequence[int]
) -> Iterator[tuple[str, list[int]]]:
    """Return names with the chunks they name: headings of sections, terms that are defined, crumbs.

    The crumbs of a page, its folder with its title, name the page's first chunk.

    A heading that begins with a number (`Article 4 Scope`, `2.1 Limits`) has a name without it.
    """
    for section, path in enumerate(paths):
        chunks = [chunk for chunk, own in enumerate(sections) if own == section]
        heading = path[-1] if path else document.title
        yield heading, chunks
        bare = _NUMBERING.sub("", heading)
        if bare and bare != heading:
            yield bare, chunks
    for at, chunk in enumerate(document.chunks):
        for term in chunk.defined:
            yield term, [at]
    if len(document.crumbs) > 2:
        yield " ".join(document.crumbs[-2:]), [0]


def _terms(text: str, language: str, numbers: TermNumbers) -> SparseText:
    found = np.unique(numbers.of_all(terms(text, language)))
    return SparseText(found, np.ones(len(found), dtype=np.float32))


def _pairs(chunks: Sequence[Sequence[int]]) -> tuple[Rows, Rows]:
    names = [name for name, own in enumerate(chunks) for _ in own]
    flat = [chunk for own in chunks for chunk in own]
    return np.array(names, dtype=np.int32), np.array(flat, dtype=np.int32)


def _stack(entries: Sequence[MirrorEntry], starts: Rows) -> Floats:
    """Put all vectors into one matrix; the entries hold views of it, so none is stored twice."""
    if not entries:
        return np.zeros((0, 0), dtype=np.float32)
    matrix = np.concatenate([entry.vectors for entry in entries])
    for entry, start in zip(entries, starts, strict=True):
        entry.vectors = matrix[start : start + len(entry.points)]
    return matrix


def _starts(counts: Rows) -> Rows:
    starts: Rows = (np.cumsum(counts) - counts).astype(np.int32)
    return starts


def _join(arrays: Sequence[npt.NDArray[np.int32]]) -> Rows:
    return np.concatenate(arrays).astype(np.int32) if arrays else np.zeros(0, dtype=np.int32)
