"""Detects languages with `langdetect`: seeded, limited to candidates, weighted by the prior."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from knowledge.language.port import PRIOR_SHARE, Detection, Detector
from knowledge.language.scripts import decide_by_script, most_expected

UNSURE = 0.6
"""If the confidence of the n-grams is below this value, `langdetect` is used; see
docs/internal/measurements/evaluation.md.
"""
_SEED = 20_011
_NAMES = {"zh-cn": "zh", "zh-tw": "zh"}
_FEW_WORDS = 3
_LEANING = 0.5
_UNLIKELY = 0.05
"""The weight of a language that is not in the prior."""


class FencedLangdetect:
    """Applies `langdetect` to the languages that are possible for the script.

    Without these restrictions, its results vary between runs, and are wrong for most texts of one
    to three words. Its profiles are loaded with the first text.
    """

    def __init__(self, *, candidates: Sequence[str]) -> None:
        self._candidates = tuple(candidates)

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
        decided = decide_by_script(text, prior, allowed)
        if isinstance(decided, Detection):
            return decided
        words, possible = decided.words, decided.possible
        expected = most_expected(prior, possible)
        leans = prior_share > _LEANING and len(words.split()) <= _FEW_WORDS
        if prior and expected in prior and leans:
            return Detection(expected, _LEANING)
        return self._ask(words, possible, _scale(prior or {}, prior_share))

    def _ask(self, words: str, possible: Sequence[str], prior: Mapping[str, float]) -> Detection:
        from langdetect.lang_detect_exception import LangDetectException

        detector = self._profiles.create()
        detector.append(words)
        weights = {
            name: prior.get(_NAMES.get(name, name), 0.0) + _UNLIKELY
            for name in self._profiles.get_lang_list()
            if _NAMES.get(name, name) in possible
        }
        if not weights:
            return Detection(most_expected(prior, possible), 0.0)
        detector.set_prior_map(weights)
        try:
            probabilities = detector.get_probabilities()
        except LangDetectException:  # it found no n-gram that it knows
            probabilities = []
        if not probabilities:
            return Detection(most_expected(prior, possible), 0.0)
        return Detection(
            _NAMES.get(probabilities[0].lang, probabilities[0].lang),
            round(min(probabilities[0].prob, 1.0), 4),
        )

    @cached_property
    def _profiles(self) -> Any:
        """The library's detector factory; the library has no type annotations."""
        from langdetect import PROFILES_DIRECTORY, DetectorFactory

        factory = DetectorFactory()
        factory.seed = _SEED
        factory.load_profile(PROFILES_DIRECTORY)
        return factory


class SecondOpinion:
    """Uses a second detector if the first one is unsure about a text of several words.

    A language in the prior is kept, because the first detector weights it better. The second
    detector loads its profiles on first use. It is not used for texts of up to three words, because
    it detects a wrong language for texts such as "API key" and "token" with full confidence.
    """

    def __init__(self, first: Detector, second: Detector) -> None:
        self._first = first
        self._second = second

    def detect(
        self,
        text: str,
        *,
        prior: Mapping[str, float] | None = None,
        prior_share: float = PRIOR_SHARE,
        candidates: Sequence[str] | None = None,
    ) -> Detection:
        """Return the language of `text`; see `Detector`."""

        def ask(detector: Detector) -> Detection:
            return detector.detect(
                text, prior=prior, prior_share=prior_share, candidates=candidates
            )

        detection = ask(self._first)
        if len(text.split()) <= _FEW_WORDS:
            return detection
        if not 0 < detection.confidence < UNSURE or detection.language in (prior or {}):
            return detection
        other = ask(self._second)
        return other if other.confidence > 0 else detection


def _scale(prior: Mapping[str, float], share: float) -> dict[str, float]:
    """Return the weights of a prior, whose sum is the odds that the text is in one of its
    languages.
    """
    total = sum(prior.values())
    odds = min(share / (1 - share), 1.0) if total > 0 else 0.0
    return {name: odds * weight / total for name, weight in prior.items()}
