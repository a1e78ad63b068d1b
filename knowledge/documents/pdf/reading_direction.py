"""Restores the order in which the pieces of a line are read, if it has right-to-left text.

A page shows such a line in the order of the Unicode Bidirectional Algorithm (UAX #9); this is its
inverse for lines without embedded directions. Where several orders look the same, that of phone
numbers, dates and numbers with Latin units is assumed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_RIGHT_TO_LEFT = re.compile("[\u0590-\u065f\u066d-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
"""Letters, but not the digits, which run to the right (ISO/IEC 10646; Unicode, annex 9)."""
_ARABIC = re.compile("[\u0600-\u065f\u066d-\u06ef\u06fa-\u08ff\ufb50-\ufdff\ufe70-\ufefc]")
_MIRRORED = str.maketrans("()[]{}<>\u00ab\u00bb\u2039\u203a", ")(][}{><\u00bb\u00ab\u203a\u2039")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_BEHIND_NUMBER = frozenset("%\u2030\u00b0\u066a")
_BEFORE_NUMBER = frozenset("$\u20ac\u00a3\u20aa")
_SIGNS = frozenset("+-\u2212\u2013")


@dataclass(frozen=True, slots=True)
class Piece:
    """A word, a number or one sign of a line. `has_space`: a space is to the left of it."""

    text: str
    has_space: bool = False
    is_struck: bool = False

    @property
    def is_neutral(self) -> bool:
        """Whether the piece takes the direction of what is around it."""
        return not any(map(str.isalnum, self.text))

    @property
    def is_number(self) -> bool:
        """Whether the piece has digits and no letters."""
        return not self.is_neutral and not any(map(str.isalpha, self.text))


def is_right_to_left(text: str) -> bool:
    """Return whether text contains letters of a right-to-left script."""
    return _RIGHT_TO_LEFT.search(text) is not None


def begins_right(text: str) -> bool:
    """Return whether most letters of a text are right-to-left."""
    return 2 * sum(map(is_right_to_left, text)) > sum(map(str.isalpha, text))


def put_in_order(pieces: Sequence[Piece], *, is_page_reversed: bool) -> list[tuple[Piece, bool]]:
    """Return the pieces of a line, stated from left to right, as they are read; each with whether a
    space precedes it.

    `is_page_reversed`: the lines of the page begin at the right if they have letters of both kinds
    at their ends.
    """
    letters = [one for piece in pieces for one in piece.text if one.isalpha()]
    ends = {is_right_to_left(one) for one in (*letters[:1], *letters[-1:])} or {False}
    if not (is_page_reversed if len(ends) > 1 else ends.pop()):
        return [(piece, piece.has_space) for piece in pieces]
    is_arabic = _ARABIC.search("".join(letters)) is not None
    runs = list(_find_runs(pieces, is_arabic=is_arabic))
    table = _MIRRORED if _shows_mirrored(pieces) else {}
    ordered: list[tuple[Piece, bool]] = []
    has_space = False
    for start, end in reversed(runs):
        for at in range(start, end):
            piece = pieces[at]
            if end == start + 1 and piece.is_neutral:
                piece = Piece(piece.text.translate(table), piece.has_space, piece.is_struck)
            ordered.append((piece, pieces[at].has_space if at > start else has_space))
        has_space = pieces[start].has_space
    return ordered


def _find_runs(pieces: Sequence[Piece], *, is_arabic: bool) -> Iterator[tuple[int, int]]:
    """Yield the ranges of pieces that are read from left to right; other pieces are alone."""
    at = 0
    while at < len(pieces):
        end = _find_end(pieces, at, is_arabic=is_arabic)
        yield at, end
        at = end


def _find_end(pieces: Sequence[Piece], start: int, *, is_arabic: bool) -> int:
    """Return where a run that begins at a piece ends."""
    end = start + 1
    if _is_sign_of(pieces, start, is_arabic=is_arabic):
        end += 1
    elif pieces[start].is_neutral or is_right_to_left(pieces[start].text):
        return end
    at = end
    while at < len(pieces) and not is_right_to_left(pieces[at].text):
        if not pieces[at].is_neutral:
            between = pieces[end:at]
            is_apart = any(piece.has_space for piece in pieces[end : at + 1])
            has_numbers = pieces[end - 1].is_number or pieces[at].is_number
            if between and is_apart and has_numbers:
                break
            end = at + 1
        at += 1
    return _add_signs(pieces, start, end)


def _add_signs(pieces: Sequence[Piece], start: int, end: int) -> int:
    """Return the end of a run with its closing brackets, and with the signs behind its number."""
    opened = "".join(piece.text for piece in pieces[start:end])
    closing = [close for open_, close in _BRACKETS.items() if opened.count(open_)]
    is_behind = pieces[end - 1].is_number
    while end < len(pieces) and not pieces[end].has_space:
        text = pieces[end].text
        if text in closing:
            closing.remove(text)
        elif not (is_behind and text in _BEHIND_NUMBER):
            break
        end += 1
    return end


def _is_sign_of(pieces: Sequence[Piece], at: int, *, is_arabic: bool) -> bool:
    """Return whether a sign precedes the number to the right of it, as in a phone number."""
    following = pieces[at + 1 : at + 2]
    if not following or not following[0].is_number or following[0].has_space:
        return False
    if pieces[at].text in _SIGNS:
        return at == 0 or pieces[at].has_space
    return pieces[at].text in _BEFORE_NUMBER and not is_arabic


def _shows_mirrored(pieces: Sequence[Piece]) -> bool:
    """Return whether brackets have their shapes, so that the opening one is at the left.

    A file may have those of the text instead, which a page shows mirrored.
    """
    text = "".join(piece.text for piece in pieces)
    return not any(0 <= text.find(close) < text.find(open_) for open_, close in _BRACKETS.items())
