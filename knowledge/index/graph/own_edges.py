"""Finds the edges of a passage within its own document.

These are the names that it mentions, the passages in its document that it refers to ("see Section
4", "as described in 'Fees'"), and the passage above it, which is the first one in the enclosing
section.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knowledge.document import Chunk
from knowledge.index.graph.called_names import split_words
from knowledge.index.graph.mentioned_names import find_mentioned_names

_REFERENCE = re.compile(
    r"\b(?:section|sec|chapter|article|art|annex|appendix|clause|paragraph|rule|part|step|"
    r"abschnitt|kapitel|artikel|anhang|ziffer|annexe|capitolo|sezione|articolo)\.?\s{1,3}"
    r"(\d{1,4}(?:[.-]\d{1,4}){0,5}|[IVXLC]{1,7}|[A-Z])(?!\w)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"^(?:[^\W\d]{1,20}\.?\s{1,3})?(\d{1,4}(?:[.-]\d{1,4}){0,5}|[IVXLC]{1,7})(?!\w)"
)
_SEE = re.compile(
    r"\b(?:see|refer to|described in|defined in|set out in|listed in|siehe|voir|vedi|v\u00e9ase)\b"
    r"(?: also| the)?\W{1,3}([^\n.;:()]{3,80})",
    re.IGNORECASE,
)
_MOST_REFERENCES = 20
_LEAST_HEADING = 4


@dataclass(frozen=True, slots=True)
class OwnEdges:
    """The edges of a passage; `references` and `parent` are ordinals within its document."""

    mentioned: tuple[str, ...]
    references: tuple[int, ...] = ()
    parent: int | None = None


def find_own_edges(title: str, chunks: Sequence[Chunk]) -> list[OwnEdges]:
    """Return the edges of each chunk of a document, in order."""
    leads: dict[tuple[str, ...], int] = {}
    for chunk in chunks:
        leads.setdefault(chunk.heading_path, chunk.ordinal)
    numbers, names = _index_headings(leads)
    return [
        OwnEdges(
            mentioned=tuple(find_mentioned_names(f"{title}. {chunk.text}")),
            references=_find_references(chunk, numbers, names, leads),
            parent=_find_parent(chunk, leads),
        )
        for chunk in chunks
    ]


def _index_headings(
    leads: Mapping[tuple[str, ...], int],
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the first passage below each heading, by the number and by the words of the
    heading.
    """
    numbers: dict[str, int] = {}
    names: dict[str, int] = {}
    for path, ordinal in leads.items():
        if not path:
            continue
        numbered = _NUMBERED.match(path[-1])
        if numbered is not None:
            numbers.setdefault(numbered[1].rstrip(".").casefold(), ordinal)
        bare = path[-1][numbered.end() :] if numbered is not None else ""
        for name in (" ".join(split_words(text)) for text in (path[-1], bare)):
            if len(name) >= _LEAST_HEADING:
                names.setdefault(name, ordinal)
    return numbers, names


def _find_references(
    chunk: Chunk,
    numbers: Mapping[str, int],
    names: Mapping[str, int],
    leads: Mapping[tuple[str, ...], int],
) -> tuple[int, ...]:
    named = [numbers.get(number.casefold()) for number in _REFERENCE.findall(chunk.text)]
    for following in _SEE.findall(chunk.text):
        words = split_words(following)
        runs = (" ".join(words[:length]) for length in range(len(words), 0, -1))
        named.append(next((names[run] for run in runs if run in names), None))
    own = leads[chunk.heading_path]
    others = (
        ordinal for ordinal in named if ordinal is not None and ordinal not in {own, chunk.ordinal}
    )
    return tuple(dict.fromkeys(others))[:_MOST_REFERENCES]


def _find_parent(chunk: Chunk, leads: Mapping[tuple[str, ...], int]) -> int | None:
    own = leads[chunk.heading_path]
    if own != chunk.ordinal:
        return own
    for length in range(len(chunk.heading_path) - 1, -1, -1):
        above = leads.get(chunk.heading_path[:length])
        if above is not None and above != chunk.ordinal:
            return above
    return None
