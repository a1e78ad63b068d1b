"""A document as passages that requirements are compared with.

A `PreparedDocument` is made once per document and used for every requirement.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from compliance.errors import EmptyDocumentError
from compliance.requirements.requirement import RuleUnit, TextPlace
from compliance.requirements.segments import split_segments
from compliance.verdicts.polarity import ClausePolarity, list_clause_polarities
from compliance.wording.thesaurus import find_features

Vector = Sequence[float] | npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
_WIDEST_LIST = 12
_CONTINUES = (":", ";", ",", "or", "and", "oder", "und")


@dataclass(frozen=True, slots=True)
class DocumentPassage:
    """A sentence, item or paragraph; `vector` is L2-normalised, None: not embedded."""

    place: TextPlace
    text: str
    vector: Vector | None = None


class PreparedDocument:
    """Passages with what comparing needs; raises `EmptyDocumentError` for none."""

    def __init__(self, passages: Iterable[DocumentPassage], language: str = "en") -> None:
        self.passages = tuple(one for one in passages if one.text.strip())
        self.language = language
        if not self.passages:
            raise EmptyDocumentError("expected a document with text, found none")
        self.features = tuple(find_features(one.text, language) for one in self.passages)
        self.leads = find_leads([one.text for one in self.passages])
        self.counts = Counter(feature for one in self.features for feature in one)

    def __len__(self) -> int:
        return len(self.passages)

    @cached_property
    def joint_features(self) -> tuple[frozenset[str], ...]:
        """Of each passage, its features and those of the passage that introduces it."""
        return tuple(
            own if lead is None else own | self.features[lead]
            for own, lead in zip(self.features, self.leads, strict=True)
        )

    @cached_property
    def lengths(self) -> Floats:
        """Of each passage, log(1 + number of words)."""
        return np.array([math.log1p(len(one.text.split())) for one in self.passages])

    @cached_property
    def clauses(self) -> tuple[tuple[ClausePolarity, ...], ...]:
        """Of each passage, its clauses with their polarity."""
        return tuple(list_clause_polarities(one.text, self.language) for one in self.passages)

    @cached_property
    def vectors(self) -> npt.NDArray[np.float32] | None:
        """The vectors as rows; None where any is missing."""
        if any(one.vector is None for one in self.passages):
            return None
        return np.array([one.vector for one in self.passages], dtype=np.float32)

    def weigh(self, feature: str) -> float:
        """Return the information of a feature within the document (IDF, as of BM25)."""
        count = self.counts.get(feature, 0)
        return math.log(1 + (len(self.passages) - count + 0.5) / (count + 0.5))


def split_passages(units: Iterable[RuleUnit]) -> tuple[DocumentPassage, ...]:
    """Return the sentences and items of the units of a document as passages without vectors."""
    return tuple(
        DocumentPassage(
            TextPlace(
                document_id=unit.document_id,
                unit_id=unit.unit_id,
                heading_path=unit.heading_path,
                start=segment.start,
                end=segment.end,
            ),
            unit.text[segment.start : segment.end],
        )
        for unit in units
        for segment in split_segments(unit.text)
    )


def find_leads(texts: Sequence[str]) -> tuple[int | None, ...]:
    """Return for each passage the index of the one that introduces it as an item of a list."""
    leads: list[int | None] = []
    current: int | None = None
    for at, text in enumerate(texts):
        lead = None
        if text.rstrip().endswith(":"):
            current = at
        elif current is not None:
            before = texts[at - 1].rstrip()
            continues = at - current <= _WIDEST_LIST and before.endswith(_CONTINUES)
            lead = current = current if continues else None
        leads.append(lead)
    return tuple(leads)
