"""Corrects words that no document contains by words of the documents with one other letter."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from knowledge.index.terms import surface_words

_SHORTEST = 5
# A word of a single document may be a misspelling itself.
_LEAST_DOCUMENTS = 2
_ASCII = "abcdefghijklmnopqrstuvwxyz"


class Vocabulary:
    """The words of all documents, with the number of documents that contain each."""

    def __init__(self) -> None:
        self._documents: Counter[str] = Counter()
        self._letters: Counter[str] = Counter()

    def add(self, words: Iterable[str]) -> None:
        for word in words:
            self._documents[word] += 1
            if self._documents[word] == 1:
                self._letters.update(set(word))

    def remove(self, words: Iterable[str]) -> None:
        for word in words:
            self._documents[word] -= 1
            if self._documents[word] <= 0:
                del self._documents[word]
                self._letters.subtract(set(word))

    def corrections(self, text: str, is_known: Callable[[str], bool]) -> Mapping[str, str]:
        """Return a replacement for each word of a text that is not known and close to one."""
        found: dict[str, str] = {}
        for word in dict.fromkeys(surface_words(text)):
            if len(word) >= _SHORTEST and word.isalpha() and not self._has(word, is_known):
                best = self._nearest(word)
                if best is not None:
                    found[word] = best
        return found

    def _has(self, word: str, is_known: Callable[[str], bool]) -> bool:
        return word in self._documents or is_known(word)

    def _nearest(self, word: str) -> str | None:
        candidates = (near for near in _neighbours(word, self._alphabet(word)))
        known = {near for near in candidates if self._documents[near] >= _LEAST_DOCUMENTS}
        return min(known, key=lambda near: (-self._documents[near], near), default=None)

    def _alphabet(self, word: str) -> str:
        """Return the letters a slip may have replaced; those of the documents' own writing."""
        if word.isascii():
            return _ASCII
        return "".join(letter for letter, count in self._letters.most_common(80) if count > 0)


def apply_corrections(text: str, corrections: Mapping[str, str]) -> str:
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
