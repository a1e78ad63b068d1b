"""Chooses among many tools those that a task needs, by the texts of procedures that name them."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from llm.offline.support import terms

_NUMBER = re.compile(r"_\d{1,9}\Z")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_DESCRIPTION_CHARACTERS = 200
_LEAST_WORDS = 3
_RANK_SCALE = 10.0
_NAME, _PAGE, _DESCRIPTION, _INPUTS, _BIAS = 3.86, 2.52, 2.16, 0.27, -6.51
_LEAST = -1.0
"""The weights of a logistic model, and its threshold; fitted on half of the tasks of a desk."""


@dataclass(frozen=True, slots=True)
class _TaskWords:
    """The words of a task: of each sentence, and all of them."""

    sentences: tuple[frozenset[str], ...]
    every: frozenset[str]


def choose_tools(
    task: str,
    tools: Mapping[str, str],
    ranks: Mapping[str, int],
    inputs: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> list[str]:
    """Return the names of tools, the surest first; `tools` have their descriptions.

    Only names of the mapping are returned. For a tool speak a sentence of the task that has the
    words of its name, a page among the first that names it (`ranks` of `rank_naming`), the words of
    its description, and a sentence that gives the values of its `inputs`: rare inputs, such as a
    date of birth, say most.
    """
    rarity = _measure_rarity(tools)
    parts = (one for one in _SENTENCE_END.split(task) if len(one.split()) >= _LEAST_WORDS)
    words = _TaskWords(tuple(frozenset(terms(one)) for one in parts), frozenset(terms(task)))
    given = _rate_inputs(words, {name: inputs.get(name, ()) for name in tools})
    scores = {
        name: _rate(name, about, words, ranks.get(name), rarity) + _INPUTS * given[name]
        for name, about in tools.items()
    }
    return sorted(
        (name for name, score in scores.items() if score > _LEAST),
        key=lambda name: -scores[name],
    )


def rank_naming(tools: Iterable[str], pages: Sequence[str]) -> dict[str, int]:
    """Return the position of the first page that names a tool, for each tool that a page names."""
    found = ((name, _find_page(name, pages)) for name in tools)
    return {name: rank for name, rank in found if rank is not None}


def _find_page(name: str, pages: Sequence[str]) -> int | None:
    return next((rank for rank, text in enumerate(pages) if name in text), None)


def _rate(
    name: str,
    about: str,
    task: _TaskWords,
    rank: int | None,
    rarity: Mapping[str, float],
) -> float:
    own = _split_name(name)
    total = sum(rarity[word] for word in sorted(own))
    spoken = max((_sum_rarity(own & one, rarity) / total for one in task.sentences), default=0.0)
    named = 0.0 if rank is None else 1 / (1 + rank / _RANK_SCALE)
    described = frozenset(terms(about[:_DESCRIPTION_CHARACTERS]))
    share = len(described & task.every) / max(1, len(described))
    return _NAME * spoken + _PAGE * named + _DESCRIPTION * share + _BIAS


def _rate_inputs(task: _TaskWords, inputs: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """Return, of each tool, the rarity of the inputs that one sentence gives together."""
    words = {name: frozenset(map(_split_name, own)) for name, own in inputs.items()}
    counts = Counter(one for own in words.values() for one in own)
    rarity = {one: math.log(1 + len(words) / count) for one, count in counts.items()}
    return {
        name: max(
            (sum(sorted(rarity[one] for one in own if one <= words)) for words in task.sentences),
            default=0.0,
        )
        for name, own in words.items()
    }


def _split_name(name: str) -> frozenset[str]:
    return frozenset(terms(_NUMBER.sub("", name).replace("_", " "))) or frozenset({name})


def _sum_rarity(words: frozenset[str], rarity: Mapping[str, float]) -> float:
    return sum(rarity[word] for word in sorted(words))


def _measure_rarity(tools: Mapping[str, str]) -> dict[str, float]:
    names = [_split_name(name) for name in tools]
    every = {word for words in names for word in words}
    return {
        word: math.log(1 + len(names) / sum(word in words for words in names)) for word in every
    }
