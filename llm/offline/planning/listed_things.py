"""Finds the things that a comparison lists, also in small letters: "retention, deletion and export
rules"."""

import re
from collections.abc import Sequence

from llm.offline.planning.compared_topics import is_comparison_request
from llm.offline.planning.listed_items import find_listed_names
from llm.offline.support import weight_of

_LONGEST = 2_000
_LEAST_THINGS, _MOST_THINGS = 3, 12
_MOST_WORDS = 4
_COMMA = re.compile(r"[,;]\s+")
_LAST = re.compile(r"(?:\A|\s)(?:and|or|und|oder|et|ou|y|o|e|и|та|і)\s", re.IGNORECASE)
_EDGE = " .?!:\"'()"
_CUES = frozenset(
    {
        "compare", "comparison", "comparing", "between", "difference", "differences", "differ",
        "vergleiche", "vergleich", "zwischen", "unterschied", "unterschiede", "comparez", "entre",
        "différence", "différences", "compara", "confronta", "diferencia", "diferencias",
        "differenza", "differenze", "tra",
    }
)  # fmt: skip
"""Words that say that things are compared; none is part of a thing."""
_SAY = frozenset({"say", "says", "mention", "mentions", "sagen", "besagen", "disent", "dicen"})
"""Words between the things and the topic: "what webhooks and zeppelins say about retries"."""
_ASKS = frozenset({"how", "what", "which", "wie", "was", "welche", "comment", "quels", "cómo"})


def find_compared_list(question: str) -> tuple[str, ...]:
    """Return the names or the things that a question lists, at least three; or none."""
    names = find_listed_names(question)
    if names:
        first = names[0].split()
        # "Compare Python, ..." begins with a capital, too.
        own = first[first[0].casefold() in _CUES :]
        return (" ".join(own[own[:1] == ["the"] :]), *names[1:])
    return find_listed_things(question)


def find_listed_things(question: str) -> tuple[str, ...]:
    """Return the things that a comparison lists, at least three of at most four words; or none.

    The last word of the list belongs to all things, where the others are single words: "retention,
    deletion and export rules" lists rules of three kinds.
    """
    if not is_comparison_request(question):
        return ()
    parts = _COMMA.split(question[:_LONGEST])
    for start in range(len(parts) - 1):
        first = parts[start].split()[:1]
        if start and not (first and first[0].casefold() in _ASKS):
            continue
        things = _read_list(parts[start:])
        if len(things) >= _LEAST_THINGS:
            return tuple(dict.fromkeys(_share_head(things)))[:_MOST_THINGS]
    return ()


def _read_list(parts: Sequence[str]) -> list[str]:
    """Return the things from the end of the first part to the word `and` and what follows it."""
    things = [_take_last(parts[0])]
    for part in parts[1:]:
        last = _LAST.search(part)
        if last is None:
            things.append(_take_whole(part))
            continue
        before = part[: last.start()]
        things += [_take_whole(before)] if before.strip() else []
        things.append(_take_first(part[last.end() :]))
        return things if all(things) else []
    return []


def _take_last(text: str) -> str:
    """Return the last words of a text, up to one that no thing is named by."""
    words = text.strip(_EDGE).split()
    taken: list[str] = []
    while words and _names(words[-1]) and len(taken) < _MOST_WORDS:
        taken.insert(0, words.pop())
    if words and len(taken) == _MOST_WORDS:
        return ""
    return " ".join(taken)


def _take_first(text: str) -> str:
    words = text.split()
    while words and not _names(words[0]):
        words.pop(0)
    taken: list[str] = []
    for word in words:
        is_after_name = bool(taken) and taken[0][0].isupper() and not word[0].isupper()
        if not _names(word) or is_after_name or len(taken) == _MOST_WORDS:
            break
        taken.append(word.strip(_EDGE))
        if word[-1] in ".?!:":
            break
    return " ".join(taken)


def _take_whole(text: str) -> str:
    words = text.strip(_EDGE).split()
    while words and not _names(words[0]):
        words.pop(0)
    return " ".join(words) if len(words) <= _MOST_WORDS else ""


def _share_head(things: Sequence[str]) -> list[str]:
    """Return the things, each with the head that only the last one names."""
    *others, last = things
    head = last.split()[1:][-1:]
    if not head or not all(map(_modifies, others)):
        return list(things)
    return [" ".join((one, *head)) for one in others] + [last]


def _modifies(thing: str) -> bool:
    """Return whether a thing may lack its head: a single word that is no name and no plural."""
    return " " not in thing and not thing[:1].isupper() and not thing.endswith("s")


def _names(word: str) -> bool:
    """Return whether a word may be part of the name of a thing."""
    plain = word.strip(_EDGE).casefold()
    return plain not in _CUES and plain not in _SAY and weight_of(plain) >= 1
