"""Reads the terms and headings of the few candidates whose words are compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from knowledge.index.points.layout import KEYWORDS
from knowledge.index.port import ReadableIndex
from knowledge.index.queries import Terms
from knowledge.search.candidates.found_candidates import Candidates

_NO_TERMS = np.zeros(0, dtype=np.uint32)


@dataclass(frozen=True, slots=True)
class ComparedText:
    """The terms of a chunk, and its headings and crumbs without the root, with their language."""

    terms: Terms
    place: tuple[str, str]


async def read_compared_texts(
    index: ReadableIndex, candidates: Candidates, chunks: Sequence[int]
) -> Mapping[int, ComparedText]:
    """Return the texts of candidates; one that is gone meanwhile has no terms."""
    points = [candidates.points[chunk] for chunk in chunks]
    read = await index.read_points(points, ("heading_path",), (KEYWORDS,)) if points else {}
    found: dict[int, ComparedText] = {}
    for chunk, point in zip(chunks, points, strict=True):
        document = candidates.documents[candidates.document_of[chunk]]
        stored = read.get(point)
        headings = () if stored is None else stored.payload["heading_path"]
        text = None if stored is None else stored.texts.get(KEYWORDS)
        place = " ".join((*document.crumbs[1:], *headings)), document.language
        found[chunk] = ComparedText(_NO_TERMS if text is None else text.terms, place)
    return found
