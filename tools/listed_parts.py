"""Finds the questions in a message, or the items that a question lists.

Lists are recognized only by their format: bullets, question marks, commas, and the conjunction
before the last item.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from knowledge.index.terms import surface_words, terms
from knowledge.stop_words import STOP_WORDS, function_words

_LONGEST = 4_000
_LEAST_ITEMS = 3
_MOST_QUESTIONS = 8
_LEAST_QUESTION_WORDS = 2
_MOST_THINGS, _LONGEST_THING_WORDS = 12, 4
_LISTED_LINE = re.compile(r"^[ \t]{0,8}(?:\d{1,3}[.)]|[-*•])[ \t]{1,4}(\S.{0,2000})$", re.MULTILINE)
_ASKED = re.compile(r"[^?？؟\n]{1,2000}[?？؟]")
_QUESTION_MARKS = ("?", "？", "؟")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？؟])|\n")
_QUOTED = re.compile(r'"[^"\n]{20,1000}"|“[^”\n]{20,1000}”|„[^“\n]{20,1000}“|«[^»\n]{20,1000}»')
_COMMA = re.compile(r"[,;]\s+")
_AND = "and|or|und|oder|et|ou|y|o|e|и|та|і"
_BEFORE_LAST = re.compile(rf"(?:\A|\s)(?:{_AND})\s", re.IGNORECASE)
_NAME = r"[A-Z][\w.'&-]{0,40}(?: (?:(?:of|the|de|and the) )?[A-Z][\w.'&-]{0,40}){0,5}"
_LISTED_NAMES = re.compile(rf"{_NAME}(?:, (?:the )?{_NAME}){{1,20}},? (?:and|or) (?:the )?{_NAME}")
_BETWEEN_NAMES = re.compile(r"(?:, (?:and |or )?| (?:and|or) )(?:the )?")
_AFTER_LIST = frozenset(
    {"say", "says", "mention", "mentions", "sagen", "besagen", "disent", "dicen", "dicono"}
)
"""Verbs that can follow a list: "what webhooks and zeppelins say about retries"."""
_EDGE = " .?!:\"'()"


@dataclass(frozen=True, slots=True)
class ListedItems:
    """The items that a question lists, and the words that state what is asked about each."""

    items: tuple[str, ...]
    asked: str


def split_questions(text: str) -> tuple[str, ...]:
    """Return the questions in a message if there are at least two, or none.

    Questions are list items, or sentences that end with a question mark.
    """
    read = text[:_LONGEST]
    lines = [item[1].strip() for item in _LISTED_LINE.finditer(read)]
    candidates = lines if len(lines) > 1 else [match.strip() for match in _ASKED.findall(read)]
    whole = [text for text in candidates if len(_list_subjects(text)) >= _LEAST_QUESTION_WORDS]
    parts = tuple(dict.fromkeys(whole))[:_MOST_QUESTIONS]
    return parts if len(parts) > 1 and len(whole) == len(candidates) else ()


def find_items(question: str) -> ListedItems | None:
    """Return the items if a question lists at least three, or None.

    Lists in quotations and in statements before the question are ignored.
    """
    asked = _extract_questions(question[:_LONGEST])
    items = find_listed_names(asked) or find_listed_things(asked)
    if not items:
        return None
    return ListedItems(items, find_asked_words(asked, " ".join(items)))


def find_listed_names(question: str) -> tuple[str, ...]:
    """Return the names if a question lists at least three, or none."""
    listed = _LISTED_NAMES.search(question[:_LONGEST])
    if listed is None:
        return ()
    first, *others = _BETWEEN_NAMES.split(listed[0])
    words = first.split()
    if listed.start() == 0 and len(words) > 1:
        words = words[1:]  # the first word of a question is capitalized, too: "Compare Python, ..."
    return tuple(dict.fromkeys((" ".join(words).removeprefix("the "), *others)))


def find_listed_things(question: str) -> tuple[str, ...]:
    """Return the items if a question lists at least three, with at most four words each, or none.

    If all items but the last one are single words, the head noun of the last item applies to all of
    them: "retention, deletion and export rules" lists three kinds of rules.
    """
    parts = _COMMA.split(question[:_LONGEST])
    if len(parts) < _LEAST_ITEMS - 1:
        return ()
    things = _read_things(parts)
    if not _LEAST_ITEMS <= len(things) <= _MOST_THINGS:
        return ()
    return tuple(dict.fromkeys(_share_head(things)))


def find_asked_words(question: str, known: str) -> str:
    """Return the content words of a question that the `known` text does not contain."""
    have = set(terms(known, "en"))
    words = dict.fromkeys(_list_subjects(question))
    return " ".join(word for word in words if not set(terms(word, "en")) & have)


def _extract_questions(message: str) -> str:
    """Return the questions in a message, or the whole message if there are none, without
    quotations.
    """
    plain = _QUOTED.sub(" ", message)
    sentences = (sentence.strip() for sentence in _SENTENCE_END.split(plain))
    asked = [sentence for sentence in sentences if sentence.endswith(_QUESTION_MARKS)]
    return " ".join(asked) or plain


def _list_subjects(text: str) -> list[str]:
    return [word for word in surface_words(text) if _is_content_word(word)]


def _is_content_word(word: str) -> bool:
    """Return whether a word is a content word, rather than a function word of any language."""
    return word not in STOP_WORDS and not function_words([word])


def _read_things(parts: Sequence[str]) -> list[str]:
    """Return the items of an enumeration, from the last words of its first part to the item after
    the conjunction.
    """
    first = _take_last(parts[0])
    if first == parts[0].strip(_EDGE):
        # In a question such as "Compare webhooks, ...", the first word is a verb.
        first = first.partition(" ")[2] or first
    things = [first]
    for part in parts[1:]:
        last = _BEFORE_LAST.search(part)
        if last is None:
            things.append(_take_whole(part))
            continue
        before = part[: last.start()]
        things += [_take_whole(before)] if before.strip() else []
        things.append(_take_first(part[last.end() :]))
        return things if all(things) else []
    return []


def _take_last(text: str) -> str:
    """Return the words at the end of a text that may be a list item, or "" if there are too
    many.
    """
    words = text.strip(_EDGE).split()
    taken: list[str] = []
    while words and _may_name(words[-1]) and len(taken) < _LONGEST_THING_WORDS:
        taken.insert(0, words.pop())
    is_cut = bool(words) and _may_name(words[-1])
    return "" if is_cut else " ".join(taken)


def _take_first(text: str) -> str:
    words = text.split()
    while words and not _may_name(words[0]):
        words.pop(0)
    taken: list[str] = []
    for word in words:
        is_after_name = bool(taken) and taken[0][0].isupper() and not word[0].isupper()
        if not _may_name(word) or is_after_name or len(taken) == _LONGEST_THING_WORDS:
            break
        taken.append(word.strip(_EDGE))
        if word[-1] in ".?!:":
            break
    return " ".join(taken)


def _take_whole(text: str) -> str:
    words = text.strip(_EDGE).split()
    while words and not _may_name(words[0]):
        words.pop(0)
    return " ".join(words) if len(words) <= _LONGEST_THING_WORDS else ""


def _share_head(things: Sequence[str]) -> list[str]:
    """Return the list items, with the head noun of the last item appended to the others ("read and
    write access" -> "read access", "write access").
    """
    *others, last = things
    head = last.split()[1:][-1:]
    if not head or not all(map(_may_lack_head, others)):
        return list(things)
    return [" ".join((other, *head)) for other in others] + [last]


def _may_lack_head(thing: str) -> bool:
    """Return whether the item is a single word that is neither a proper noun nor a plural."""
    return " " not in thing and not thing[:1].isupper() and not thing.endswith("s")


def _may_name(word: str) -> bool:
    """Return whether a word may be part of a list item."""
    plain = word.strip(_EDGE).casefold()
    return plain not in _AFTER_LIST and _is_content_word(plain)
