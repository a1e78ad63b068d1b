"""Computes features of a question's wording: its pronouns, definite nouns and names.

These features need no index. They separate a question without a clear subject ("How old is the
building?" as a first question) from one that names it ("How old is the Eiffel Tower?").
"""

import math
import re
from itertools import pairwise

from knowledge.port import SearchRequest

_WORD = re.compile(r"[^\W_][\w'\u2019./:-]*")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_THESE = _set(
    "this that these those diese dieser dieses diesen diesem este esta estos estas ese esa esos "
    "esas ce cet cette ces questo questa questi queste quel quella quei quelle esse essa esses "
    "essas этот эта это эти этого этой этих цей ця це ці цього цієї цих"
)
_THE = _set("the")
_IT = _set(
    "it its they them their he she him her his hers theirs there ihn ihm ihnen deren dessen davon "
    "ello ellos ellas celui celle ceux lui leur esso essa essi isso aquilo ele eles elas он она "
    "оно они его её ее их він вона воно вони його її їх"
)
_LITTLE = _set(
    "a about all also am an and any are as at be been but by can could did do does doing for from "
    "get had has have how i if in into is just know let like may me might more most much must my "
    "need no nor not now of off on one ones only or other our out over same should so some such "
    "tell than then to too until up us use using very want was way we were what when where which "
    "while who whom whose why will with would you your it its they them their he she his her "
    "there that this these those the"
)
_STEM_LETTERS = 6


def wording(request: SearchRequest) -> dict[str, float]:
    """Return the features of the question's own words; counts are capped.

    first                the conversation begins with it
    words                log(1 + number of words)
    definite, these      nouns made definite; by a word like "this"
    unmentioned          nouns made definite that no earlier turn has mentioned
    pointing             words like "it"; pointing_at_nothing: with no turn they could point at
    names                words with a capital or a digit after the first; named: any
    """
    raw = _WORD.findall(request.text_eng or request.text or request.question)
    earlier = (*request.related, request.previous_answer)
    mentioned = {_stem(word) for text in earlier for word in _WORD.findall(text)}
    definite = _nouns_after(raw, _THE | _THESE)
    names = sum(_is_name(word) for word in raw[1:])
    pointing = sum(word.lower() in _IT for word in raw)
    return {
        "first": float(not request.turns and not request.related),
        "words": math.log1p(len(raw)),
        "definite": float(min(len(definite), 2)),
        "these": float(min(len(_nouns_after(raw, _THESE)), 2)),
        "unmentioned": float(min(sum(_stem(noun) not in mentioned for noun in definite), 2)),
        "pointing": float(min(pointing, 2)),
        "pointing_at_nothing": float(pointing > 0 and not request.related),
        "names": float(min(names, 3)),
        "named": float(names > 0),
    }


def _nouns_after(raw: list[str], determiners: frozenset[str]) -> list[str]:
    """Return the words directly after a determiner that are not function words."""
    return [
        after
        for word, after in pairwise(raw)
        if word.lower() in determiners and after.lower() not in _LITTLE
    ]


def _is_name(word: str) -> bool:
    return len(word) > 1 and word not in {"I'm", "I've", "I'd", "I'll"} and not word.islower()


def _stem(word: str) -> str:
    return re.sub(r"['\u2019]s?$", "", word.lower())[:_STEM_LETTERS].removesuffix("s")
