"""Divides words that no document contains into two words of the documents: Urlaub-s-tage.

No language-specific list is needed: a word is divided where both of its parts occur in the
documents as spelled. Up to two letters between them may join them, unless a part is very short.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence

SHORTEST_PART = 3
LONGEST_JOINT = 2
LONGEST_WORD = 40
MOST_WORDS = 4
"""The words of one question that are divided."""

CountDocuments = Callable[[Sequence[str]], Awaitable[Mapping[str, int]]]
"""Returns the number of documents that contain each of some words, as spelled."""


async def divide(words: Collection[str], count: CountDocuments) -> Mapping[str, str]:
    """Return the two parts of each word that can be divided, with a space between them.

    Of several divisions, the one counts whose shorter part is the longest.
    """
    chosen = [word for word in words if len(word) <= LONGEST_WORD][:MOST_WORDS]
    possible = {word: list(_list_divisions(word)) for word in chosen}
    parts = dict.fromkeys(part for pairs in possible.values() for pair in pairs for part in pair)
    known = await count(list(parts)) if parts else {}
    divided: dict[str, str] = {}
    for word, pairs in possible.items():
        present = [pair for pair in pairs if known[pair[0]] and known[pair[1]]]
        if present:
            head, tail = max(present, key=_rate)
            divided[word] = f"{head} {tail}"
    return divided


def _list_divisions(word: str) -> Iterator[tuple[str, str]]:
    for end in range(SHORTEST_PART, len(word) - SHORTEST_PART + 1):
        for begin in range(end, min(end + LONGEST_JOINT, len(word) - SHORTEST_PART) + 1):
            if begin == end or min(end, len(word) - begin) > SHORTEST_PART:
                yield word[:end], word[begin:]


def _rate(pair: tuple[str, str]) -> tuple[int, int]:
    return min(map(len, pair)), sum(map(len, pair))
