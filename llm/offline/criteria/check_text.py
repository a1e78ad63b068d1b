"""Checks by rules whether a text meets a criterion, and quotes the sentence that does.

`clause_kinds.toml` has rules for clauses that contracts usually have. For any other criterion a
sentence must have most of its words. The rules were chosen with three of five portfolios
of contracts in view; `docs/measurements/evaluation.md` has the figures of the other two.
"""

import math
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import zip_longest

from llm.offline.support import terms, weight_of

_OTHER_SIGNS = re.compile(r"[^\w%]+")
_SENTENCE_END = re.compile(r"(?<=[.;:])\s+(?=[A-Z(\d])|\n\s*\n")
_NAMES = re.compile(r"\b(?:[A-Z][\w.'-]*)(?: (?:of )?[A-Z][\w.'-]*)*")
_LEAST_CHARACTERS = 30
_LEAST_SHARE = 0.5
"""The share of a criterion's words that one sentence must have where no rule knows its kind."""
_NO_WORDS = frozenset(
    terms(
        "is are there a the any party contract agreement clause includes does rules provisions "
        "terms requirements conditions about on"
    )
)

_Group = tuple[bool, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ClauseKind:
    """A kind of clause with the rules by which a sentence states it.

    Each rule is a sequence of groups of beginnings of words; a sentence has one of each group, or
    none of a group that excludes. `has_names`: the names in the criterion are in the sentence too.
    """

    name: str
    asked: tuple[_Group, ...]
    rules: tuple[tuple[_Group, ...], ...]
    has_names: bool = False


@dataclass(frozen=True, slots=True)
class MetCriterion:
    """Whether a text meets a criterion.

    `quotation` is the sentence that meets it, `position` the number of the text that it is from;
    `kind` is the kind of clause that was looked for, empty where the words were compared.
    """

    is_met: bool
    quotation: str = ""
    position: int = -1
    kind: str = ""
    score: float = 0.0


def check_texts(criterion: str, texts: Sequence[str], headings: Sequence[str] = ()) -> MetCriterion:
    """Return whether the texts of one document meet a criterion.

    `headings` are those of the texts, or none: words of a heading count for its sentences.
    """
    kind = find_kind(criterion)
    if kind is None:
        return _compare_words(criterion, texts, headings)
    names = tuple(_normalise(name) for name in _list_names(criterion)) if kind.has_names else ()
    for position, text in enumerate(texts):
        for sentence in split_sentences(text):
            plain = _normalise(sentence)
            if all(name in plain for name in names) and _is_stated(plain, kind):
                return MetCriterion(True, " ".join(sentence.split()), position, kind.name, 1.0)
    return MetCriterion(False, kind=kind.name)


def find_kind(criterion: str) -> ClauseKind | None:
    """Return the kind of clause that a criterion asks for, or None."""
    plain = _normalise(criterion)
    return next((kind for kind in _read_kinds() if _has_groups(plain, kind.asked)), None)


def split_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text that are long enough to state something."""
    return (part for part in _SENTENCE_END.split(text) if len(part) > _LEAST_CHARACTERS)


def _compare_words(criterion: str, texts: Sequence[str], headings: Sequence[str]) -> MetCriterion:
    """Return the sentence with most of the criterion's words, rare words of the document first."""
    sentences = [
        (position, sentence, frozenset(terms(f"{heading}\n{sentence}")))
        for position, (text, heading) in enumerate(zip_longest(texts, headings, fillvalue=""))
        for sentence in split_sentences(text)
    ]
    weights = _weigh(criterion, [own for _, _, own in sentences])
    total = sum(weights.values())
    best = MetCriterion(False)
    for position, sentence, own in sentences:
        score = sum(weights[term] for term in weights.keys() & own) / (total or 1.0)
        if score > best.score:
            met = score >= _LEAST_SHARE
            quotation = " ".join(sentence.split()) if met else ""
            best = MetCriterion(met, quotation, position if met else -1, score=score)
    return best


def _weigh(criterion: str, sentences: Sequence[frozenset[str]]) -> dict[str, float]:
    """Return the weights of a criterion's words: higher for those that few sentences have.

    A word that no sentence has weighs like one that a single sentence has.
    """
    asked = {term: weight_of(term) for term in terms(criterion) if term not in _NO_WORDS}
    counts = {term: sum(term in own for own in sentences) for term in asked}
    return {
        term: weight * math.log(1 + len(sentences) / max(1, counts[term]))
        for term, weight in asked.items()
    }


def _is_stated(plain: str, kind: ClauseKind) -> bool:
    return any(_has_groups(plain, rule) for rule in kind.rules)


def _has_groups(plain: str, groups: Sequence[_Group]) -> bool:
    return all(any(one in plain for one in words) != excludes for excludes, words in groups)


@cache
def _read_kinds() -> tuple[ClauseKind, ...]:
    text = files("llm.offline.criteria").joinpath("clause_kinds.toml").read_text("utf-8")
    return tuple(
        ClauseKind(
            name=row["name"],
            asked=tuple(map(_read_group, row["asked"])),
            rules=tuple(tuple(map(_read_group, rule)) for rule in row["rules"]),
            has_names=row.get("names", False),
        )
        for row in tomllib.loads(text)["kind"]
    )


def _read_group(text: str) -> _Group:
    words = (_normalise(one).rstrip() for one in text.removeprefix("!").split("|"))
    return text.startswith("!"), tuple(one for one in words if one)


def _list_names(criterion: str) -> list[str]:
    """Return the names after the first word, which begins with a capital anyway."""
    return _NAMES.findall(criterion.partition(" ")[2])


def _normalise(text: str) -> str:
    return f" {' '.join(_OTHER_SIGNS.sub(' ', text.lower()).split())} "
