"""The names by which a question may refer to a chunk.

These are the heading of its section and the terms that it defines. For the first chunk of a page,
they include the keywords stated by the source, and the page's folder with its title. A heading that
begins with a number (`Article 4 Scope`, `2.1 Limits`) is a name both with and without the number.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np

from knowledge.document import Chunk, Document
from knowledge.index.bm25 import TermNumbers
from knowledge.index.queries import SparseText
from knowledge.index.terms import terms
from knowledge.rule_descriptions import definitions

_NUMBERING = re.compile(r"^(?:[^\W\d]+\s+)?(?:\d+(?:\.\d+)*[a-z]?|[IVXLC]+)[.):]?\s+(?=\S)")


def list_names(document: Document, chunk: Chunk, numbers: TermNumbers) -> list[list[int]]:
    """Return the numbers of the terms in each name of a chunk."""
    names = (
        np.unique(numbers.of_all(terms(name, document.language))).tolist()
        for name in _list_texts(document, chunk)
    )
    return [list(name) for name in dict.fromkeys(map(tuple, names)) if name]


def list_defined(document: Document, chunk: Chunk) -> list[str]:
    """Return the names of a chunk except its heading; for the first chunk, they include the stated
    keywords.
    """
    stated = document.stated_keywords if chunk.ordinal == 0 else ()
    return list(dict.fromkeys((*definitions(chunk.text), *stated)))


def encode_names(names: Sequence[Sequence[int]]) -> SparseText:
    """Return the terms in all names of a chunk; terms in shorter names have a higher weight."""
    weights: dict[int, float] = {}
    for name in names:
        for term in name:
            weights[term] = max(weights.get(term, 0.0), float(len(name) ** -0.5))
    return SparseText(
        np.fromiter(weights.keys(), dtype=np.uint32, count=len(weights)),
        np.fromiter(weights.values(), dtype=np.float32, count=len(weights)),
    )


def _list_texts(document: Document, chunk: Chunk) -> Iterator[str]:
    heading = chunk.heading_path[-1] if chunk.heading_path else document.title
    yield heading
    yield _NUMBERING.sub("", heading)
    yield from list_defined(document, chunk)
    if chunk.ordinal == 0 and len(document.crumbs) > 2:
        yield " ".join(document.crumbs[-2:])
