"""Joins the glyphs of a PDF page to segments: words on one baseline without a wide gap."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from statistics import median

from pypdfium2 import PdfPage, PdfTextPage

from knowledge.documents.notation import Script, Span, join_spans
from knowledge.documents.pdf.annotations import take_strikes
from knowledge.documents.pdf.drop_caps import LEAST_CAP
from knowledge.documents.pdf.fractions import join_fractions
from knowledge.documents.pdf.glyphs import BASELINE, GAP_OF_WORDS, Glyph, take_glyphs
from knowledge.documents.pdf.letter_spacing import close_boxes, close_up
from knowledge.documents.pdf.page_objects import PageObjects, Size, find_size, take_objects
from knowledge.documents.pdf.page_text import (
    PageText,
    Segment,
    Stroke,
    list_rules,
    turn_page,
    turn_strokes,
)
from knowledge.documents.pdf.reading_direction import begins_right, is_right_to_left, join_words
from knowledge.documents.pdf.strikes import PageLines
from knowledge.documents.pdf.visibility import VisibleGlyphs

_GAP_OF_PARTS = 0.45
"""From this width on, a gap may separate two cells if the rows around it agree; a space is
narrower."""
_GAP_OF_CODE_PARTS = 0.75
_SMALLEST_SCRIPT, _LARGEST_SCRIPT = 0.45, 0.85
"""Size of superscript and subscript text, relative to the text before it."""
_LARGEST_RAISED, _CLEAR_RISE = 0.95, 0.25
"""The same if its baseline is clearly another one: browsers round sizes."""
_LEAST_RISE, _HIGHEST_RISE = 0.08, 0.6
_LONGEST_MARK = 5
"""Maximum number of letters of superscript text in front of a word."""
_LEAST_SPACED = 5
_WIDER = 1.4
"""How many times wider than usual the space between words is if the letters are spaced out."""
_MOST_PARTS = 60


def take_text(page: PdfPage, text_page: PdfTextPage) -> list[PageText]:
    """Return the segments and rules of a page in drawing order.

    There is one `PageText` per text direction, the one with the most letters first.
    """
    size, objects = find_size(page), take_objects(page)
    glyphs = take_glyphs(page, text_page, objects.texts)
    close_up(glyphs)
    close_boxes(glyphs, turn_strokes(objects.lines, 0, size))
    text = "".join(glyph.text for glyph in glyphs)
    visible = VisibleGlyphs(page, objects, glyphs)
    glyphs = list(visible.keep(glyphs))
    if not is_right_to_left(text):
        glyphs = _join_fractions(glyphs, objects, size)
    lines = PageLines([*objects.lines, *take_strikes(page)], size)
    segments = (
        join_words(glyphs, lines, is_page_reversed=begins_right(text))
        if is_right_to_left(text)
        else _join_glyphs(glyphs, lines)
    )
    by_turn: dict[int, list[Segment]] = {}
    for number, (turn, segment) in enumerate(segments):
        for part in (segment, *segment.parts):
            part.number = number
        by_turn.setdefault(turn, []).append(segment)
    struck = {turn: lines.strike_lines(own, turn, objects.fills) for turn, own in by_turn.items()}
    turns = sorted(by_turn, key=lambda turn: -sum(len(one.text) for one in by_turn[turn])) or [0]
    taken: list[PageText] = []
    for turn in turns:
        _, _, width, height = turn_page(turn, size).on_rect(0, 0, *size)
        taken.append(PageText(width, height, by_turn.get(turn, []), turn=turn))
    first, turn = taken[0], turns[0]
    first.hidden_words = visible.hidden_words
    first.unreadable_letters = visible.unreadable_letters
    first.has_pictures = bool(objects.pictures)
    matrix = turn_page(turn, size)
    first.boxes = [matrix.on_rect(*box) for box in objects.boxes]
    first.rules = list(list_rules(first.boxes))
    strokes = turn_strokes(objects.lines, turn, size)
    first.strokes = [stroke for stroke in strokes if stroke not in struck.get(turn, ())]
    return taken


def _join_fractions(glyphs: list[Glyph], objects: PageObjects, size: Size) -> list[Glyph]:
    """Return glyphs with fractions in their lines; their bars are no lines of tables."""
    turns = Counter(glyph.typeface.turn for glyph in glyphs).most_common(1)
    strokes = turn_strokes(objects.lines, turns[0][0], size) if turns else []
    glyphs, numbers = join_fractions(glyphs, strokes, lambda part: _write(part, ()).text)
    bars = [objects.lines[number] for number in sorted(numbers)]
    objects.lines = [one for at, one in enumerate(objects.lines) if at not in numbers]
    places = {(round(left), round(right)): at for left, at, right, _ in bars}
    objects.boxes = [
        box for box in objects.boxes
        if not box[1] - 1 <= places.get((round(box[0]), round(box[2])), -1.0) <= box[3] + 1
    ]  # fmt: skip
    return glyphs


def _join_glyphs(glyphs: Iterable[Glyph], lines: PageLines) -> Iterator[tuple[int, Segment]]:
    """Yield segments with their directions in degrees, see `find_turn`."""
    current: Segment | None = None
    held: list[Glyph] = []
    for glyph in glyphs:
        if current is not None and _continues(current, held, glyph, lines):
            held.append(glyph)
            _extend(current, glyph)
            continue
        if current is not None:
            yield _finish(current, held, lines)
        current, held = glyph.make_segment(), [glyph]
    if current is not None:
        yield _finish(current, held, lines)


def _finish(segment: Segment, glyphs: Sequence[Glyph], lines: PageLines) -> tuple[int, Segment]:
    """Return a segment with its text and parts, and its direction."""
    turn = glyphs[0].typeface.turn
    strikes = lines.list_strikes(segment, glyphs, turn)
    parts: list[list[Glyph]] = []
    right = segment.left
    for glyph in glyphs:
        is_number = bool(parts) and parts[-1][-1].text.isdecimal()
        is_spaced = segment.is_code and not (is_number and glyph.text.isdecimal())
        widest = (_GAP_OF_CODE_PARTS if is_spaced else _GAP_OF_PARTS) * segment.size
        if not parts or glyph.left - right > widest:
            parts.append([])
        parts[-1].append(glyph)
        right = max(right, glyph.right)
    segment = _write(glyphs, strikes)
    if 1 < len(parts) <= _MOST_PARTS:
        segment.parts = [_write(part, strikes) for part in parts]
    return turn, segment


def _find_script(current: Segment, glyph: Glyph) -> Script:
    """Return whether a glyph is superscript or subscript; a drop cap is neither."""
    rise = (glyph.base - current.base) / current.size
    if abs(rise) < _LEAST_RISE or not _is_smaller(glyph.typeface.size / current.size, rise):
        return Script.LINE
    return Script.RAISED if rise > 0 else Script.LOWERED


def _is_smaller(share: float, rise: float) -> bool:
    largest = _LARGEST_RAISED if abs(rise) >= _CLEAR_RISE else _LARGEST_SCRIPT
    return _SMALLEST_SCRIPT <= share <= largest


def _is_initial(first: Glyph, other: Glyph) -> bool:
    """Return whether a glyph is the large first letter of a text on the same baseline."""
    is_larger = first.typeface.size >= LEAST_CAP * other.typeface.size
    return first.text.isalpha() and first.base == other.base and is_larger


def _write(glyphs: Sequence[Glyph], strikes: Sequence[Stroke]) -> Segment:
    """Return a segment of glyphs; letters that are spaced out are joined to words."""
    first = glyphs[0]
    segment = first.make_segment()
    body = next((one for one in glyphs if one.typeface.size != segment.size), first)
    segment.base, segment.size = body.base, body.typeface.size
    is_mark = body in glyphs[: _LONGEST_MARK + 1] and _find_script(segment, first) is Script.RAISED
    if not is_mark:
        segment.base, segment.size = first.base, first.typeface.size
    spans: list[Span] = []
    gaps: list[float] = []
    for glyph in glyphs:
        gap = glyph.left - segment.right
        script = _find_script(segment, glyph)
        middle = (glyph.left + glyph.right) / 2
        is_struck = bool(strikes) and any(
            strike.start <= middle <= strike.end for strike in strikes
        )
        # PDFium adds a space where the baseline changes.
        is_same = not spans or script is spans[-1].script
        has_space = glyph.has_space if is_same else glyph.has_drawn_space
        if spans and (has_space or gap > GAP_OF_WORDS * segment.size):
            gaps.append(gap)
            spans.append(Span(" ", Script.LINE, is_struck and spans[-1].is_struck))
            segment.words.append((glyph.left, glyph.right))
        elif not spans:
            segment.words = [(glyph.left, glyph.right)]
        segment.words[-1] = segment.words[-1][0], glyph.right
        spans.append(Span(glyph.text, script, is_struck))
        _extend(segment, glyph)
    if len(glyphs) > _LONGEST_MARK and body is glyphs[1] and _is_initial(first, body):
        segment.size = body.typeface.size
    segment.text = _join_spaced(join_spans(spans), gaps)
    return segment


def _join_spaced(text: str, gaps: Sequence[float]) -> str:
    """Return a text, all words of which are letters, as words; `gaps` are between its letters.

    Numbers and lists of letters are unchanged.
    """
    words = text.split(" ")
    if len(words) < _LEAST_SPACED or any(len(word) != 1 for word in words):
        return text
    widest = _WIDER * median(gaps)
    spaces = ("", *(" " if gap > widest else "" for gap in gaps))
    joined = "".join(chain.from_iterable(zip(spaces, words, strict=False)))
    are_words = all(
        word in (word.upper(), word.lower(), word.capitalize()) for word in joined.split(" ")
    )
    return joined if are_words and not any(map(str.isdecimal, joined)) else text


def _extend(segment: Segment, glyph: Glyph) -> None:
    face = glyph.typeface
    segment.left, segment.right = min(segment.left, glyph.left), max(segment.right, glyph.right)
    segment.is_bold = segment.is_bold and face.is_bold
    segment.is_code = segment.is_code and face.is_code
    if face.size <= segment.size:
        return
    if _is_smaller(segment.size / face.size, (segment.base - glyph.base) / face.size):
        # The text so far is the superscript in front of a letter, such as a mass number.
        segment.base = glyph.base
    segment.size = face.size


def _continues(current: Segment, held: Sequence[Glyph], glyph: Glyph, lines: PageLines) -> bool:
    """Return whether a glyph belongs to a segment, which consists of the `held` ones."""
    last, face = held[-1], glyph.typeface
    size = max(current.size, face.size)
    # The hyphen at the end of a line of a tagged file may have no tag.
    is_own = face.tag is current.tag or (
        face.tag is None and glyph.left - current.right < GAP_OF_WORDS * size
    )
    if face.turn != last.typeface.turn or not is_own:
        return False
    if (glyph.left, glyph.base) == (last.left, last.base):
        # PDFium has the letters of a ligature at its place.
        return True
    if face.is_code and not current.is_code and current.text.isdecimal():
        # The number of a line of code, which has places of its own.
        return False
    rise, share = abs(glyph.base - current.base) / size, min(current.size, face.size) / size
    # The text beside a drop cap is on other lines.
    is_beside = share < _SMALLEST_SCRIPT and last.text.isalnum() and glyph.text.isalnum()
    furthest = _LEAST_RISE if is_beside else BASELINE
    if rise > furthest and (rise > _HIGHEST_RISE or not _is_smaller(share, rise)):
        return False
    is_near = -size < glyph.left - current.right < glyph.widest_gap * size
    return is_near and not lines.part(current, glyph.left, face.turn)
