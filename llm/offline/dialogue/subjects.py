"""Writes a question together with what it is about: "Who can do that? (How do I add a rule?)".

The own words of a question stand first, its subject in brackets at the end. A subject has at most
two parts, the first and the newest, so that it does not grow with the conversation.
"""

import re

from llm.offline.phrases import (
    ASKING_WORDS,
    FUNCTION_WORDS,
    OPENERS,
    POINTING,
    POINTING_SIGNS,
    QUESTION_WORDS,
)
from llm.offline.words import content_words, normalise, words

_SUBJECT = re.compile(r"(?P<own>[^()]{1,2000}?)\s?\((?P<subject>[^()]{1,4000})\)\s{0,9}")
_WORD = re.compile(r"\w+")
BETWEEN_SUBJECTS = " / "
_MARKS = "?\uff1f\u061f. "
_POINTING_WORDS = 2
_SUBJECT_WORDS = 2


def split_subject(question: str) -> tuple[str, str]:
    """Return the own words of a question and its subject, which is empty if it names none."""
    found = _SUBJECT.fullmatch(question)
    return (found["own"].strip(), found["subject"].strip()) if found else (question.strip(), "")


def add_subject(question: str, subject: str) -> str:
    """Return `question` about `subject`, in addition to its present subject."""
    own, known = split_subject(question)
    added = _plain(subject)
    if not added or normalise(added) == normalise(own):
        return question.strip()
    if not own:
        return added
    parts = [*filter(None, known.split(BETWEEN_SUBJECTS)), added]
    return f"{own} ({BETWEEN_SUBJECTS.join(_shorten(parts))})"


def join_subject(own: str, subject: str) -> str:
    """Return one question of a turn that only points, and of its subject.

    "Who can do that?" about "How do I add a rule?" is "Who can do that: add a rule?": its own
    question word decides what kind of answer it gets.
    """
    first = subject.split(BETWEEN_SUBJECTS)[0]
    found = list(_WORD.finditer(first))
    starts = (word.start() for word in found if word[0].casefold() not in FUNCTION_WORDS)
    named = first[next(starts, 0) :]
    return f"{own.rstrip(_MARKS)}: {named}" if own and named else own or subject


def subject_of(question: str, *, is_replaced: bool = False) -> str:
    """Return what the next turn is about after `question`.

    `is_replaced` says that the next turn goes on in place of a turn that went on itself: "And the
    Owner?" after "And the Developer?" is about the question before both.
    """
    own, known = split_subject(question)
    parts = [part for part in known.split(BETWEEN_SUBJECTS) if part]
    leans_back = points_back(own) or (is_replaced and goes_on(own))
    says_little = leans_back and len(content_words(own)) <= _POINTING_WORDS
    if not parts or not says_little:
        parts.append(_plain(own))
    return BETWEEN_SUBJECTS.join(_shorten(parts))


def goes_on(text: str) -> bool:
    """Return whether a turn opens like one that goes on from the turn before: "And ...?"."""
    return normalise(text).startswith(tuple(f"{opener} " for opener in OPENERS))


def asks_completely(text: str) -> bool:
    """Return whether a turn that goes on asks what somebody does with what: "And how do I ...?".

    Its question word is followed by two words that carry a subject, and it points at nothing.
    """
    spoken = normalise(text)
    while goes_on(spoken):
        opener = max((one for one in OPENERS if spoken.startswith(f"{one} ")), key=len)
        spoken = spoken.removeprefix(f"{opener} ")
    asked = [word for word in content_words(spoken) if word not in ASKING_WORDS]
    is_question = not QUESTION_WORDS.isdisjoint(words(spoken)[:1])
    return is_question and len(asked) >= _SUBJECT_WORDS and not points_back(spoken)


def points_back(text: str) -> bool:
    """Return whether a word of `text` refers to an earlier turn."""
    return not POINTING.isdisjoint(words(text)) or any(sign in text for sign in POINTING_SIGNS)


def _shorten(parts: list[str]) -> list[str]:
    return list(dict.fromkeys([parts[0], parts[-1]]))


def _plain(text: str) -> str:
    """Return a text without own brackets, which would hide where the subject begins."""
    return " ".join(text.replace("(", " ").replace(")", " ").split())
