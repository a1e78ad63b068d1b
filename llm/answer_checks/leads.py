"""Tells whether a heading, or a sentence that leads to a list, says only what was said elsewhere.

Nobody can judge a heading as a claim, because it cites nothing. So it may hold only numbers, code
and identifiers of the sources, and mostly words of the sources, of the question, and those with
which headings everywhere are made ("Next steps", "Beispiel").
"""

from citations.claims import without_citations
from llm.offline.phrases import CONNECTING_WORDS
from llm.offline.support import foreign_facts, terms, weight_of

LEAST_SHARE = 0.6
"""So much of a lead's words, by weight, must be known."""
_CONNECTING = frozenset(term for word in CONNECTING_WORDS for term in terms(word))


def stands_in(lead: str, said: str) -> bool:
    """Return whether the words of `lead` are those of `said`, and hold no fact beyond it."""
    if foreign_facts(lead, said):
        return False
    return share_of_known(lead, said) >= LEAST_SHARE


def share_of_known(text: str, said: str) -> float:
    """Return from 0 to 1 how much of a text stands in `said`, or only connects."""
    known = _CONNECTING.union(terms(said))
    weights = [(term in known, weight_of(term)) for term in terms(without_citations(text))]
    own = sum(weight for is_known, weight in weights if is_known)
    return own / sum(weight for _, weight in weights) if weights else 1.0
