"""Reduces texts to the terms by which a question and a passage are compared.

A term is the stem of a word: "stored" and "stores" become the term of "store". Irregular forms
("sent", "paid") become the term of their verb. Function words are left out.
"""

from functools import lru_cache

from py_rust_stemmers import SnowballStemmer

from llm.offline.phrases import ASKING_WORDS, FUNCTION_WORDS, IRREGULAR_FORMS, POINTING
from llm.offline.support import terms

_STEM_LETTERS = 6
_STEMMER = SnowballStemmer("english")


def extract_key_terms(text: str) -> frozenset[str]:
    """Return the terms of `text` that carry its subject."""
    return frozenset(_reduce(term) for term in terms(text, cut=False) if not is_function_word(term))


def extract_asked_terms(question: str) -> frozenset[str]:
    """Return the key terms of `question` without the words that only ask ("cost", "mean")."""
    words = [word for word in terms(question, cut=False) if not is_function_word(word)]
    asked = frozenset(_reduce(word) for word in words if word not in ASKING_WORDS)
    return asked or frozenset(_reduce(word) for word in words)


def is_function_word(word: str) -> bool:
    """Return whether `word` carries no subject."""
    return word in FUNCTION_WORDS or word in POINTING


@lru_cache(maxsize=1 << 14)
def _reduce(word: str) -> str:
    """Return the stem of an English word, else its first letters; both sides are cut alike."""
    base: str = IRREGULAR_FORMS.get(word, word)
    if base.isascii() and base.isalpha():
        stem: str = _STEMMER.stem_word(base)
        return stem[:_STEM_LETTERS]
    return base if base.isdigit() else base[:_STEM_LETTERS]
