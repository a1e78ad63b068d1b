"""Recognises by rules the texts that are English without doubt: nobody has to translate them."""

import re

from knowledge.language.function_words import function_words
from knowledge.language.port import Detector

ENGLISH = "en"
LEAST_CONFIDENCE = 0.9
LEAST_WORDS, MOST_WORDS = 3, 60
LEAST_FUNCTION_WORDS = 2
_WORD = re.compile(r"[a-z']+")


def is_certainly_english(text: str, detector: Detector) -> bool:
    """Return whether no rule leaves a doubt that `text` is English.

    The detector is confident, every letter is ASCII, and the text has more English function words
    than ones of any other language, at least two. A text of fewer than three words, or of more
    than sixty, is never certain. `docs/evaluation.md` has the error rate.
    """
    if any(letter.isalpha() and not letter.isascii() for letter in text):
        return False
    words = _WORD.findall(text.lower())
    if not LEAST_WORDS <= len(words) <= MOST_WORDS:
        return False
    counts = function_words(words)
    english = counts.pop(ENGLISH, 0)
    if english < LEAST_FUNCTION_WORDS or english <= max(counts.values(), default=0):
        return False
    found = detector.detect(text)
    return found.language == ENGLISH and found.confidence >= LEAST_CONFIDENCE
