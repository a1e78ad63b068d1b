"""Reads which documents a question asks for: a collection, and criteria that they meet or lack."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_LONGEST = 4_000
_MOST_CRITERIA = 8
_OPENING = re.compile(
    r"\s*(?:which|what|how many|list|name|find|show)(?: all)?(?: of)?(?: (?:the|our|these|my))?"
    r"(?: \d{1,4})?(?: of)? (?:[a-z]+ )?"
    r"(contracts?|agreements?|documents?|policies|policy|reports?|licen[cs]es|leases|files|papers)\b",
    re.IGNORECASE,
)
_COLLECTION = re.compile(
    r"\s*(?:in|within|of|from|among) (?:[\w'-]{1,40} ){1,5}?"
    r"(?=(?:are|is|have|has|do|does|contain|include|allow|permit|require|lack|mention|state|say"
    r"|restrict|limit|grant|cap|expire|that|which|with|without)s?\b)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\((\d)\)")
_ANSWERS = re.compile(r"\b(yes|no) to the (first|second|third|fourth)\b", re.IGNORECASE)
_ANSWER_NO = re.compile(r"\banswer no\s*\Z", re.IGNORECASE)
_ORDINALS = ("first", "second", "third", "fourth")
_JOINT = re.compile(r",? (?:but|and|yet|while|although)(?= )", re.IGNORECASE)
_WITHOUT = re.compile(
    r"\b(?:without|lacks?|lacking|missing|have no|has no|contain no|contains no|no|not)\b",
    re.IGNORECASE,
)
_COUNTING = re.compile(r"\s*how many\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Criterion:
    """A condition in words; `is_wanted` says whether a document meets it or lacks it."""

    text: str
    is_wanted: bool = True


@dataclass(frozen=True, slots=True)
class SetQuestion:
    """A question for all documents of a collection that meet criteria, or for their number.

    `head` is the part of the question that names the collection.
    """

    head: str
    criteria: tuple[Criterion, ...]
    is_counted: bool = False


def read_set_question(text: str) -> SetQuestion | None:
    """Return what a question asks of a collection of documents; None: it asks something else."""
    asked = text[:_LONGEST]
    opening = _OPENING.match(asked)
    if opening is None:
        return None
    head, colon, body = asked.partition(": ")
    is_counted = _COUNTING.match(asked) is not None
    if colon:
        criteria = tuple(_read_listed(head, body))
    else:
        rest = asked[opening.end() :]
        collection = _COLLECTION.match(rest)
        start = 0 if collection is None else collection.end()
        head, criteria = asked, tuple(_read_clauses(rest[start:]))
    return SetQuestion(head, criteria[:_MOST_CRITERIA], is_counted) if criteria else None


def _read_listed(head: str, body: str) -> Iterator[Criterion]:
    wanted = {ordinal.casefold(): answer.casefold() for answer, ordinal in _ANSWERS.findall(head)}
    parts = _split_numbered(body)
    is_lacking = _ANSWER_NO.search(head) is not None
    for number, part in enumerate(parts):
        ordinal = _ORDINALS[number] if number < len(_ORDINALS) else ""
        yield Criterion(part, wanted.get(ordinal, "no" if is_lacking else "yes") == "yes")


def _split_numbered(body: str) -> Sequence[str]:
    marks = list(_NUMBERED.finditer(body))
    if len(marks) < 2:
        return [body.strip()] if body.strip() else []
    ends = [mark.start() for mark in marks[1:]] + [len(body)]
    parts = [body[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]
    return [part for part in parts if part]


def _read_clauses(rest: str) -> Iterator[Criterion]:
    """Yield the conditions of a plain sentence, such as "have a cap but no audit right"."""
    for part in _JOINT.split(rest):
        words = part.strip(" ?.!\n")
        if words:
            yield Criterion(words, _WITHOUT.search(words) is None)
