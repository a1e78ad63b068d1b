"""Separates the questions of one message, and recognises messages that may ask several."""

import re
from collections.abc import Iterator

from llm.offline.dialogue.subjects import asks_completely, goes_on, points_back
from llm.offline.phrases import (
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    FUNCTION_WORDS,
    OPENERS,
    QUESTION_WORDS,
)
from llm.offline.words import content_words, normalise, stems, words

_MOST_QUESTIONS = 4
_FULL_WORDS = 2
"""A question with fewer words that carry a subject belongs to the one before it."""
_WEAK_POINTERS = frozenset(["here", "one", "ones", "other", "others", "same", "such", "there"])
"""Words that point back only where hardly anything else is said: "What does one SMS cost?"."""
_ELLIPTIC_OPENINGS = frozenset(
    ["by", "from", "no", "not", "only", "through", "until", "via", "with"]
)
"""Openings of what only adds to a question: "with what payment?"."""
_ASKED_MEASURES = frozenset(["big", "far", "fast", "large", "long", "many", "much", "often"])
_TIMES = frozenset(["when", "where"])
_HOW = "how"
_FRAME = "How do I"
_FRAME_WORDS = 3
_STEP_WORDS = 3
_MARKS = "?\uff1f\u061f"
_SENTENCE = re.compile(r"[^?\uff1f\u061f]{1,500}[?\uff1f\u061f]")
_WORD = re.compile(r"\w+")
_COMMA = re.compile(r"[,;\uff0c\u3001]\s{0,9}")
_POINTS_BACK = frozenset(
    {
        "each", "it", "its", "their", "theirs", "them", "they", "this", "those", "these",
        "that", "he", "him", "his", "she", "her", "other", "others", "same", "such",
        "respective", "respectively", "jeweils", "deren", "dessen", "diese", "dieser",
        "dieses", "ihre", "ihren", "ihrer", "sie", "chacun", "leur", "leurs", "celui",
        "cada", "su", "sus", "ellos", "esos", "estas", "ciascuno", "loro",
    }
)  # fmt: skip
"""Words of a part that is about the one before it."""
_DEFINITE = frozenset(
    {
        "the", "der", "die", "das", "den", "dem", "des", "le", "la", "les", "el", "los",
        "las", "lo", "il", "gli", "o", "os", "as",
    }
)  # fmt: skip
_GERMAN = frozenset(
    {
        "ist", "sind", "wird", "werden", "der", "die", "das", "ein", "eine", "einen", "einem",
        "einer", "kostet",
    }
)  # fmt: skip
_SUBJECTS = DETERMINERS | {"i", "we", "you", "one", "ich", "wir", "man", "sie"}
"""What follows an auxiliary that opens a question: "can I", "is the"."""


def split_questions(text: str) -> tuple[str, ...]:
    """Return the questions of a text that have nothing to do with each other; none if it has one.

    A question that goes on from another, points at it or asks for no more than another one does
    belongs to it. One that shares a word with another one is separate only if both are complete.
    """
    found = [part for sentence in _find_sentences(text) for part in _split_sentence(sentence)]
    if not 1 < len(found) <= _MOST_QUESTIONS:
        return ()
    seen: list[tuple[str, frozenset[str]]] = []
    for question in found:
        terms = stems(question)
        if not terms or (seen and _belongs_to_another(question)):
            return ()
        if any(not _are_separate(one, (question, terms)) for one in seen):
            return ()
        seen.append((question, terms))
    return tuple(_leave_opener_out(question) for question in found)


def split_listed_questions(text: str) -> tuple[str, ...]:
    """Return the questions that one sentence lists with commas; none if it lists other things.

    "Which duties apply, how long are records kept, and what fines are there?" lists three. Each
    part opens like a question and is a whole one; a part that points at another one, as in "who won
    it, and when", belongs to it, and a sentence with a part that asks nothing is not divided.
    """
    sentence = text.strip()
    if len(_find_sentences(sentence)) > 1:
        return ()
    parts = [_leave_conjunction_out(part) for part in _COMMA.split(sentence.rstrip(f"{_MARKS}. "))]
    last = _split_sentence(parts[-1])
    parts = [*parts[:-1], *(one.rstrip("?") for one in last)]
    if not 1 < len(parts) <= _MOST_QUESTIONS or not all(map(_is_whole, parts)):
        return ()
    if not _are_all_separate(parts):
        return ()
    return tuple(f"{_capitalise(part)}?" for part in parts)


def may_ask_several(text: str) -> bool:
    """Return whether nothing makes certain that a text asks one question only.

    It has several question marks, several lines that open like a question, a conjunction before
    another clause, or one in a text that ends with its question word: "add users and rules, how".
    """
    if len(_SENTENCE.findall(text)) > 1 or len(_find_sentences(text)) > 1:
        return True
    used = [found[0].casefold() for found in _WORD.finditer(text)]
    joined = [position for position, word in enumerate(used) if word in CONJUNCTIONS]
    if joined and used[-1] in QUESTION_WORDS:
        return True
    return any(_opens_clause(used[position + 1 :]) for position in joined)


def _find_sentences(text: str) -> list[str]:
    """Return the sentences with a question mark; else the lines that open like a question."""
    marked = [one.strip() for one in _SENTENCE.findall(text)]
    lines = [line.strip() for line in text.splitlines()]
    asking = [line for line in lines if _opens_question(normalise(line).split())]
    return marked or (asking if len(asking) > 1 else [text.strip()])


