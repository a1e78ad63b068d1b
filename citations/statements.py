"""Checks whether a text contains given statements, to evaluate answers and contexts."""

import re
import unicodedata

from citations.marking import remove_marks

Statement = tuple[str, ...]
"""Alternative wordings of one statement."""
_MARKS = str.maketrans("", "", "*`#|\\")
_DASHES = str.maketrans("\u2010\u2011\u2012\u2013\u2014\u2212", "------")
_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d\u00ab\u00bb\u201e", '\'\'"""""')
_THOUSANDS = re.compile("(?<=\\d)[,\u00a0\u202f](?=\\d{3}(?!\\d))")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


def says(answer: str, statement: Statement) -> bool:
    """Return whether an answer contains any of the wordings of a statement."""
    return contains(normalize(remove_marks(answer)), statement)


def contains(normalized: str, statement: Statement) -> bool:
    """Return whether a text, normalized by `normalize`, contains any of the wordings of a
    statement.

    A wording must match whole words: "50" is neither in "150" nor in "50.5".
    """
    return any(_holds(normalized, normalize(wording)) for wording in statement)


def normalize(text: str) -> str:
    """Normalize case, emphasis, dashes, quotation marks, digit groups, and white space."""
    plain = unicodedata.normalize("NFKC", text).translate(_DASHES).translate(_QUOTES)
    return " ".join(_THOUSANDS.sub("", plain).translate(_MARKS).casefold().split())


def _holds(text: str, wording: str) -> bool:
    if not wording:
        return False
    at = text.find(wording)
    while at >= 0:
        end = at + len(wording)
        if not _joins(text[max(0, at - 2) : at], wording[0]) and not _goes_on(
            wording[-1], text[end : end + 2]
        ):
            return True
        at = text.find(wording, at + 1)
    return False


def _joins(before: str, first: str) -> bool:
    """Return whether a match begins inside a word or a number."""
    if not before or not _is_word_sign(first) or _UNSPACED.match(first):
        return False
    if _is_word_sign(before[-1]):
        return not _UNSPACED.match(before[-1])
    return first.isdigit() and len(before) == 2 and before[0].isdigit() and before[1] in ".,:"


def _goes_on(last: str, after: str) -> bool:
    """Return whether a match ends inside a word or a number."""
    if not after or not _is_word_sign(last) or _UNSPACED.match(last):
        return False
    if _is_word_sign(after[0]):
        return not _UNSPACED.match(after[0])
    return last.isdigit() and len(after) == 2 and after[1].isdigit() and after[0] in ".,:"


def _is_word_sign(sign: str) -> bool:
    return sign.isalnum() or sign == "_"
