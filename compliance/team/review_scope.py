"""Finds in a question which documents are reviewed, and against which rules: by their titles."""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

_FILE = Path(__file__).with_name("scope_words.toml")
_WORD = re.compile(r"[^\W_]{1,60}")
_LEAST_SHARE = 0.6
_LEAST_LETTERS = 4
_MOST_DOCUMENTS = 50


@dataclass(frozen=True, slots=True)
class TitledDocument:
    """A document by its names; `kind` as rules classify its text, empty: not read."""

    id: str
    title: str
    source: str = ""
    language: str = "en"
    kind: str = ""

    @property
    def is_rule(self) -> bool:
        """Whether its title, or else its kind, says that it is a law or another rule."""
        words = _split(self.title)
        if words & _load("reviewed"):
            return False
        endings = tuple(_load("rule_endings"))
        named = bool(words & _load("rules")) or any(word.endswith(endings) for word in words)
        return named or self.kind == "law"


@dataclass(frozen=True, slots=True)
class FoundScope:
    """The documents of a review; `notes` name assumptions, and missing ones."""

    documents: tuple[TitledDocument, ...] = ()
    against: tuple[TitledDocument, ...] = ()
    notes: tuple[str, ...] = ()


def find_scope(question: str, documents: Sequence[TitledDocument]) -> FoundScope:
    """Return the documents that a question names, by their roles.

    Where it names none for a role and only one document has that role, that one is assumed.
    """
    named = list_named(question, documents)
    rules = [one for one in named if one.is_rule]
    reviewed = [one for one in named if not one.is_rule]
    if not rules and len(reviewed) > 1:
        rules = [one for one in reviewed if _follows_against(question, one)]
        rules = rules if len(rules) < len(reviewed) else []
        reviewed = [one for one in reviewed if one not in rules]
    notes: list[str] = []
    if not rules:
        rules = _assume([one for one in documents if one.is_rule], "law or rule", notes)
    if not reviewed:
        others = [one for one in documents if not one.is_rule and one not in rules]
        reviewed = _assume(others, "document to review", notes)
    return FoundScope(tuple(reviewed), tuple(rules), tuple(notes))


def _assume(
    candidates: Sequence[TitledDocument], role: str, notes: list[str]
) -> list[TitledDocument]:
    if len(candidates) == 1:
        notes.append(f"the question names no {role}: {candidates[0].title!r} is the only one")
        return list(candidates)
    notes.append(f"the question names no {role}, and there are {len(candidates)} of them")
    return []


def list_named(question: str, documents: Sequence[TitledDocument]) -> list[TitledDocument]:
    """Return the documents most of whose name the question has, or a word that only few have."""
    asked = _split(question) - _load("empty")
    names = {one.id: _list_names(one) for one in documents}
    counts = Counter(word for own in names.values() for word in frozenset().union(*own))
    weights = {word: math.log(1 + len(documents) / count) for word, count in counts.items()}
    found: list[tuple[float, TitledDocument]] = []
    for one in documents:
        share = max((_share(own & asked, own, weights) for own in names[one.id]), default=0.0)
        rare = {
            word
            for word in frozenset().union(*names[one.id]) & asked
            if counts[word] == 1 and len(word) >= _LEAST_LETTERS and not word.isdigit()
        }
        if share >= _LEAST_SHARE or rare:
            found.append((max(share, 0.5 * bool(rare)), one))
    found.sort(key=lambda pair: -pair[0])
    return [one for _, one in found[:_MOST_DOCUMENTS]]


def _share(shared: Iterable[str], own: Iterable[str], weights: Mapping[str, float]) -> float:
    total = sum(weights[word] for word in own)
    return sum(weights[word] for word in shared) / total if total else 0.0


def _list_names(document: TitledDocument) -> tuple[frozenset[str], ...]:
    stem = PurePosixPath(document.source).stem
    names = (_split(document.title), _split(stem.replace("_", " ").replace("-", " ")))
    return tuple(own for name in names if (own := name - _load("empty")))


def _follows_against(question: str, document: TitledDocument) -> bool:
    plain = question.casefold()
    words = [word for name in _list_names(document) for word in name]
    places = [place for word in words if (place := plain.find(word)) >= 0]
    cues = [place for cue in _load("against") if (place := plain.rfind(f" {cue} ")) >= 0]
    return bool(places and cues) and min(places) > min(cues)


def _split(text: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(text))


@cache
def _load(key: str) -> frozenset[str]:
    tables: dict[str, list[str]] = tomllib.loads(_FILE.read_text("utf-8"))
    return frozenset(tables[key])
