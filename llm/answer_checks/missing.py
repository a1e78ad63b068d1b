"""Checks a model's statement of what the documents lack before a user reads it.

No source can support it, so it must not contain links, or numbers, code and identifiers that are
neither in the question nor in the sources, or words that ask for a secret.
"""

from citations.claims import sentences, without_citations
from citations.links import Allowed, keep_links, plain_line
from llm.answer_checks.leads import share_of_known
from llm.offline.phrases import SECRET_WORDS
from llm.offline.support import foreign_facts, terms

LONGEST_CHARACTERS = 200
LEAST_SHARE = 0.4
"""The least share of its words, by weight, that the question or the sources contain."""
_SECRETS = frozenset(term for word in SECRET_WORDS for term in terms(word))


def check_missing(missing: str, known_text: str) -> str:
    """Return a missing part on one line, or an empty text if a user must not read it.

    `known_text` is the question and the sources.
    """
    line = plain_line(without_citations(missing))
    if not line or len(line) > LONGEST_CHARACTERS or len(list(sentences(line))) > 1:
        return ""
    if keep_links(missing, Allowed(any_host=True)).removed or foreign_facts(line, known_text):
        return ""
    if _SECRETS.intersection(terms(line)).difference(terms(known_text)):
        return ""
    return line if share_of_known(line, known_text) >= LEAST_SHARE else ""
