"""Joins the glyphs of a PDF page with right-to-left text to segments, in reading order.

A number or Latin word in such a line is to the left of the preceding word, but runs to the right.
The words are therefore put in order when their positions are known.

A page shows such a line in the order of the Unicode Bidirectional Algorithm (UAX #9); this is its
inverse for lines without embedded directions. Where several orders look the same, that of phone
numbers, dates and numbers with Latin units is assumed.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from knowledge.documents.notation import Span, join_spans
from knowledge.documents.pdf.glyphs import BASELINE, GAP_OF_WORDS, Glyph
from knowledge.documents.pdf.page_text import Segment
from knowledge.documents.pdf.strikes import PageLines

_RIGHT_TO_LEFT = re.compile("[\u0590-\u065f\u066d-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
"""Letters, but not the digits, which run to the right (ISO/IEC 10646; Unicode, annex 9)."""
_ARABIC = re.compile("[\u0600-\u065f\u066d-\u06ef\u06fa-\u08ff\ufb50-\ufdff\ufe70-\ufefc]")
_MIRRORED = str.maketrans("()[]{}<>\u00ab\u00bb\u2039\u203a", ")(][}{><\u00bb\u00ab\u203a\u2039")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_BEHIND_NUMBER = frozenset("%\u2030\u00b0\u066a")
_BEFORE_NUMBER = frozenset("$\u20ac\u00a3\u20aa")
_SIGNS = frozenset("+-\u2212\u2013")
_LEAST_SPACE = 0.15
"""Minimum width of a space that is drawn in a line with right-to-left text."""
_CLEAR_SHARE = 0.75
"""The share of right-to-left letters of a line that determines its direction."""
_LAM, _ALEFS = "\u0644", "\u0622\u0623\u0625\u0627"


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


@dataclass(slots=True)
class _Words:
    """Words beside each other, in PDFium's order, and their edges."""

    words: list[Glyph]
    left: float
    right: float


def is_right_to_left(text: str) -> bool:
    """Return whether text contains letters of a right-to-left script."""
    return _RIGHT_TO_LEFT.search(text) is not None


def begins_right(text: str) -> bool:
    """Return whether most letters of a text are right-to-left."""
    return 2 * sum(map(is_right_to_left, text)) > sum(map(str.isalpha, text))


def join_words(
    glyphs: Iterable[Glyph], lines: PageLines, *, is_page_reversed: bool
) -> Iterator[tuple[int, Segment]]:
    """Yield segments with their directions in degrees, see `find_turn`.

    `is_page_reversed`: see `put_in_order`.
    """
    held: list[_Words] = []
    for word in _take_words(glyphs):
        own = _Words([word], word.left, word.right)
        while held and _is_near(held[-1], own, lines):
            before = held.pop()
            before.words += own.words
            before.left, before.right = min(before.left, own.left), max(before.right, own.right)
            own = before
        held.append(own)
    for line in held:
        segment = _write_line(line.words, lines, is_page_reversed=is_page_reversed)
        yield line.words[0].typeface.turn, segment


def put_in_order(pieces: Sequence[Piece], *, is_page_reversed: bool) -> list[Piece]:
    """Return the pieces of a line, stated from left to right, as they are read.

    `has_space` of the result: a space precedes the piece. `is_page_reversed`: the lines of the page
    begin at the right if they have letters of both kinds at their ends; so do lines with hardly any
    other letters.
    """
    letters = [one for piece in pieces for one in piece.text if one.isalpha()]
    ends = {is_right_to_left(one) for one in (*letters[:1], *letters[-1:])} or {False}
    is_clear = sum(map(is_right_to_left, letters)) >= _CLEAR_SHARE * len(letters)
    if not (is_page_reversed or is_clear if len(ends) > 1 else ends.pop()):
        return _put_words_in_order(pieces)
    return _turn_around(pieces)


