"""Finds the names mentioned in a text: sequences of capitalized words, codes, and quoted phrases.

It works for scripts with capital letters. In other scripts, only codes and quoted phrases are
found.
"""

import re
from collections.abc import Iterator

_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"[^\W_]+")
_QUOTED = re.compile(
    '["\u201c\u201e\u00ab]([^"\u201c\u201d\u201e\u00ab\u00bb\n]{3,80})["\u201c\u201d\u00bb]'
)
_BETWEEN = frozenset(
    {
        "of", "the", "de", "la", "von", "van", "di", "du", "del", "da", "le", "for", "in", "and",
        "&", "der", "den", "al", "el", "bin", "ibn", "y", "e",
    }
)  # fmt: skip
"""Words that may occur inside a name."""
_OPENING = frozenset(
    {
        "the", "a", "an", "in", "on", "at", "he", "she", "it", "they", "we", "you", "his", "her",
        "its", "their", "this", "that", "these", "those", "after", "before", "during", "while",
        "when", "as", "for", "from", "with", "by", "and", "or", "but", "if", "to", "there", "then",
        "who", "which", "what", "where", "how", "why", "one", "two", "three", "first", "second",
        "however", "although", "since", "until", "later", "early", "most", "many", "some", "other",
        "new", "also", "both", "each", "all", "no", "not", "see", "note", "such", "under",
    }
)  # fmt: skip
"""Words that begin a sentence and do not belong to a name."""
_JOINING = frozenset("'\u2019.-&")
_LONGEST_TEXT = 20_000
_MOST_WORDS = 10


def find_mentioned_names(text: str) -> dict[str, int]:
    """Return the names in a text, in lower case with single spaces, and the number of their
    occurrences.
    """
    mentioned_names: dict[str, int] = {}
    for name in _list_names(text[:_LONGEST_TEXT]):
        mentioned_names[name] = mentioned_names.get(name, 0) + 1
    return mentioned_names


def _list_names(text: str) -> Iterator[str]:
    for run in _list_runs(text):
        words = [word.casefold() for word in run]
        while words and words[0] in _OPENING:
            del words[0]
        name = " ".join(words[:_MOST_WORDS])
        if len(name) >= 3 and not name.isdigit():
            yield name
            yield from (part for part in name.split(" and ") if part != name and len(part) >= 3)
    for quoted in _QUOTED.findall(text):
        yield " ".join(_WORD.findall(quoted.casefold()))


def _list_runs(text: str) -> Iterator[list[str]]:
    """Yield sequences of capitalized words, which may contain words such as `of`."""
    run: list[str] = []
    pending: list[str] = []
    for token in _TOKEN.findall(text):
        if token[0].isupper() or (run and token[0].isdigit()):
            run += [*pending, token]
            pending = []
        elif run and (token in _BETWEEN and not pending):
            pending = [token]
        elif not (run and token in _JOINING):
            if run:
                yield run
            run, pending = [], []
    if run:
        yield run
