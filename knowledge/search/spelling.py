"""Replaces words that no document contains with words in the documents that differ only in their
accents, because people may type them without, or in a single letter.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice

from knowledge.index.terms import surface_words

_SHORTEST = 5
_SHORTEST_RESPELLED = 4
_MOST_RESPELLINGS = 512
# A word of a single document may be a misspelling itself.
_LEAST_DOCUMENTS = 2
_ASCII = "abcdefghijklmnopqrstuvwxyz"
_MOST_NEIGHBOURS = 4000
_TYPED_AS = {
    "ß": "ss", "ä": "ae", "ö": "oe", "ü": "ue", "æ": "ae", "œ": "oe", "ø": "oe", "å": "aa",
    "ł": "l", "đ": "d", "ı": "i",
}  # fmt: skip
"""How letters are typed without special keys, in addition to the base letter if Unicode defines
one.
"""

CountDocuments = Callable[[Sequence[str]], Awaitable[Mapping[str, int]]]
"""Returns the number of documents that contain each of some words, as spelled."""


def list_doubtful(text: str, is_known: Callable[[str], bool]) -> list[str]:
    """Return the words in a text that are long enough to be replaced and not known."""
    words = dict.fromkeys(surface_words(text))
    return [
        word
        for word in words
        if len(word) >= _SHORTEST_RESPELLED and word.isalpha() and not is_known(word)
    ]


async def find_respellings(
    doubtful: Collection[str], count: CountDocuments, letters: str
) -> Mapping[str, str]:
    """Return, for each word that no document contains, the most frequent one with different
    accents.

    `letters` contains the non-ASCII letters in the documents.
    """
    alike = _list_alike({*letters, *"".join(doubtful)})
    possible = {
        word: list(islice(_respell(unicodedata.normalize("NFC", word), alike), _MOST_RESPELLINGS))
        for word in doubtful
    }
    every = list(dict.fromkeys(form for forms in possible.values() for form in forms))
    counts = await count(every) if any(len(forms) > 1 for forms in possible.values()) else {}
    respellings: dict[str, str] = {}
    for word, forms in possible.items():
        best = max(forms, key=lambda item: counts.get(item, 0))
        if counts.get(best) and not counts.get(word):
            respellings[word] = best
    return respellings


async def find_corrections(
    doubtful: Collection[str], count: CountDocuments, letters: str
) -> Mapping[str, str]:
    """Return a replacement for each word that no document contains and that is similar to one in a
    document.

    `letters` contains the non-ASCII letters in the documents.
    """
    long = [word for word in doubtful if len(word) >= _SHORTEST]
    present = await count(long) if long else {}
    corrections: dict[str, str] = {}
    for word in long:
        if not present.get(word):
            near = _neighbours(word, _ASCII if word.isascii() else letters)
            counts = await count(list(dict.fromkeys(near))[:_MOST_NEIGHBOURS])
            known = {term for term, documents in counts.items() if documents >= _LEAST_DOCUMENTS}
            best = min(known, key=lambda term: (-counts[term], term), default=None)
            if best is not None:
                corrections[word] = best
    return corrections


def replace_words(text: str, corrections: Mapping[str, str]) -> str:
    """Return the text with words replaced, ignoring case."""
    words = text.split(" ")
    return " ".join(_replace(word, corrections) for word in words)


def _list_alike(letters: Collection[str]) -> Mapping[str, Sequence[tuple[str, str]]]:
    """Return the alternative spellings of typed letters, by the first letter: "s": ("ß" for
    "ss").
    """
    alike: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for letter in sorted(letters):
        base = unicodedata.normalize("NFD", letter)[0]
        for typed in sorted({base, _TYPED_AS.get(letter, base)} - {letter}):
            alike[typed[0]].append((typed, letter))
            if len(typed) == 1:
                alike[letter].append((letter, typed))
    return alike


def _respell(word: str, alike: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[str]:
    """Yield the spellings of a word with other accents, starting with the word itself."""
    if not word:
        yield ""
        return
    for typed, letter in ((word[0], word[0]), *alike.get(word[0], ())):
        if word.startswith(typed):
            for rest in _respell(word[len(typed) :], alike):
                yield letter + rest


def _replace(word: str, corrections: Mapping[str, str]) -> str:
    lower = word.lower()
    for wrong, right in corrections.items():
        at = lower.find(wrong)
        if at >= 0:
            return word[:at] + right + word[at + len(wrong) :]
    return word


def _neighbours(word: str, alphabet: str) -> Iterator[str]:
    """Yield the words at an edit distance of one: a letter omitted, added, replaced, or swapped."""
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
