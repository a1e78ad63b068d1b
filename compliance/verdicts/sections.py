"""Finds the sections of a rule that govern a case: the search from a document to the law.

The units of a rule are short and a case is long: one unit says little. A section is ranked by the
sum of its best units, by words (BM25) and by meaning (cosines), and by how many other sections
name it: a provision that the rule builds on governs more cases. Each is compared with the other
sections.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compliance.verdicts.passages import Floats, Vector
from knowledge.index.bm25 import B, K
from knowledge.index.terms import terms

_BY_WORDS = 8
_BY_MEANING = 20
_NAMED_WEIGHT = 0.4
_NAME = re.compile(r"\w+(?:\.\w+)*")


@dataclass(frozen=True, slots=True)
class SectionUnit:
    """A unit of a rule, the section it belongs to, and the heading above it."""

    unit_id: str
    section: str
    text: str
    heading: str = ""
    vector: Vector | None = None


class SectionRanking:
    """Ranks the sections of one rule for cases; made once per rule."""

    def __init__(self, units: Sequence[SectionUnit], language: str = "en") -> None:
        self.units = tuple(units)
        self.sections = tuple(dict.fromkeys(unit.section for unit in units))
        self._language = language
        self._words = [Counter(terms(f"{one.heading} {one.text}", language)) for one in units]
        self._lengths = np.array([max(counts.total(), 1) for counts in self._words], dtype=float)
        self._counts = Counter(word for counts in self._words for word in counts)
        self._members = [
            np.array([at for at, unit in enumerate(units) if unit.section == section])
            for section in self.sections
        ]
        counts = [len(names) for names in find_naming_sections(units).values()]
        self._named = _standardise(np.log1p(np.array(counts, dtype=float)))

    def rank_sections(self, case: str, vector: Vector | None = None) -> tuple[str, ...]:
        """Return all sections, the one that most concerns a case first."""
        scores = _standardise(self._sum_best(self._score_words(case), _BY_WORDS))
        vectors = self._vectors()
        if vector is not None and vectors is not None:
            cosines = np.asarray(vectors @ np.asarray(vector, dtype=np.float32), dtype=float)
            scores = scores + _standardise(self._sum_best(cosines, _BY_MEANING))
        scores = scores + _NAMED_WEIGHT * self._named
        return tuple(self.sections[at] for at in np.argsort(-scores, kind="stable"))

    def _score_words(self, case: str) -> Floats:
        scores = np.zeros(len(self.units))
        norm = K * (1 - B + B * self._lengths / self._lengths.mean())
        for word in sorted(set(terms(case, self._language)) & self._counts.keys()):
            count = self._counts[word]
            idf = math.log(1 + (len(self.units) - count + 0.5) / (count + 0.5))
            found = np.array([counts.get(word, 0) for counts in self._words], dtype=float)
            scores += idf * found * (K + 1) / (found + norm)
        return scores

    def _sum_best(self, scores: Floats, most: int) -> Floats:
        return np.array([np.sort(scores[own])[::-1][:most].sum() for own in self._members])

    def _vectors(self) -> npt.NDArray[np.float32] | None:
        rows = [unit.vector for unit in self.units]
        return None if any(row is None for row in rows) else np.array(rows, dtype=np.float32)


def find_naming_sections(units: Sequence[SectionUnit]) -> dict[str, set[str]]:
    """Return for each section, in order, the other sections whose text has its name."""
    found: dict[str, set[str]] = {unit.section: set() for unit in units}
    by_first: dict[str, list[tuple[list[str], str]]] = {}
    for section in found:
        name = _NAME.findall(section.lower())
        if any(map(str.isdigit, section)) and not section.isdigit():  # "3" may be any number
            by_first.setdefault(name[0], []).append((name, section))
    for unit in units:
        words = _NAME.findall(unit.text.lower())
        for at, word in enumerate(words):
            for name, section in by_first.get(word, ()):
                if section != unit.section and words[at : at + len(name)] == name:
                    found[section].add(unit.section)
    return found


def _standardise(values: Floats) -> Floats:
    found: Floats = (values - values.mean()) / max(float(values.std()), 1e-9)
    return found
