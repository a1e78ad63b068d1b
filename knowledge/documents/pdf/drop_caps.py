"""Joins drop caps, the large first letters of texts, with the rest of their words."""

from collections.abc import Sequence
from dataclasses import replace

from knowledge.documents.pdf.page_text import Segment

LEAST_CAP = 1.7
"""Minimum size of a drop cap, relative to the text beside it."""
_MOST_CAPS = 100
"""Maximum number of drop caps of a page; a page with more has none."""
_LEAST_LINES = 2
_PITCH = 1.7
_FURTHEST = 1.5
"""Maximum distance between a drop cap and the text beside it, in sizes of the text."""
_HEIGHT = 0.7
_LOWER = 1.2
_OPENING = "\"'\u201c\u201e\u00ab\u00bf\u00a1("
_LEAST_INDENT = 0.15


def join_drop_caps(segments: Sequence[Segment]) -> list[Segment]:
    """Return segments; a letter as high as the lines beside it begins the first of them.

    If no line goes on below the letter, it may be that of a section or a grade, and stays a word.
    """
    caps = [one for one in segments if _is_capital(one.text.strip(_OPENING))]
    joined: dict[int, Segment | None] = {}
    for cap in caps if len(caps) <= _MOST_CAPS else ():
        beside = _list_beside(cap, segments)
        if len(beside) >= _LEAST_LINES and _has_height(cap, beside):
            joined[id(cap)] = None
            joined[id(beside[0])] = _join(cap, beside)
    shown = (joined.get(id(one), one) for one in segments)
    return [one for one in shown if one is not None]


def _is_capital(text: str) -> bool:
    return len(text) == 1 and text.isalpha() and not text.islower()


def _list_beside(cap: Segment, segments: Sequence[Segment]) -> list[Segment]:
    """Return the lines beside a letter from above to below, and the line that follows them below
    the letter, if there is one.
    """
    smaller = [one for one in segments if one.size * LEAST_CAP <= cap.size]
    beside: list[Segment] = []
    for one in sorted(smaller, key=lambda one: -one.base):
        if beside and not 0 < beside[-1].base - one.base < _PITCH * one.size:
            continue
        # Browsers may place the letter above the baseline of the last line beside it.
        is_level = cap.base - _LOWER * one.size < one.base < cap.base + cap.size
        if is_level and -one.size < one.left - cap.right < _FURTHEST * one.size:
            beside.append(one)
        elif beside and abs(one.left - cap.left) < one.size and one.base < cap.base:
            return [*beside, one]
    return beside


def _has_height(cap: Segment, beside: Sequence[Segment]) -> bool:
    """Return whether a letter reaches from the last line beside it to the top of the first one."""
    size = beside[0].size
    top = beside[0].base + _HEIGHT * size - cap.base - _HEIGHT * cap.size
    return abs(top) < size and any(abs(cap.base - one.base) < size / 2 for one in beside[1:])


def _join(cap: Segment, beside: Sequence[Segment]) -> Segment:
    """Return the first line with the letter.

    A space is between them if the line begins with a capital letter or a digit, or further to the
    right than the second one.
    """
    first, second, last = *beside[:2], beside[-1]
    is_word = first.text[0].islower() or first.text[:2].isupper() or not first.text[0].isalnum()
    is_indented = first.left - second.left > _LEAST_INDENT * first.size
    is_apart = not is_word or is_indented or last.left > cap.right
    text = f"{cap.text}{' ' if is_apart else ''}{first.text}"
    return replace(first, text=text, left=cap.left, parts=[], words=[])
