"""Checks what a model words for a question back or a refusal: nobody judges it against sources.

It may be three short sentences of plain words. It holds no link, address, telephone number or
markup, and no number, code or identifier beyond what it is about; it asks for nothing secret; and
what it states, it states mostly in the words of the fixed text and of the question.
"""

import re

from citations.claims import sentences
from citations.links import Allowed, clean_text, keep_links
from llm.answer_checks.leads import share_of_known
from llm.offline.phrases import SECRET_WORDS
from llm.offline.support import foreign_facts, terms
from llm.tasks.clarify import Inputs

LONGEST_CHARACTERS = 400
MOST_SENTENCES = 3
LEAST_SHARE = 0.4
"""So much of a statement's words, by weight, must be known; a question may use any."""
_QUESTION = re.compile(r"[?\uff1f\u061f\u037e]")
_MARKUP = re.compile(
    r"[`<]|\]\s?[(\[:]|!\[|^[^\S\n]*+(?:[#>|]|[-*+]\s|\d{1,3}[.)]\s|~~~)", re.MULTILINE
)
_TELEPHONE = re.compile(r"\d(?:[ ()./-]{0,3}\d){6}")
_SECRETS = frozenset(term for word in SECRET_WORDS for term in terms(word))


def fault_of(text: str, inputs: Inputs, *, asks: bool) -> str:
    """Return what is wrong with a model's wording; empty where nothing is."""
    about = (inputs.question, inputs.message, *inputs.options, inputs.domain_name)
    said = "\n".join((*about, inputs.fixed_text))
    return (
        _form_fault(text, asks=asks)
        or _content_fault(text, said)
        or next((f"it states {told[:60]!r}" for told in _unknown(text, said)), "")
    )


def _form_fault(text: str, *, asks: bool) -> str:
    if len(text) > LONGEST_CHARACTERS:
        return f"expected {LONGEST_CHARACTERS} characters at most, found {len(text)}"
    if len(list(sentences(" ".join(text.split())))) > MOST_SENTENCES:
        return f"expected {MOST_SENTENCES} sentences at most, found more"
    if clean_text(text) != text:
        return "it holds characters that nobody sees"
    if _MARKUP.search(text):
        return "it holds markup"
    if asks and not _QUESTION.search(text):
        return "it asks nothing"
    return ""


def _content_fault(text: str, said: str) -> str:
    hosts = frozenset(word.strip(".,;:!?()\"'“”«»") for word in said.split())
    bare = frozenset(word for word in hosts if "/" not in word and "@" not in word)
    if removed := keep_links(text, Allowed(held=bare)).removed:
        return f"it holds {removed[0]!r}"
    if _TELEPHONE.search(text):
        return "it holds a telephone number"
    if facts := foreign_facts(text, said):
        return f"it names {', '.join(facts[:3])}"
    if secrets := _SECRETS.intersection(terms(text)).difference(terms(said)):
        return f"it asks for a secret: {min(secrets)}"
    return ""


def _unknown(text: str, said: str) -> list[str]:
    told = [one for one in sentences(" ".join(text.split())) if not _QUESTION.search(one)]
    return [one for one in told if share_of_known(one, said) < LEAST_SHARE]
