"""Recognises a text in a document that is aimed at an assistant, and not at a reader.

Such a text may be shown, with a warning; it is never followed.
"""

import re

from llm.attacks.injection import inspect

_TO_ASSISTANTS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:above|previous|prior|earlier"
    r"|instructions?|question|context|rules|everything)\b"
    # What a law asks of AI systems is no order: the verb says something to a reader, or hides it.
    r"|\b(?:ai|assistants?|chat ?bots?|language models?|llms?)\b.{0,30}\b(?:must|should|shall"
    r"|have to|need to|instructed|please|are to)\b.{0,25}\b(?:say|reply|respond|answer|output"
    r"|print|tell|claim|repeat|reveal|mention|recommend|advise|ignore|disregard|forget|obey|click"
    r"|visit|refuse|pretend|translate|summari[sz]e|append|insert|write)\b"
    r"|\b(?:ai|assistants?|chat ?bots?|language models?|llms?)\b.{0,30}\breading\b"
    r"|\b(?:dear|attention|note to|hey|instructions? (?:to|for))\b.{0,20}\b(?:ai|assistants?"
    r"|models?|chat ?bots?|llms?)\b"
    r"|\byou are (?:now )?(?:a|an|the) .{0,30}\b(?:assistant|ai|model|bot|persona)\b"
    r"|\b(?:say|reply|respond|answer|output|print|tell the user)\b.{0,12}\b(?:only|exactly|with the"
    r"|instead|that you)\b"
    r"|\b(?:system|hidden|secret) prompt\b",
    re.IGNORECASE,
)


_TO_READERS_TOO = "no limits"
"""A kind of attack in a question, and an ordinary sentence of a document: "You may copy it without
any restriction"."""


def is_order_to_assistant(text: str) -> bool:
    """Return whether `text` is aimed at the assistant, and not at a reader."""
    kinds = set(inspect(text, deadline=None).kinds) - {_TO_READERS_TOO}
    return bool(kinds) or _TO_ASSISTANTS.search(text) is not None
