"""Decides whether a heading, or the sentence before a list, contains only known words and facts.

A heading cites nothing, so it cannot be judged as a claim. It may contain only numbers, code and
identifiers of the sources; most of its words must come from the sources, from the question, or from
a list of words that are common in headings ("Next steps", "Beispiel").
"""

from citations.claims import without_citations
from llm.offline.phrases import CONNECTING_WORDS
from llm.offline.support import foreign_facts, terms, weight_of

LEAST_SHARE = 0.6
"""The least share of known words in a heading, by weight."""
_CONNECTING = frozenset(term for word in CONNECTING_WORDS for term in terms(word))


def is_covered_by(lead: str, known_text: str) -> bool:
    """Return whether `known_text` contains the facts and most words of `lead`."""
    if foreign_facts(lead, known_text):
        return False
    return share_of_known(lead, known_text) >= LEAST_SHARE


def share_of_known(text: str, known_text: str) -> float:
    """Return the share of words, 0 to 1, that `known_text` contains or that only connect others."""
    known = _CONNECTING.union(terms(known_text))
    weights = [(term in known, weight_of(term)) for term in terms(without_citations(text))]
    own = sum(weight for is_known, weight in weights if is_known)
    return own / sum(weight for _, weight in weights) if weights else 1.0
