"""Counts the function words of each language, which occur in every sentence.

The lists are in `function_words.toml`; they are read once.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path

_LISTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _language, _words in _LISTS.items():
    for _word in _words.split():
        _LANGUAGES_OF[_word] = (*_LANGUAGES_OF.get(_word, ()), _language)


def function_words(words: Iterable[str]) -> dict[str, int]:
    """Return how many distinct of `words`, in lower case, are function words of each language."""
    counts: dict[str, int] = {}
    for word in set(words):
        for language in _LANGUAGES_OF.get(word, ()):
            counts[language] = counts.get(language, 0) + 1
    return counts
