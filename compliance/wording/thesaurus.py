"""Maps the words of rules and agreements to concepts, so that drafters' synonyms meet.

A text becomes *features*: the concepts that its phrases name (`@retain`) and the stems of its other
words. Concepts have the same names in every language, so that a German phrase meets an English one.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from compliance.wording.cues import list_cue_words, list_languages, split_words
from compliance.wording.light_stems import cut_ending, has_light_stems, undo_participles
from knowledge.index.terms import terms
from knowledge.language.function_words import function_words

_FILE = Path(__file__).with_name("thesaurus.toml")
_MARK = "@"
_DEFAULT = "en"
_LONGEST = 8
_SYNONYMS = {"information": "data", "personal": "private", "office": "bureau", "offices": "bureau"}
"""English words with the stem of another word: "information" has that of "to inform"."""
_SYNONYM = re.compile(rf"\b(?:{'|'.join(_SYNONYMS)})\b", re.IGNORECASE)
_NAMING = re.compile(
    r"\b(?:[a-z]+(?:ing|ed) (?=part(?:y|ies)\b)|provided,? (?:however,? )?that\b)", re.IGNORECASE
)
"""Words that name no act: what a party is called ("the Disclosing Party"), and "provided that"."""
_ACTS = frozenset(
    {"zajistí", "zajišťuje", "zajišťují", "oznámí", "předloží", "poskytne", "provede", "zabezpečí",
     "zabezpečuje", "zabezpečujú", "oznámi", "predloží", "vykoná", "zapewnia", "zapewniają"}
)  # fmt: skip
"""Duties in the present tense, which also name the act."""

Phrases = Mapping[str, Sequence[tuple[tuple[str, ...], str]]]
"""By its first stem: each phrase as stems, with its concept; the longest first."""


def find_features(text: str, language: str = _DEFAULT) -> frozenset[str]:
    """Return the concepts and the stems of a text, each once."""
    return frozenset(_find_features(text, language))


def list_features(text: str, language: str = _DEFAULT) -> tuple[str, ...]:
    """Return the features of a text, each once, in the order of the text."""
    return _find_features(text, language)


def is_concept(feature: str) -> bool:
    """Return whether a feature is a concept, not a stem."""
    return feature.startswith(_MARK)


def list_concepts(text: str, language: str = _DEFAULT) -> frozenset[str]:
    """Return only the concepts of a text."""
    return frozenset(one for one in _find_features(text, language) if is_concept(one))


@lru_cache(maxsize=1 << 14)
def _find_features(text: str, language: str) -> tuple[str, ...]:
    ruling = _list_ruling_stems(language)
    stems = [one for one in _list_stems(text, language) if one not in ruling]
    return tuple(dict.fromkeys(_name_features(stems, load_phrases(language))))


def _list_stems(text: str, language: str) -> list[str]:
    if language == _DEFAULT:
        text = _SYNONYM.sub(lambda found: _SYNONYMS[found[0].lower()], _NAMING.sub("", text))
        return terms(text, language)
    if language == "de":
        text = undo_participles(text)
    words = [word.text for word in split_words(text)]
    kept = [word for word in words if not _is_empty(word, language)]
    return [cut_ending(term, language) for term in terms(" ".join(kept or words), language)]


def _is_empty(word: str, language: str) -> bool:
    """Return whether a word only connects, or only obliges, forbids or permits."""
    is_ruling = has_light_stems(language) and word in _list_ruling_words(language)
    return is_ruling or language in function_words((word,))


@cache
def _list_ruling_words(language: str) -> frozenset[str]:
    return list_cue_words(language) - _ACTS


@cache
def _list_ruling_stems(language: str) -> frozenset[str]:
    """Return the stems of the words that oblige, forbid or permit: their sense is the polarity.

    Languages with concepts name them there; where words are cut lightly, they are left out before.
    """
    has_others = language in list_compared_languages() or has_light_stems(language)
    if has_others or language not in list_languages():
        return frozenset()
    return frozenset(stem for word in list_cue_words(language) for stem in terms(word, language))


def _name_features(stems: Sequence[str], phrases: Phrases) -> Iterator[str]:
    for at, stem in enumerate(stems):
        is_named = False
        for phrase, concept in phrases.get(stem, ()):
            if tuple(stems[at : at + len(phrase)]) == phrase:
                is_named = is_named or len(phrase) == 1
                yield concept
        if not is_named:
            yield stem


@cache
def list_compared_languages() -> frozenset[str]:
    """Return the languages with concepts: texts in two of them can be compared."""
    return frozenset(tomllib.loads(_FILE.read_text("utf-8")))


@cache
def load_phrases(language: str) -> Phrases:
    """Return the phrases of a language; those of English where it has none and no light stems."""
    tables: dict[str, dict[str, list[str]]] = tomllib.loads(_FILE.read_text("utf-8"))
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    others: dict[str, list[str]] = {} if has_light_stems(language) else tables[_DEFAULT]
    for concept, phrases in tables.get(language, others).items():
        for phrase in phrases:
            stems = tuple(_list_stems(phrase, language))[:_LONGEST]
            if stems:
                found.setdefault(stems[0], []).append((stems, f"{_MARK}{concept}"))
    return {first: tuple(sorted(own, key=lambda one: -len(one[0]))) for first, own in found.items()}
