"""Finds what a question names: proper names, codes and numbers, and two things to compare.

A passage about something else is no answer: one about the model 500 does not
describe how to reset the model 900.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from llm.offline.phrases import ASKING_WORDS, KIND_WORDS, MONTHS, WEEKDAYS
from llm.offline.quoting.key_terms import (
    extract_asked_terms,
    extract_key_terms,
    is_function_word,
)
from llm.offline.support import terms

_WORD = re.compile(r"[^\W_][\w'\u2019.-]*[^\W_]|[^\W_]")
_CODE = re.compile(r"(?=[A-Za-z-]{0,20}\d)[A-Za-z\d.-]+\Z")
_VERSION_NUMBER = re.compile(r"(?<![\d.])\d{1,5}(?:\.\d{1,5}){2,3}(?![\d.]*\d)")
_STATED_VERSION = re.compile(r"\b[Vv](?:ersion )?(\d{1,5}\.\d{1,5})(?![\w.]*\d)")
_SIDE = r"(?:the |a |an |using |your |my )?([^?.,;]{1,80}?)"
_COMPARING = (
    re.compile(
        rf"\b(?:between|compare|distinguish|comparison of) {_SIDE}"
        rf" (?:and|from|with|to|vs\.?|versus) {_SIDE}[?.!]*\Z",
        re.IGNORECASE,
    ),
    re.compile(rf"\A{_SIDE} (?:vs\.?|versus|compared (?:to|with)) {_SIDE}[?.!]*\Z", re.IGNORECASE),
    re.compile(
        rf"\bhow (?:do|does|is|are) {_SIDE} (?:and|differ(?:s|ent)? from|different from|or)"
        rf" {_SIDE}(?: (?:differ|compare|different))?[?.!]*\Z",
        re.IGNORECASE,
    ),
    re.compile(rf"\bunterschied(?:e)? zwischen {_SIDE} und {_SIDE}[?.!]*\Z", re.IGNORECASE),
    re.compile(rf"\bdiferencia(?:s)? entre {_SIDE} y {_SIDE}[?.!]*\Z", re.IGNORECASE),
    re.compile(rf"\bdifférence(?:s)? entre {_SIDE} et {_SIDE}[?.!]*\Z", re.IGNORECASE),
)
_DIFFERS = re.compile(
    r"\bdiffer|\bcompare|\bvs\b|\bversus\b|\bdistinguish|unterschied|diferenc|différence",
    re.IGNORECASE,
)


_STATED_NUMBER = re.compile(
    r"\b(?:version|revision|rev|release|edition|fassung)[. ]?(\d{1,4}(?:\.\d{1,4}){0,2})\b"
    r"|\b(?:in|of|under|for) (?:the )?((?:19|20)\d\d)\b"
    r"|\b((?:19|20)\d\d) (?:version|edition|revision|release|act)\b",
    re.IGNORECASE,
)
"""The number by which a question names the version that it asks about."""
_CHANGE_HEADING = re.compile(
    r"\[?(?:version|release|v)?\s?\d{1,5}(?:\.\d{1,5}){1,3}[\w.+-]{0,20}\]?"
    r"(?:\s?[\u2013(,-].{0,60})?\s?\Z",
    re.IGNORECASE,
)
_CHANGE_TITLE = re.compile(
    r"(?:change ?log|release notes?|release history|version history|what.?s new"
    r"|änderungsprotokoll|versionshinweise)\b",
    re.IGNORECASE,
)
_PROVISIONS = re.compile(
    r"\b(?:what|which) (?:\w{1,10} ){0,2}?((?:rule|regulation|requirement|provision|condition"
    r"|restriction|obligation|guideline|polic)(?:s|y|ies)?)(?: \w{1,10}){0,2}"
    r" (?:for|on|about|of|regarding|concerning)\b",
    re.IGNORECASE,
)
"""What a question calls the statements that it asks for: they need not call themselves so."""
_ROLE = re.compile(
    r"\bwho (?:is|are|was|were) (?:the|our|my|your) (?:[\w-]{1,30} )?([^\W\d_]{3,30})"
    r" (?:of|for|at|in)\b",
    re.IGNORECASE,
)
_ROLE_ENDING = re.compile(r"(?:e[rd]?|or|ent|ant)\Z")
_LEAST_ROLE = 4
_LABEL = re.compile(r"\b([^\W\d_]{3,40}) (\d{1,2})(?![\w.,:]*\d)(?: ([^\W\d_]{2,40}))?")


@dataclass(frozen=True, slots=True)
class Label:
    """A number behind a word, as a name has it: "route 8"; `counted` is the word behind it."""

    word: str
    number: str
    counted: str


def is_list_of_changes(place: str) -> bool:
    """Return whether a place is an entry of a changelog, which may no longer hold."""
    *above, last = place.split(" > ")
    if _CHANGE_HEADING.match(last.strip()) is None:
        return False
    return any(_CHANGE_TITLE.match(part.strip()) for part in above)


def find_stated_versions(heading: str) -> frozenset[str]:
    """Return the version numbers of two parts that a heading names as such: "Version 2.3"."""
    return frozenset(_STATED_VERSION.findall(heading))


def find_stated_numbers(question: str) -> tuple[str, ...]:
    """Return the numbers by which a question names versions: "revision 5", "in 2024"."""
    return tuple(number for found in _STATED_NUMBER.findall(question) for number in found if number)


def find_stated_editions(question: str) -> tuple[str, ...]:
    """Return those of the numbers that a question calls versions: "version 2024"."""
    found = _STATED_NUMBER.findall(question)
    return tuple(number for one, _, other in found for number in (one, other) if number)


def find_labels(question: str) -> tuple[Label, ...]:
    """Return the small numbers of `question` that stand behind a word with a subject."""
    labels = []
    for word, number, counted in _LABEL.findall(question):
        named = extract_key_terms(word)
        if len(named) == 1 and not is_function_word(word.lower()):
            labels.append(Label(min(named), number, "".join(terms(counted, cut=False)[:1])))
    return tuple(labels)


def find_codes(question: str) -> frozenset[str]:
    """Return the terms of codes and numbers in `question`: "E4", "4711", "2.0"."""
    found = (word for word in _WORD.findall(question) if _CODE.match(word))
    return frozenset[str]().union(*(extract_key_terms(word) for word in found))


def find_versions(text: str) -> frozenset[str]:
    """Return the version numbers of at least two dots in `text`: "4.1.0"."""
    return frozenset(_VERSION_NUMBER.findall(text))


def find_names(question: str) -> frozenset[str]:
    """Return the terms of words with a capital letter that does not begin the question."""
    words = _WORD.findall(question)
    if len(words) > 2 and all(word[:1].isupper() for word in words):
        return frozenset()
    named = [word for word in words[1:] if word[:1].isupper() and not _is_no_name(word.lower())]
    return frozenset[str]().union(*(extract_key_terms(word) for word in named))


def _is_no_name(word: str) -> bool:
    """Return whether a word has its capital letter for another reason: dates name no thing."""
    return word in ("i", "i'm") or word in WEEKDAYS or word in MONTHS


_HEADS = (
    re.compile(
        r"\b(?:what|which|how (?:much|high|big|large|long)) (?:is|are|was|were)"
        r" (?:the|my|our|your|a)"
        r" ([\w -]{1,40}?) (?:of|for|in|at|on|between|to|from|with|by)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bhow (?:much|high|big|large|long|old) (?:is|are|was|were) (?:the|my|our|your|a|an|one)"
        r" ([\w -]{1,40}?)[?.! ]*\Z",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bhow many ([\w-]{1,30}(?: [\w-]{1,30})?) (?:do|does|did|can|may|must|should|will|would"
        r"|is|are|was|were|has|have|had)\b",
        re.IGNORECASE,
    ),
    re.compile(r"\bhow many ([\w-]{1,30})\b", re.IGNORECASE),
    re.compile(
        r"\b(?:which|what) ([\w-]{1,30}(?: [\w-]{1,30}){0,2}?) (?:do|does|did|can|may|must|should"
        r"|will|would|is|are|was|were|has|have|had)\b",
        re.IGNORECASE,
    ),
    re.compile(
        r"\bhow (?:do|does|can|could|may|should|would) (?:i|we|you|one|[\w-]{1,30})"
        r" ([a-z-]{2,30})\b",
        re.IGNORECASE,
    ),
)


_GROUPS = (
    re.compile(
        r"\b(?:do|does|did|can|may|must|should|will) (?:the |our |an? )?([\w-]{2,40})"
        r" (?:have|get|need|pay|receive|earn|take|use|join|apply|work)\b",
        re.IGNORECASE,
    ),
    re.compile(r"\bfor (?:the |our |an? )?([\w-]{2,40})\s?\?\Z", re.IGNORECASE),
)


_PAIR = re.compile(
    r"\b(?:the|an?|my|our|your|any|each|for|of|in|with|per|on|about|[^\W\d_]{1,30}(?:ly|al|ic))"
    r" (?=([^\W\d_]{3,40}(?:['\u2019]s)?)[ -]([^\W\d_]{3,40})\b)",
    re.IGNORECASE,
)
_DESCRIBES = re.compile(
    r"(?:ly|ed|ing|al|ic|ive|ble|ous|ful|est|less|ant|ent|ary|ory|en)\Z"
    r"|\A(?:new|old|big|own|same|full|whole|total|free|late|early|long|short|large|small|maximum"
    r"|minimum|average|usual|basic|extra|single|double|next|last|first|second|third|one|two|three)\Z",
    re.IGNORECASE,
)
"""An adjective may be left out by an answer; the noun before another says which kind it is."""


KIND_TERMS = extract_key_terms(" ".join(sorted(KIND_WORDS)))
"""The terms of words for a kind of thing, which an answer need not repeat."""


TIME_TERMS = extract_key_terms(" ".join(sorted({*MONTHS, *WEEKDAYS} - {"may", "mar"})))
"""The terms of months and days of the week, which are seldom what a question is about."""


def find_provisions(question: str) -> frozenset[str]:
    """Return the term by which a question asks for all statements: "the rules for drones"."""
    found = _PROVISIONS.search(question)
    return frozenset() if found is None else extract_key_terms(found[1])


def find_unknown_role(question: str, known: Iterable[str]) -> frozenset[str]:
    """Return the role that a question asks for, unless its or its verb's term is known.

    "Who is the founder of ...?" is answered by a text that says "founded by", too.
    """
    found = _ROLE.search(question)
    roles = frozenset() if found is None else extract_key_terms(found[1]) - KIND_TERMS
    stems = tuple(_cut_role(role) for role in roles)
    return frozenset() if any(term.startswith(stems) for term in known) else roles


def _cut_role(role: str) -> str:
    stem = _ROLE_ENDING.sub("", role)
    return stem if len(stem) >= _LEAST_ROLE else role


def find_group(question: str) -> frozenset[str]:
    """Return the term of those whom a question is about: "How many days do nurses have?"."""
    found = (pattern.search(question) for pattern in _GROUPS)
    return frozenset[str]().union(*(extract_key_terms(one[1]) for one in found if one is not None))


def find_modifiers(question: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of a noun that says which kind is meant and the noun behind it.

    "Tuition fees" are other fees than those of a library. Both are key terms.
    """
    pairs = []
    for first, second in _PAIR.findall(question):
        words = first.lower(), second.lower()
        if any(is_function_word(word) or word in ASKING_WORDS for word in words):
            continue
        one, other = extract_key_terms(first), extract_key_terms(second)
        if _DESCRIBES.search(first) is None and len(one) == len(other) == 1:
            pairs.append((min(one), min(other)))
    return tuple(pairs)


def find_head(question: str) -> frozenset[str]:
    """Return the term of what a question asks for: "salary" of `What is the salary of ...?`.

    That of a question how to do something is its verb: "change" of `How do I change ...?`.
    """
    for pattern in _HEADS:
        match = pattern.search(question)
        if match is not None:
            head = match[1].split()[-1].lower()
            # "Which company ...?" is answered by a name: the answer need not say the kind.
            return frozenset() if head in KIND_WORDS else extract_asked_terms(head) - KIND_TERMS
    return frozenset()


def find_compared(question: str) -> tuple[frozenset[str], frozenset[str]] | None:
    """Return the terms of the two things that `question` compares, each without what they share."""
    if _DIFFERS.search(question) is None:
        return None
    for pattern in _COMPARING:
        match = pattern.search(question)
        if match is not None:
            one, other = (extract_asked_terms(side) for side in match.groups())
            if one - other and other - one:
                return one - other, other - one
    return None
