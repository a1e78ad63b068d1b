"""Corrects words that no document contains by words of the documents with one other letter."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence

from knowledge.index.terms import surface_words

_SHORTEST = 5
# A word of a single document may be a misspelling itself.
_LEAST_DOCUMENTS = 2
_ASCII = "abcdefghijklmnopqrstuvwxyz"
_MOST_NEIGHBOURS = 4000

CountDocuments = Callable[[Sequence[str]], Awaitable[Mapping[str, int]]]
"""Returns how many documents contain each of some words, as they are spelled."""


def list_doubtful(text: str, is_known: Callable[[str], bool]) -> list[str]:
    """Return the words of a text that are long enough to be corrected and not known."""
    words = dict.fromkeys(surface_words(text))
    return [
        word for word in words if len(word) >= _SHORTEST and word.isalpha() and not is_known(word)
    ]


async def find_corrections(
    doubtful: Collection[str], count: CountDocuments, letters: str
) -> Mapping[str, str]:
    """Return a replacement for each word that no document contains and that is close to one.

    `letters` are those of the documents beyond ASCII.
    """
    present = await count(list(doubtful)) if doubtful else {}
    found: dict[str, str] = {}
    for word in doubtful:
        if not present.get(word):
            near = _neighbours(word, _ASCII if word.isascii() else letters)
            counts = await count(list(dict.fromkeys(near))[:_MOST_NEIGHBOURS])
            known = {one for one, documents in counts.items() if documents >= _LEAST_DOCUMENTS}
            best = min(known, key=lambda one: (-counts[one], one), default=None)
            if best is not None:
                found[word] = best
    return found


def replace_words(text: str, corrections: Mapping[str, str]) -> str:
    """Return the text with words replaced, whatever their case."""
    words = text.split(" ")
    return " ".join(_replace(word, corrections) for word in words)


def _replace(word: str, corrections: Mapping[str, str]) -> str:
    lower = word.lower()
    for wrong, right in corrections.items():
        at = lower.find(wrong)
        if at >= 0:
            return word[:at] + right + word[at + len(wrong) :]
    return word


def _neighbours(word: str, alphabet: str) -> Iterator[str]:
    """Return the words one slip away: a letter left out, added, replaced or swapped."""
    for at in range(len(word) + 1):
        before, after = word[:at], word[at:]
        if after:
            yield before + after[1:]
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]
        for letter in alphabet:
            yield before + letter + after
            if after:
                yield before + letter + after[1:]
