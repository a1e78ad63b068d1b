"""Generates queries from documents: headings, key sentences, and words shuffled across passages.

Nothing is random: texts are used in the order of their hashes, so that the same documents always
result in the same queries. Foreign questions are about subjects that an organization's documents do
not cover.
"""

import hashlib
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from knowledge.chunking import sentences, weight

MOST_QUERIES = 100
"""Maximum number of queries of each kind."""
_WORDS = 8
_SENTENCE_WORDS = range(6, 31)
_LEAST_HEADING = 4
_WORD = re.compile(r"[^\W\d_]{3,12}")
_FOREIGN = Path(__file__).with_name("foreign_questions.toml")
_FALLBACK = "en"


@dataclass(frozen=True, slots=True)
class GeneratedQueries:
    """`own` queries are answered by the documents; `shuffled` queries contain words of the
    documents in a meaningless order.
    """

    own: tuple[str, ...]
    shuffled: tuple[str, ...]
    foreign: tuple[str, ...]


def generate_queries(
    headings: Iterable[str], passages: Sequence[str], language: str
) -> GeneratedQueries:
    """Return the queries for documents in a language."""
    named = [heading for heading in headings if len(heading) >= _LEAST_HEADING]
    spoken = (
        sentence.strip()
        for passage in passages
        for sentence in sentences(passage)
        if weight(sentence) in _SENTENCE_WORDS
    )
    return GeneratedQueries(
        own=(*_choose(named), *_choose(spoken)),
        shuffled=tuple(_shuffle(passages)),
        foreign=find_foreign_questions(language),
    )


def list_question_languages() -> tuple[str, ...]:
    """Return the languages that have the same foreign questions in the same order."""
    return tuple(_read_foreign_questions())


def find_foreign_questions(language: str) -> tuple[str, ...]:
    """Return foreign questions in a language, or in English if there are none."""
    known = _read_foreign_questions()
    return known.get(language, known[_FALLBACK])


def hash_text(text: str) -> bytes:
    """Return a hash of a text, by which texts are sorted in a pseudorandom order."""
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()


@lru_cache(maxsize=1)
def _read_foreign_questions() -> dict[str, tuple[str, ...]]:
    table = tomllib.loads(_FOREIGN.read_text("utf-8"))
    return {language: tuple(texts) for language, texts in table.items()}


def _shuffle(passages: Sequence[str]) -> Iterable[str]:
    """Yield queries in which words are as frequent as in the passages; each occurrence is drawn by
    its own hash.
    """
    ordered = sorted(passages, key=hash_text)
    words = enumerate(word for passage in ordered for word in _WORD.findall(passage))
    drawn = sorted((hash_text(f"{place} {word}"), word) for place, word in words)
    chosen = [word for _, word in drawn[: MOST_QUERIES * _WORDS]]
    for start in range(0, len(chosen) - _WORDS + 1, _WORDS):
        yield " ".join(chosen[start : start + _WORDS])


def _choose(texts: Iterable[str]) -> list[str]:
    """Return distinct texts in the order of their hashes."""
    return sorted(dict.fromkeys(texts), key=hash_text)[:MOST_QUERIES]
