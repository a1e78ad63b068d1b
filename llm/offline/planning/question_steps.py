"""Reads from the form of a question whether its answer needs more than one look.

There are three forms, found by English cues alone: a comparison of two named things ("Which opened
first, the Alfa or the Beta?"), an attribute of a thing that is named only by its relation to
another one ("Where was the founder of Alfa born?", "When did Alfa's owner retire?"), and a question
whose asked word stands inside a description ("Alfa is part of which group that ...?").
"""

import re
from dataclasses import dataclass

_NAME = r"(?:[\"'\u201c]?[A-Z0-9][\w.&'\u2019-]{0,30})"
_OPENING = re.compile(
    r"^\W{0,3}(?:between|which|who|whose|what|where|when|is|are|was|were|did|do|does|has|have|of|"
    r"(?:to|for|in|by|from|until|at|on|with) (?:which|what|whom|when))\b",
    re.IGNORECASE,
)
_ALTERNATIVES = re.compile(rf"{_NAME}(?: [^\s?]{{1,30}}){{0,8}},? or (?:the |a |an )?{_NAME}")
_CHOICE = re.compile(
    rf", (?:the |a |an )?{_NAME}(?: [^\s,?]{{1,30}}){{0,8}},? or (?:the |a |an )?{_NAME}"
)
_COMPARING = re.compile(
    r"\b(?:\w{2,20}er|more|less|fewer|first|last|most|least|earliest|latest|same|both|farther|"
    r"further|older|younger|longer|born|died|released|founded|common)\b",
    re.IGNORECASE,
)
_BOTH = re.compile(
    rf"\bboth (?:the )?{_NAME}(?: [^\s?]{{1,30}}){{0,8}} and (?:the )?{_NAME}"
    rf"|{_NAME}(?: [^\s?]{{1,30}}){{0,6}} and (?:the )?{_NAME}[^?]{{0,80}}"
    r"\b(?:the same|in common|both)\b"
)
_POSSESSIVE = re.compile(r"\b[A-Z0-9][^\s?]{0,30}['\u2019]s? (?:\d\w{0,3} )?[a-z][\w-]{1,20}")
_OF = re.compile(
    r"\bthe (?:[\w-]{1,20} ){0,2}[\w-]{2,20} (?:of|for) (?:the )?(?:[a-z][\w-]{1,20} ){0,3}" + _NAME
)
_ROLE = re.compile(
    r"\b(?:fathers?|mothers?|parents?|sons?|daughters?|child|children|siblings?|brothers?|sisters?|"
    r"wife|husband|spouse|partner|uncle|aunt|grand\w{1,12}|[\w]{1,10}-in-law|step\w{1,12}|boyfriend|"
    r"girlfriend|directors?|authors?|writers?|creators?|composers?|performers?|singers?|producers?|"
    r"founders?|owners?|actors?|actress(?:es)?|screenwriters?|inventors?|discoverers?|designers?|"
    r"architects?|presidents?|chair(?:man|woman|person)?|chief|ceo|manager|coach|captain|leader|head|"
    r"successors?|predecessors?|publishers?|manufacturers?|suppliers?|makers?|employers?|purchaser|"
    r"buyer|seller|subsidiary|parent company|company|label|distributor|developer|maintainer|"
    r"headquarters|capital|birthplace|hometown|members?|teachers?|students?|editor|sponsor|contractor)"
    r"\b",
    re.IGNORECASE,
)
"""Persons and things that are named only by their relation to others."""
_IDENTITY = re.compile(
    r"^\W{0,3}(?:who|what|which)(?: \w{2,20})? (?:is|was|are|were) "
    r"(?:(?:the (?:[\w-]{1,20} ){0,3}(?:of|for) [^?]{1,120})"
    r"|(?:[^?]{1,80}['\u2019]s? [\w-]{2,30}))\??\s{0,3}$",
    re.IGNORECASE,
)
_CHAIN = re.compile(
    r"\b(?:place|date|year|country|cause|city|nationality) of (?:birth|death|"
    r"origin|the|burial)\b[^?]{0,40}\b(?:of|['\u2019]s)\b"
)
_RELATIVE = re.compile(
    r"(?<=\w )(?:whose|who|that|where|in which|of which|for which|to which|from which)(?= [a-z])"
)
_NESTED = re.compile(
    r"\bthe (?:[\w-]{1,20} ){0,3}[\w-]{2,20} (?:of|in|that|who|where|which|whose|from) "
)
_INSIDE = re.compile(
    r"(?<=\w )(?:(?:of|in|for|by|with|from|on|at|to|is|was|were|are|against|under|serve|during) )"
    r"(?:what|which) (?=[\w-])"
)
_PROPER = re.compile(rf"(?<=\w ){_NAME}")
_RELATIONS = re.compile(
    r"\b(?:whose|where|who|which|that|the \w{1,30} of (?:the|a|an)|in which|of which)\b",
    re.IGNORECASE,
)
"""Words by which a question names a thing through another one, in English."""
_LEAST_RELATIONS = 3
_LEAST_OF_TEXT = 10
_FULL_NAME = re.compile(r"(?<=\w )[A-Z][\w.&'\u2019-]{1,30} (?:(?:of|the|de) )?[A-Z][a-z]")
"""A name of several words, as of a person, a place or a work."""


@dataclass(frozen=True, slots=True)
class QuestionSteps:
    """What makes a question one of several steps; each is a claim."""

    is_comparison: bool = False
    is_chain: bool = False
    is_inside: bool = False


def count_relations(text: str) -> int:
    """Return how often a text names a thing through another one, from three times on; else 0."""
    relations = len(_RELATIONS.findall(text))
    return relations if relations >= _LEAST_RELATIONS else 0


def needs_several_looks(text: str) -> bool:
    """Return whether a question may need more than one look: by its form, or by a full name in it.

    The answer about a named thing is often in a passage that its own one leads to. A whole sentence
    that asks nothing is a text to be found, which may have moved to another page.
    """
    steps = read_steps(text)
    has_form = steps.is_comparison or steps.is_chain or steps.is_inside
    is_text = "?" not in text and len(text.split()) >= _LEAST_OF_TEXT
    return has_form or is_text or count_relations(text) > 0 or _FULL_NAME.search(text) is not None


def read_steps(text: str) -> QuestionSteps:
    """Return the forms of a question that need more than one look."""
    asked = " ".join(text.split())
    if not _PROPER.search(asked):
        return QuestionSteps()
    return QuestionSteps(
        is_comparison=_is_comparison(asked),
        is_chain=_is_chain(asked),
        is_inside=_INSIDE.search(asked) is not None,
    )


def _is_comparison(asked: str) -> bool:
    if not _OPENING.search(asked):
        return False
    if _BOTH.search(asked):
        return True
    if _CHOICE.search(asked):
        return True
    return _ALTERNATIVES.search(asked) is not None and _COMPARING.search(asked) is not None


def _is_chain(asked: str) -> bool:
    if not _OPENING.search(asked):
        return False
    if _CHAIN.search(asked):
        return True
    named = (*_POSSESSIVE.findall(asked), *_OF.findall(asked))
    links = len(named)
    relatives = len(_RELATIVE.findall(asked)) + len(_NESTED.findall(_OF.sub("", asked)))
    if links + relatives > 1:
        return True
    has_role = any(_ROLE.search(one) for one in named)
    return has_role and _IDENTITY.search(asked) is None
