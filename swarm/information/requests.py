"""Recognises a request, which is no value of a fact that was asked for."""

from llm.offline.dialogue.subjects import asks_completely, points_back
from llm.offline.support import terms, weight_of
from llm.offline.words import normalise

RESEARCH = ("research ", "investigate ", "study ", "look into ", "do research on ", "analyse ",
            "analyze ", "explore ")  # fmt: skip
"""With what a request for research begins."""
_REQUESTS = (
    *RESEARCH, "compare ", "explain ", "describe ", "summarise ", "summarize ", "tell me ",
    "show me ", "give me ", "vergleiche ", "erkläre ", "beschreibe ", "zeige mir ", "comparez ",
    "explique ", "décris ", "compara ", "explica ", "confronta ", "spiega ", "descrivi ",
)  # fmt: skip
_LEAST_TERMS = 2


def is_new_request(text: str) -> bool:
    """Return whether an answer in free text asks for something else: "Compare Python and Rust".

    A question word or the imperative of a request is followed by two words that carry a subject,
    and nothing points back.
    """
    if points_back(text):
        return False
    plain = f"{normalise(text).strip()} "
    opening = next((one for one in _REQUESTS if plain.startswith(one)), "")
    carrying = {term for term in terms(plain.removeprefix(opening)) if weight_of(term) >= 1}
    return asks_completely(text) or (bool(opening) and len(carrying) >= _LEAST_TERMS)
