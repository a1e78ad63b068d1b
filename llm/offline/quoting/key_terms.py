"""Reduces texts to the terms by which a question and a passage are compared.

A term is the stem of a word: "stored" and "stores" become the term of "store". Irregular forms
("sent", "paid") become the term of their verb. Function words are left out.
"""

import re
from functools import lru_cache

from py_rust_stemmers import SnowballStemmer

from llm.offline.phrases import ASKING_WORDS, FUNCTION_WORDS, IRREGULAR_FORMS, POINTING
from llm.offline.support import terms
from llm.offline.words import words

_STEM_LETTERS = 6
_ONE = "1"
_TURN_OFF = re.compile(r"\b(?:turn|switch)(?:s|ed|ing|es)? off\b", re.IGNORECASE)
_TURN_ON = re.compile(r"\b(?:turn|switch)(?:s|ed|ing|es)? on\b", re.IGNORECASE)
_NAMING_LETTER = re.compile(
    r"(?<![\w.'\u2019-])(?:[B-HJ-Z]|(?<=\w )A|A(?=\s*(?:\||\Z)))(?![\w'\u2019.-])"
)
"""A letter that names a plan, a size or a row. "A" often is an article: it names after a word."""
_PLURAL_OF_LETTERS = re.compile(r"[b-df-hj-np-tv-xz]{2,5}s\Z")
"""DVDs and PDFs: a stemmer takes them for no words."""
_GERMAN_ENDING = re.compile(r"(?<=\w{4})(?:ungen|ung|en)\Z")
_VERB_OF_NOUN = re.compile(r"\Aappli\Z|ifi\Z")
_VERBS_OF_NOUNS = {"appli": "applic", "ifi": "if"}
_STEMMER = SnowballStemmer("english")


def extract_key_terms(text: str) -> frozenset[str]:
    """Return the terms of `text` that carry its subject, and its capital letters that name."""
    found = terms(_join_verbs(text), cut=False)
    letters = _NAMING_LETTER.findall(text)
    return frozenset((*letters, *(_reduce(term) for term in found if not is_function_word(term))))


def extract_asked_terms(question: str) -> frozenset[str]:
    """Return the key terms of `question` without the words that only ask ("cost", "mean")."""
    wording = _join_verbs(question)
    held = [word for word in terms(wording, cut=False) if not is_function_word(word)]
    if _ONE not in words(question):
        # Spelled, it is a pronoun or an article: "How do I create one?"
        held = [word for word in held if word != _ONE] or held
    asked = frozenset(_reduce(word) for word in held if word not in ASKING_WORDS)
    letters = _NAMING_LETTER.findall(question)
    return (asked or frozenset(_reduce(word) for word in held)).union(letters)


def find_last_term(question: str, without: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the term of the last word with a subject: what a question for yes or no is about.

    Words that only ask are passed over, and so are the terms of `without`, such as a version by
    which sources were selected.
    """
    held = [_reduce(word) for word in terms(question, cut=False) if not is_function_word(word)]
    return frozenset([one for one in held if one not in ASKING_TERMS | without][-1:])


def _join_verbs(text: str) -> str:
    """Return `text` with "turn off" as the verb that it means: "disable"."""
    return _TURN_ON.sub("enable", _TURN_OFF.sub("disable", text))


def is_function_word(word: str) -> bool:
    """Return whether `word` carries no subject."""
    return word in FUNCTION_WORDS or word in POINTING


@lru_cache(maxsize=1 << 14)
def _reduce(word: str) -> str:
    """Return the stem of an English word, else its first letters; both sides are cut alike."""
    base: str = IRREGULAR_FORMS.get(word, word)
    if base.isascii() and base.isalpha():
        stem: str = _STEMMER.stem_word(base)
        # "Liability" and "liable", "notify" and "notification", "apply" and "application" are one.
        if _PLURAL_OF_LETTERS.match(stem):
            return stem[:-1]
        stem = _GERMAN_ENDING.sub("", stem).replace("abil", "abl").replace("ibil", "ibl")
        return _VERB_OF_NOUN.sub(lambda verb: _VERBS_OF_NOUNS[verb[0]], stem)[:_STEM_LETTERS]
    return base if base.isdigit() else base[:_STEM_LETTERS]


ASKING_TERMS = frozenset(_reduce(word) for word in ASKING_WORDS)
"""The terms of words that only ask: a question of these alone names no subject."""
