"""Checks a model's wording of a clarification or a refusal, which no judge compares with sources.

It has at most three short sentences. It contains no link, address, telephone number or markup, and
no number, code or identifier that its inputs lack. It does not ask for a secret. Most words of its
statements come from the fixed text and from the question.
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
"""The least share of known words in a statement, by weight; a question may use any words."""
_QUESTION = re.compile(r"[?\uff1f\u061f\u037e]")
_MARKUP = re.compile(
    r"[`<]|\]\s?[(\[:]|!\[|^[^\S\n]*+(?:[#>|]|[-*+]\s|\d{1,3}[.)]\s|~~~)", re.MULTILINE
)
_TELEPHONE = re.compile(r"\d(?:[ ()./-]{0,3}\d){6}")
_SECRETS = frozenset(term for word in SECRET_WORDS for term in terms(word))


def fault_of(text: str, inputs: Inputs, *, asks: bool) -> str:
    """Return the fault of a model's wording, or an empty text."""
    about = (inputs.question, inputs.message, *inputs.options, inputs.domain_name)
    known_text = "\n".join((*about, inputs.fixed_text))
    return (
        _form_fault(text, asks=asks)
        or _content_fault(text, known_text)
        or next((f"it states {one[:60]!r}" for one in _find_unknown(text, known_text)), "")
    )


def _form_fault(text: str, *, asks: bool) -> str:
    if len(text) > LONGEST_CHARACTERS:
        return f"expected {LONGEST_CHARACTERS} characters at most, found {len(text)}"
    if len(list(sentences(" ".join(text.split())))) > MOST_SENTENCES:
        return f"expected {MOST_SENTENCES} sentences at most, found more"
    if clean_text(text) != text:
        return "it contains invisible characters"
    if _MARKUP.search(text):
        return "it contains markup"
    if asks and not _QUESTION.search(text):
        return "it asks nothing"
    return ""


def _content_fault(text: str, known_text: str) -> str:
    hosts = frozenset(word.strip(".,;:!?()\"'“”«»") for word in known_text.split())
    bare = frozenset(word for word in hosts if "/" not in word and "@" not in word)
    if removed := keep_links(text, Allowed(held=bare)).removed:
        return f"it contains {removed[0]!r}"
    if _TELEPHONE.search(text):
        return "it contains a telephone number"
    if facts := foreign_facts(text, known_text):
        return f"it names {', '.join(facts[:3])}"
    if secrets := _SECRETS.intersection(terms(text)).difference(terms(known_text)):
        return f"it asks for a secret: {min(secrets)}"
    return ""


def _find_unknown(text: str, known_text: str) -> list[str]:
    """Return the statements that consist mostly of unknown words."""
    statements = [one for one in sentences(" ".join(text.split())) if not _QUESTION.search(one)]
    return [one for one in statements if share_of_known(one, known_text) < LEAST_SHARE]
