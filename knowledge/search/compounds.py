"""Splits words that do not occur in any document into two words that do: Urlaub-s-tage.

No language-specific list is needed, because a word is split where both of its parts occur in the
documents as spelled. Up to two letters between them may join them, unless a part is very short.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence

SHORTEST_PART = 3
LONGEST_JOINT = 2
LONGEST_WORD = 40
MOST_WORDS = 4
"""Maximum number of words in a question that are split."""

CountDocuments = Callable[[Sequence[str]], Awaitable[Mapping[str, int]]]
"""Returns the number of documents that contain each of some words, as spelled."""


async def divide(words: Collection[str], count: CountDocuments) -> Mapping[str, str]:
    """Return the two parts, separated by a space, of each word that can be split.

    If a word can be split in several ways, the split with the longest shorter part is used.
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
