"""Measures how far a passage supports a claim, in any script.

The score combines two shares: that of the claim's words that the passage contains, weighted by
their information, and that of its word pairs. Scripts without spaces are compared by character
n-grams. Numbers, code and identifiers are checked separately: the passage must contain them
unchanged.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from citations.claims import marker, without_citations
from llm.offline.phrases import FUNCTION_WORDS
from llm.offline.words import words

_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+")
_READ_AT_ONCE = 4000
_STEM_LETTERS = 6
_SIGNS = 3
_FUNCTION_WEIGHT = 0.25
_NUMBER_WEIGHT = 1.5
_PAIRS_SHARE = 0.2

_CODE = re.compile(r"`([^`\n]+)`")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_IDENTIFIER = re.compile(
    r"https?://[^\s)>\]]+"
    r"|(?<![\w/])(?:--?[A-Za-z][\w-]+|/[A-Za-z][\w./{}-]+)"
    r"|\b[A-Za-z]+(?:_[A-Za-z0-9]+)+\b|\b[a-z]+[A-Z]\w*\b"
    r"|\b(?=[A-Za-z-]{0,80}\d)(?=[\d-]{0,80}[A-Za-z])[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*\b"
)
_SEPARATOR = re.compile("(?<=\\d)[.,\u00a0\u202f](?=\\d{3}(?!\\d))")
_SPACE = re.compile(r"\s+")
_SPELLED = {
    word: str(number)
    for numbers in (
        "one two three four five six seven eight nine ten eleven twelve",
        "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "un deux trois quatre cinq six sept huit neuf dix onze douze",
    )
    for number, word in enumerate(numbers.split(), start=1)
}


def support(claim: str, passage: str) -> float:
    """Return the weighted share, 0 to 1, of the words of `claim` that `passage` contains."""
    claimed, given = terms(without_citations(claim)), terms(passage)
    if not claimed:
        return 1.0
    known = set(given)
    weights = [weight_of(term) for term in claimed]
    shared = [w for term, w in zip(claimed, weights, strict=True) if term in known]
    share = sum(shared) / sum(weights)
    pairs = list(pairwise(claimed))
    if not pairs:
        return share
    known_pairs = set(pairwise(given))
    paired = sum([pair in known_pairs for pair in pairs]) / len(pairs)
    return (1 - _PAIRS_SHARE) * share + _PAIRS_SHARE * paired


def terms(text: str, *, cut: bool = True) -> list[str]:
    """Return the words of `text`; with `cut` their stems, without endings."""
    found: list[str] = []
    for word in _words(text):
        if _UNSPACED.fullmatch(word) and len(word) > _SIGNS:
            found += [word[at : at + _SIGNS] for at in range(len(word) - _SIGNS + 1)]
        else:
            whole = not cut or word.isdigit()
            stem = word if whole else word[:_STEM_LETTERS].removesuffix("s")
            found.append(_SPELLED.get(word, stem))
    return found


def _words(text: str) -> Iterator[str]:
    """Yield the words of a whole text; `words` alone reads only the beginning."""
    start = 0
    while start < len(text):
        end = start + _READ_AT_ONCE
        if end < len(text):
            space = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
            end = space + 1 if space > start else end
        yield from words(text[start:end])
        start = end


def weight_of(term: str) -> float:
    """Return the weight of a term: its amount of information."""
    if term in FUNCTION_WORDS:
        return _FUNCTION_WEIGHT
    has_digit = not term.isalpha() and any(sign.isdigit() for sign in term)
    return _NUMBER_WEIGHT if has_digit else 1.0


def foreign_facts(claim: str, passage: str) -> tuple[str, ...]:
    """Return the numbers, identifiers and pieces of code in `claim` that `passage` lacks."""
    text = without_citations(claim)
    text = text[len(marker(text)) :]
    flat = _flat(passage)
    exact = dict.fromkeys((*_CODE.findall(text), *_IDENTIFIER.findall(_CODE.sub(" ", text))))
    missing = [fact for fact in exact if _flat(fact).rstrip(".,;:") not in flat]
    numbers = numbers_of(passage) | {_SPELLED[word] for word in _words(passage) if word in _SPELLED}
    missing += [number for number in sorted(numbers_of(text)) if number not in numbers]
    return tuple(dict.fromkeys(missing))


def matter_of(text: str) -> frozenset[str]:
    """Return the words of a text that carry its matter: no function words, and no numbers."""
    return frozenset(term for term in terms(text) if weight_of(term) == 1.0)


def measure_likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of words that two sets have in common, 0 to 1; of empty sets 0."""
    both = one | other
    return len(one & other) / len(both) if both else 0.0


def numbers_of(text: str) -> set[str]:
    """Return the numbers in `text`, without separators of thousands."""
    return set(_NUMBER.findall(_SEPARATOR.sub("", text)))


def _flat(text: str) -> str:
    return _SPACE.sub(" ", text.replace("`", "").replace("*", "")).casefold().strip()
