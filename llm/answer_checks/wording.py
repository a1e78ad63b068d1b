"""Checks every text of a model that asks a person, or declines: no judge compares it with sources.

What it says is the model's. A rule withholds what could lead a person astray: a link, an address or
a telephone number that nobody gave, the request for a secret, and a piece of the prompt.
"""

import re

from citations.links import Allowed, keep_links
from llm.answer_checks.secret_words import find_secret_words
from llm.tasks.clarify import Inputs

_PROMPT_MARKS = ("<data name=", "</data>")
_TELEPHONE = re.compile(r"\d(?:[ ()./-]{0,3}\d){6}")


def find_fault(text: str, inputs: Inputs) -> str:
    """Return why a model's wording must not be shown, or an empty text."""
    if not text:
        return "it is empty"
    about = (inputs.question, inputs.message, *inputs.options, inputs.topic)
    return find_asking_fault(text, "\n".join((*about, inputs.fixed_text)))


def find_asking_fault(text: str, known_text: str) -> str:
    """Return why a person must not be asked this, or an empty text.

    `known_text` is what the person wrote, and what is fixed: words of it may be repeated.
    """
    hosts = frozenset(word.strip(".,;:!?()\"'“”«»") for word in known_text.split())
    bare = frozenset(word for word in hosts if "/" not in word and "@" not in word)
    if removed := keep_links(text, Allowed(held=bare)).removed:
        return f"it contains {removed[0]!r}"
    if any(mark in text for mark in _PROMPT_MARKS):
        return "it repeats a prompt"
    if any(found not in known_text for found in _TELEPHONE.findall(text)):
        return "it contains a telephone number"
    if secrets := find_secret_words(text, known_text):
        return f"it asks for a secret: {min(secrets)}"
    return ""
