"""Checks what a model says that the documents do not say, before a user reads it.

No source can be shown for it, so it may hold no link, number, code or identifier beyond the
question and the sources, and no word that asks for a secret.
"""

from citations.claims import sentences, without_citations
from citations.links import Allowed, keep_links, plain_line
from llm.answer_checks.leads import share_of_known
from llm.offline.phrases import SECRET_WORDS
from llm.offline.support import foreign_facts, terms

LONGEST_CHARACTERS = 200
LEAST_SHARE = 0.4
"""The least share of its words, by weight, that the question or the sources have."""
_SECRETS = frozenset(term for word in SECRET_WORDS for term in terms(word))


def check_missing(missing: str, said: str) -> str:
    """Return a missing part on one line; empty where a user must not read it.

    `said` holds the question and the sources.
    """
    line = plain_line(without_citations(missing))
    if not line or len(line) > LONGEST_CHARACTERS or len(list(sentences(line))) > 1:
        return ""
    if keep_links(missing, Allowed(any_host=True)).removed or foreign_facts(line, said):
        return ""
    if _SECRETS.intersection(terms(line)).difference(terms(said)):
        return ""
    return line if share_of_known(line, said) >= LEAST_SHARE else ""