def _split_sentence(sentence: str) -> list[str]:
    """Return the questions that conjunctions join in one sentence; the sentence if it has one."""
    found = list(_WORD.finditer(sentence))
    used = [word[0].casefold() for word in found]
    for position in _find_joints(used):
        start = found[position + 1].start()
        before = sentence[: found[position].start()].rstrip(" ,;")
        if _opens_question(used[:position]) and _opens_question(used[position + 1 :]):
            return [f"{before}?", *_split_sentence(_capitalise(sentence[start:]))]
    return _split_steps(sentence) or [sentence]


def _split_steps(sentence: str) -> list[str]:
    """Return both questions of "how do I add a user and create a webhook", or nothing."""
    bare = sentence.rstrip(f"{_MARKS}. ")
    tail = _WORD.findall(bare)[-1:]
    if tail and tail[0].casefold() == _HOW:
        bare = f"{_FRAME} {bare[: -len(tail[0])].rstrip(' ,;:')}"
    found = list(_WORD.finditer(bare))
    used = [word[0].casefold() for word in found]
    frame = next((count for count in (_FRAME_WORDS, 2) if is_frame(used[:count])), 0)
    if not frame:
        return []
    for position in _find_joints(used):
        first, second = used[frame:position], used[position + 1 :]
        if _is_step(first) and _is_step(second):
            before = bare[: found[position].start()].rstrip(" ,;")
            after = bare[found[position + 1].start() :]
            return [f"{before}?", f"{bare[: found[frame].start()]}{after}?"]
    return []


def _find_joints(used: list[str]) -> Iterator[int]:
    last = len(used) - 1
    return (at for at, word in enumerate(used) if word in CONJUNCTIONS and 0 < at < last)


def is_frame(used: list[str]) -> bool:
    """Return whether these words ask how to do something: "how do I", "how to"."""
    if used[:1] != [_HOW]:
        return False
    if len(used) == _FRAME_WORDS:
        return used[1] in AUXILIARIES and used[2] in {"i", "we", "you", "one"}
    return used[1:] == ["to"]


def _is_step(used: list[str]) -> bool:
    """Return whether the words are a verb and its object: "add a user"."""
    is_long = len(used) >= _STEP_WORDS
    return is_long and used[0] not in FUNCTION_WORDS and used[1] in DETERMINERS


def _opens_question(used: list[str]) -> bool:
    """Return whether the words open like a question: "how do", "can", "wie", "who may"."""
    if not used:
        return False
    first, second = used[0], used[1] if len(used) > 1 else ""
    if first in AUXILIARIES:
        return True
    if first not in QUESTION_WORDS:
        return False
    if first in _TIMES or first == _HOW:
        return second in AUXILIARIES or second in _ASKED_MEASURES or second == "to"
    return True


def _leave_conjunction_out(part: str) -> str:
    first = _WORD.match(part)
    is_joined = first is not None and first[0].casefold() in CONJUNCTIONS
    return part[first.end() :].strip() if first is not None and is_joined else part.strip()


def _is_whole(part: str) -> bool:
    """Return whether a part opens like a question, and says what it asks about."""
    used = [found[0].casefold() for found in _WORD.finditer(part)]
    if not _opens_question(used) or not _has_subject(used) or _POINTS_BACK.intersection(used):
        return False
    content = content_words(part)
    return len(content) >= _FULL_WORDS or (bool(content) and not _DEFINITE.intersection(used))


def _has_subject(used: list[str]) -> bool:
    """Return whether an auxiliary that opens a part has a subject behind it.

    "was" asks for a thing in German, and in English goes on: "was crowned emperor".
    """
    if used[0] not in AUXILIARIES or used[1] in _SUBJECTS:
        return True
    return used[0] == "was" and not _GERMAN.isdisjoint(used[1:])


def _are_all_separate(parts: list[str]) -> bool:
    known = [(part, stems(part)) for part in parts]
    return all(
        _are_separate(one, other) for at, one in enumerate(known) for other in known[at + 1 :]
    )


def _opens_clause(used: list[str]) -> bool:
    return _opens_question(used) or _is_step(used)


def _are_separate(one: tuple[str, frozenset[str]], other: tuple[str, frozenset[str]]) -> bool:
    (first, terms), (second, others) = one, other
    if terms.isdisjoint(others):
        return True
    both_complete = asks_completely(first) and asks_completely(second)
    return both_complete and not terms <= others and not others <= terms


def _belongs_to_another(question: str) -> bool:
    """Return whether a question is no whole one: "How about you?", "With which card?"."""
    content = content_words(question)
    opening = normalise(question).split()[:2]
    strong = " ".join(word for word in words(question) if word not in _WEAK_POINTERS)
    if len(content) < _FULL_WORDS or points_back(strong):
        return True
    points = points_back(question) and len(content) <= _FULL_WORDS
    return points or " ".join(opening) in OPENERS or opening[0] in _ELLIPTIC_OPENINGS


def _leave_opener_out(question: str) -> str:
    """Return a question without the "and" that joined it to the one before."""
    first = _WORD.search(question)
    if first is None or first[0].casefold() not in CONJUNCTIONS or not goes_on(question):
        return question
    return _capitalise(question[first.end() :].lstrip(" ,"))


def _capitalise(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
