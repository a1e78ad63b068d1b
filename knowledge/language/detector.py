"""Detects languages by script, letters, n-grams and prior probabilities."""

import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from knowledge.language.by_script import decide_by_script
from knowledge.language.function_words import function_words
from knowledge.language.model import NGrams, load
from knowledge.language.port import PRIOR_SHARE, Detection
from knowledge.language.scripts import (
    CANDIDATES,
    LANGUAGES_OF_SCRIPT,
    in_script,
    missing_letters,
)

_USUAL = {
    "en": 1.4, "ru": 1.2, "ar": 0.7, "hi": 0.7, "de": 0.5, "es": 0.5, "fr": 0.5,
    "pt": 0.5, "uk": 0.5,
}  # fmt: skip
"""The logarithm of a language's prior probability, relative to the others."""
_RARE = frozenset(
    {"af", "be", "ca", "et", "hr", "kk", "lt", "lv", "mk", "mn", "mr", "ne", "sl", "sr", "sw"}
)
_RARE_WEIGHT = -1.5
_SHARPNESS = 2.0
"""The factor of n-gram scores per root of the text's bytes that calibrates the confidence."""
_MISSING_LETTER = 1.0
_SMALL_WORD = 2.0
_ENOUGH_SMALL_WORDS = 3
_ALONE_IN_SCRIPT = frozenset(
    names[0] for names in LANGUAGES_OF_SCRIPT.values() if len(names) == 1
) - {"ja"}
_APART = re.compile(r"[^\w']+")
_LOADED: dict[tuple[str, ...], NGrams] = {}
"""The models of this process by their languages; they are mapped from files, and never change."""


class ScriptAndNgramDetector:
    """Decides by the script if it is unambiguous, else by the n-gram model.

    The model is loaded for the first text of the process that needs it, from the folder `kept_in`
    if given.
    Instances have no state between texts.
    """

    def __init__(
        self, *, candidates: Sequence[str] = CANDIDATES, kept_in: Path | None = None
    ) -> None:
        self._candidates = tuple(candidates)
        self._kept_in = kept_in

    def detect(
        self,
        text: str,
        *,
        prior: Mapping[str, float] | None = None,
        prior_share: float = PRIOR_SHARE,
        candidates: Sequence[str] | None = None,
    ) -> Detection:
        """Return the language of `text`; see `Detector`."""
        allowed = self._candidates if candidates is None else tuple(candidates)
        found = decide_by_script(text, prior, allowed)
        if isinstance(found, Detection):
            return found
        words, possible = found.words, found.possible
        if found.script not in {"latin", "han"}:
            words = in_script(words, found.script)
        return self._likeliest(words, possible, _log_prior(possible, prior or {}, prior_share))

    def _likeliest(
        self, words: str, possible: Sequence[str], beforehand: Mapping[str, float]
    ) -> Detection:
        evidence = self._evidence(words, possible)
        scores = {name: evidence[name] + beforehand[name] for name in possible}
        best = max(possible, key=scores.__getitem__)
        total = sum(math.exp(score - scores[best]) for score in scores.values())
        return Detection(best, round(1 / total, 4))

    def _evidence(self, words: str, possible: Sequence[str]) -> dict[str, float]:
        scale = _SHARPNESS / math.sqrt(len(words.encode()))
        missing = missing_letters(words)
        small = function_words(_APART.split(words.lower()))
        ranked = dict(self._ngrams.rank(words))
        lowest = min(ranked.values())
        return {
            name: scale * ranked.get(name, lowest)
            - _MISSING_LETTER * missing.get(name, 0)
            + _SMALL_WORD * min(small.get(name, 0), _ENOUGH_SMALL_WORDS)
            for name in possible
        }

    @cached_property
    def _ngrams(self) -> NGrams:
        languages = tuple(name for name in self._candidates if name not in _ALONE_IN_SCRIPT)
        # An evaluation opens several desks, and to unpack a model takes half a second.
        if languages not in _LOADED:
            _LOADED[languages] = load(languages, self._kept_in)
        return _LOADED[languages]


def _log_prior(
    possible: Sequence[str], prior: Mapping[str, float], prior_share: float
) -> dict[str, float]:
    usual = {
        name: math.exp(_USUAL.get(name, _RARE_WEIGHT if name in _RARE else 0.0))
        for name in possible
    }
    total = sum(usual.values())
    known = sum(prior.get(name, 0.0) for name in possible)
    share = prior_share if known > 0 else 0.0
    return {
        name: math.log(
            (1 - share) * usual[name] / total
            + share * (prior.get(name, 0.0) / known if known > 0 else 0.0)
        )
        for name in possible
    }