def _turn_around(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces of a line that begins at the right as they are read."""
    is_arabic = any(_ARABIC.search(piece.text) for piece in pieces)
    runs: list[Sequence[Piece]] = []
    end = 0
    while end < len(pieces):
        start, end = end, _find_end(pieces, end, is_arabic=is_arabic)
        runs.append(pieces[start:end])
    table = _MIRRORED if _shows_mirrored(pieces) else {}
    ordered: list[Piece] = []
    has_space = False
    for first, *others in reversed(runs):
        text = first.text.translate(table) if not others and first.is_neutral else first.text
        ordered += [replace(first, text=text, has_space=has_space), *others]
        has_space = first.has_space
    return ordered


def _put_words_in_order(pieces: Sequence[Piece]) -> list[Piece]:
    """Return the pieces of a line from left to right; right-to-left words beside each other in it
    are read from the right.
    """
    ordered: list[Piece] = []
    at = 0
    ends = [at for at, piece in enumerate(pieces) if is_right_to_left(piece.text)]
    while ends:
        first = last = ends.pop(0)
        while ends and all(one.is_neutral or one.is_number for one in pieces[last + 1 : ends[0]]):
            last = ends.pop(0)
        run = _turn_around(pieces[first : last + 1])
        ordered += [*pieces[at:first], replace(run[0], has_space=pieces[first].has_space), *run[1:]]
        at = last + 1
    return [*ordered, *pieces[at:]]


def _take_words(glyphs: Iterable[Glyph]) -> Iterator[Glyph]:
    """Yield words, and signs alone."""
    word: list[Glyph] = []
    last: Glyph | None = None
    for glyph in glyphs:
        is_mark = unicodedata.combining(glyph.text[0]) > 0
        if last is not None and not _is_in_word(word[0], last, glyph, is_mark=is_mark):
            yield _write_word(word)
            word, last = [], None
        word.append(glyph)
        last = last if is_mark and last is not None else glyph
    if word:
        yield _write_word(word)


def _is_in_word(first: Glyph, last: Glyph, glyph: Glyph, *, is_mark: bool) -> bool:
    if glyph.typeface.turn != first.typeface.turn:
        return False
    is_reversed = is_right_to_left(first.text)
    if is_mark and is_reversed:
        return True
    gap = max(glyph.left - last.right, last.left - glyph.right)
    size = max(last.typeface.size, glyph.typeface.size)
    return (
        not glyph.has_space
        and abs(glyph.base - last.base) <= BASELINE * size
        and gap <= GAP_OF_WORDS * size
        and last.text.isalnum()
        and glyph.text.isalnum()
        and is_right_to_left(glyph.text) is is_reversed
    )


def _write_word(glyphs: Sequence[Glyph]) -> Glyph:
    """Return the glyphs of a word as one; each is behind the last one, or at the start if it is
    seen before it.
    """
    first = last = glyphs[0]
    is_reversed = is_right_to_left(first.text)
    text, end, marks = first.text, len(first.text), ""
    for glyph in glyphs[1:]:
        middle = (glyph.left + glyph.right) / 2
        own = glyph.text
        if not unicodedata.combining(own[0]):
            own, marks = own + marks, ""
            if glyph.left == last.left and own == _LAM and last.text in _ALEFS:
                # PDFium may reverse this ligature; there is none of alef and lam.
                at = end - len(last.text)
            else:
                # A file may have the letters in the order in which they are seen, and PDFium may
                # reverse letters and digits that run to the right.
                step = 2 * middle - last.left - last.right
                at = 0 if (step > 0 if is_reversed else step < 0) else len(text)
            last = glyph
        elif last.left <= middle <= last.right:
            at = end
        else:
            # The mark of the next letter.
            marks += own
            continue
        text, end = f"{text[:at]}{own}{text[at:]}", at + len(own)
    return _merge(glyphs, text + marks)


def _merge(glyphs: Sequence[Glyph], text: str) -> Glyph:
    """Return glyphs as one, with the baseline of the first and the edges of all."""
    face = replace(
        glyphs[0].typeface,
        size=max(glyph.typeface.size for glyph in glyphs),
        is_bold=all(glyph.typeface.is_bold for glyph in glyphs),
        is_code=all(glyph.typeface.is_code for glyph in glyphs),
    )
    left, right = min(glyph.left for glyph in glyphs), max(glyph.right for glyph in glyphs)
    return replace(glyphs[0], text=text, left=left, right=right, typeface=face)


def _is_near(held: _Words, own: _Words, lines: PageLines) -> bool:
    """Return whether words are beside each other on either side."""
    one, word, last = held.words[0], own.words[0], held.words[-1]
    size = max(one.typeface.size, word.typeface.size)
    if (
        word.typeface.turn != one.typeface.turn
        or word.typeface.tag is not one.typeface.tag
        or abs(one.base - word.base) > BASELINE * size
    ):
        return False
    left, right = sorted((held, own), key=lambda words: words.left)
    # A number is beside the sign that follows it, both of them between other words.
    gaps = (right.left - left.right, own.left - last.right, last.left - own.right)
    is_beside = any(-size < gap < word.widest_gap * size for gap in gaps)
    segment = replace(one, right=left.right).make_segment()
    return is_beside and not lines.part(segment, right.left, word.typeface.turn)


def _write_line(words: Sequence[Glyph], lines: PageLines, *, is_page_reversed: bool) -> Segment:
    order = sorted(range(len(words)), key=lambda at: words[at].left + words[at].right)
    segment = _merge([words[at] for at in order], "").make_segment()
    strikes = lines.list_strikes(segment, words, words[0].typeface.turn)
    pieces: list[Piece] = []
    before = order[0]
    for at in order:
        word = words[at]
        # A space is drawn before the later one of two words.
        least = _LEAST_SPACE if words[max(before, at)].has_drawn_space else GAP_OF_WORDS
        has_space = at != before and word.left - words[before].right > least * segment.size
        middle = (word.left + word.right) / 2
        is_struck = any(strike.start <= middle <= strike.end for strike in strikes)
        pieces.append(Piece(word.text, has_space, is_struck))
        before = at
    spans: list[Span] = []
    for piece in put_in_order(pieces, is_page_reversed=is_page_reversed):
        is_within = bool(spans) and spans[-1].is_struck and piece.is_struck
        spans += [Span(" ", is_struck=is_within)] if piece.has_space else []
        spans.append(Span(piece.text, is_struck=piece.is_struck))
    segment.text = join_spans(spans)
    return segment


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
            numbers = pieces[end - 1].is_number, pieces[at].is_number
            if between and is_apart and any(numbers):
                break
            if between and all(numbers) and all(map(_is_turned, between)):
                break
            end = at + 1
        at += 1
    return _add_signs(pieces, start, end)


def _is_turned(sign: Piece) -> bool:
    """Return whether a sign between two numbers takes the direction of the line, as a dash does,
    so that the first one is to the right of it: not a hyphen, a slash, or a point.
    """
    return {unicodedata.bidirectional(one) for one in sign.text} == {"ON"}


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
