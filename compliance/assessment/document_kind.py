"""Classifies a document in five dimensions: type, domain, complexity, language, sensitivity.

A rule: the cues of each class are counted. The share says how clear the result is.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from compliance.requirements.segments import split_segments
from compliance.wording.cues import RuleKind, count_cues, split_words

_FILE = Path(__file__).with_name("document_kinds.toml")
_CHARACTERS = 200_000
_UNKNOWN = "other"
_LONG_SENTENCE, _VERY_LONG_SENTENCE = 18.0, 28.0
_REFERENCE = re.compile(
    r"\b(?:Article|Section|Clause|Annex|Artikel|Abschnitt|§)\s?\d", re.IGNORECASE
)


class ClassifiedDimension(BaseModel, frozen=True):
    """The class in one dimension, its share of all cues of the dimension (0 to 1), and the cues."""

    value: str
    share: float = Field(ge=0.0, le=1.0)
    cues: tuple[str, ...] = ()


class DocumentClassification(BaseModel, frozen=True):
    """A document in five dimensions."""

    document_type: ClassifiedDimension
    domain: ClassifiedDimension
    complexity: Literal["low", "medium", "high"]
    complexity_score: int = Field(ge=0, le=100)
    language: str
    sensitivity: ClassifiedDimension


def classify_text(text: str, language: str, title: str = "") -> DocumentClassification:
    """Return the five dimensions of a document; `language` is the detected one, ISO 639-1."""
    plain = f"{title} {text}"[:_CHARACTERS]
    words = Counter(word.text for word in split_words(plain))
    folded = plain.casefold()
    score = _score_complexity(plain, language)
    return DocumentClassification(
        document_type=_choose("document_type", words, folded),
        domain=_choose("domain", words, folded),
        complexity="low" if score < 34 else "medium" if score < 67 else "high",
        complexity_score=score,
        language=language,
        sensitivity=_choose_sensitivity(words, folded),
    )


def _choose(dimension: str, words: Mapping[str, int], text: str) -> ClassifiedDimension:
    counts = {
        name: {cue: _count(cue, words, text) for cue in cues}
        for name, cues in _load_cues()[dimension].items()
    }
    sums = {name: sum(found.values()) for name, found in counts.items()}
    total = sum(sums.values())
    if not total:
        return ClassifiedDimension(value=_UNKNOWN, share=0.0)
    best = max(sums, key=lambda name: sums[name])
    cues = tuple(cue for cue, count in counts[best].items() if count)
    return ClassifiedDimension(value=best, share=round(sums[best] / total, 3), cues=cues)


def _choose_sensitivity(words: Mapping[str, int], text: str) -> ClassifiedDimension:
    """Return the most sensitive class that has cues: one mention of health data counts."""
    for name, cues in _load_cues()["sensitivity"].items():
        found = tuple(cue for cue in cues if _count(cue, words, text))
        if found:
            return ClassifiedDimension(
                value=name, share=round(min(1.0, len(found) / 3), 3), cues=found
            )
    return ClassifiedDimension(value="public", share=1.0)


def _count(cue: str, words: Mapping[str, int], text: str) -> int:
    return text.count(cue) if " " in cue else words.get(cue, 0)


def _score_complexity(text: str, language: str) -> int:
    """Return 0 to 100 from the length of sentences, of the text, references and conditions."""
    segments = split_segments(text)
    lengths = [len(text[one.start : one.end].split()) for one in segments] or [0]
    mean = sum(lengths) / len(lengths)
    words = split_words(text)
    rules = sum(count_cues(words, language, kind) for kind in RuleKind)
    conditions = count_cues(words, language, "condition")
    per_thousand = 1000 / max(len(words), 1)
    score = 20 * (mean > _LONG_SENTENCE) + 15 * (mean > _VERY_LONG_SENTENCE)
    score += min(25, len(words) // 400)
    score += min(20, int(len(_REFERENCE.findall(text)) * per_thousand))
    score += min(20, int((rules + conditions) * per_thousand / 5))
    return min(100, score)


@cache
def _load_cues() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    tables: dict[str, dict[str, list[str]]] = tomllib.loads(_FILE.read_text("utf-8"))
    return {
        dimension: {name: tuple(cues) for name, cues in classes.items()}
        for dimension, classes in tables.items()
    }
