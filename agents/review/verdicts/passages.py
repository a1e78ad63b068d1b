"""The passages of reviewed documents under short ids, and a search in them by words (BM25).

A passage is a clause: a unit of the document, or some sentences of a longer one. It is searched
with the heading above it, and with the sentence that introduces it as an item of a list.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agents.review.requirements.requirement import RuleUnit, TextPlace
from agents.review.requirements.segments import RuleSegment, split_segments
from agents.review.verdicts.verdict import VerdictEvidence
from knowledge.index.bm25 import B, K
from knowledge.index.terms import terms

LONGEST = 900
"""Characters of a passage, unless one sentence is longer.

With 600, the right passage was among the first three of 79 % of the requirements of 184 agreements;
with 900, of 85 %.
"""
HEADING_WEIGHT = 2.0
"""Beside the text of a rule.

With 0, the right passage was among the first three of 58 % of the duties of 56 notices, with 1 of
63 %, with 2 of 66 %; the halves differ alike.
"""
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Passage:
    """A clause of a document; `context` is what introduces it."""

    id: str
    place: TextPlace
    text: str
    language: str = "en"
    context: str = ""

    @property
    def heading(self) -> str:
        """The headings above it."""
        return " > ".join(self.place.heading_path)

    @property
    def evidence(self) -> VerdictEvidence:
        """The passage as evidence, as a whole."""
        return VerdictEvidence(place=self.place, text=self.text)

    def find_quotation(self, quotation: str) -> VerdictEvidence | None:
        """Return the words of a quotation as they stand in the passage; None: they do not."""
        span = find_words(self.text, quotation)
        if span is None:
            return None
        start, end = (self.place.start + at for at in span)
        place = self.place.model_copy(update={"start": start, "end": end})
        return VerdictEvidence(place=place, text=self.text[slice(*span)])


def find_words(text: str, quotation: str) -> tuple[int, int] | None:
    """Return where a quotation stands in a text; spaces, typographic quotes and case may differ."""
    wanted = _fold(quotation)[0].strip()
    if not wanted:
        return None
    folded, places = _fold(text)
    at = folded.find(wanted)
    if at < 0:
        return None
    return places[at], places[at + len(wanted) - 1] + 1


_ALIKE = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', "–": "-", "—": "-"})


def _fold(text: str) -> tuple[str, list[int]]:
    """Return a text for comparing, and the place in the original of each of its characters."""
    signs: list[str] = []
    places: list[int] = []
    for at, sign in enumerate(text.translate(_ALIKE)):
        plain = " " if sign.isspace() else sign.lower()
        if plain == " " and signs[-1:] == [" "]:
            continue
        # A letter whose lower case is longer, such as the Turkish İ, keeps its length.
        signs.append(plain if len(plain) == 1 else sign)
        places.append(at)
    return "".join(signs), places


def cut_passages(units: Iterable[RuleUnit], longest: int = LONGEST) -> tuple[Passage, ...]:
    """Return the passages of the units of documents, named `p1`, `p2` and so on in their order."""
    pieces = [piece for unit in units for piece in _cut_unit(unit, longest)]
    return tuple(
        Passage(
            f"p{number}",
            TextPlace(
                document_id=unit.document_id,
                unit_id=unit.unit_id,
                heading_path=unit.heading_path,
                start=start,
                end=end,
            ),
            unit.text[start:end],
            unit.language,
            context,
        )
        for number, (unit, start, end, context) in enumerate(pieces, start=1)
    )


def _cut_unit(unit: RuleUnit, longest: int) -> Iterator[tuple[RuleUnit, int, int, str]]:
    group: list[RuleSegment] = []
    for segment in split_segments(unit.text):
        if group and segment.end - group[0].start > longest:
            yield _join(unit, group)
            group = []
        group.append(segment)
    if group:
        yield _join(unit, group)


def _join(unit: RuleUnit, group: Sequence[RuleSegment]) -> tuple[RuleUnit, int, int, str]:
    lead = group[0].lead
    return unit, group[0].start, group[-1].end, "" if lead is None else unit.text[slice(*lead)]


class PassageSearch:
    """Ranks passages by how many rare words they share with a text."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = tuple(passages)
        self._counts = [
            Counter(terms(f"{one.heading} {one.context} {one.text}", one.language))
            for one in passages
        ]
        self._documents = Counter(word for own in self._counts for word in own)
        lengths = np.array([max(own.total(), 1) for own in self._counts], dtype=float)
        mean = lengths.mean() if len(lengths) else 1.0
        self._norms = K * (1 - B + B * lengths / mean)

    def find(self, text: str, language: str, most: int, heading: str = "") -> tuple[Passage, ...]:
        """Return the passages closest to a text, the best first; none that shares no word.

        The words of the `heading` above the text say what it is about, and weigh more.
        """
        scores = self._score(text, language)
        if heading:
            scores += HEADING_WEIGHT * self._score(heading, language)
        order = np.argsort(-scores, kind="stable")[:most]
        return tuple(self.passages[int(at)] for at in order if scores[at] > 0)

    def find_each(
        self, texts: Iterable[str], language: str, most: int, at_most: int
    ) -> tuple[Passage, ...]:
        """Return the passages closest to any of the texts in document order.

        Each text has its best first, so that none is left out where there is no room for all.
        """
        found = [self.find(one, language, most) for one in texts]
        chosen: dict[str, Passage] = {}
        for rank in range(most):
            for own in found:
                if rank < len(own) and len(chosen) < at_most:
                    chosen.setdefault(own[rank].id, own[rank])
        return tuple(one for one in self.passages if one.id in chosen)

    def _score(self, text: str, language: str) -> Scores:
        scores = np.zeros(len(self.passages))
        for word in sorted(set(terms(text, language)) & self._documents.keys()):
            count = self._documents[word]
            idf = math.log(1 + (len(self.passages) - count + 0.5) / (count + 0.5))
            found = np.array([own.get(word, 0) for own in self._counts], dtype=float)
            scores += idf * found * (K + 1) / (found + self._norms)
        return scores
